#include "kiln/device/launch.h"

#include <fmt/format.h>

namespace kiln::device {

void launch_failed(const Function& function, cuda_abi::CUresult result, Dim3 grid, Dim3 block,
                   unsigned dynamic_shared) {
  function.driver().fail(
      result, "cuLaunchKernel",
      fmt::format("'{}' with grid ({}, {}, {}), block ({}, {}, {}) and {} bytes of dynamic shared memory",
                  function.name(), grid.x, grid.y, grid.z, block.x, block.y, block.z, dynamic_shared));
}

}  // namespace kiln::device
