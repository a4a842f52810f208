#include "kiln/device/launch.h"

#include <fmt/format.h>

namespace kiln::device {

void launch_failed(const Function& function, cuda_abi::CUresult result, Dim3 grid, Dim3 block, unsigned dynamic_shared,
                   std::string_view call) {
  function.driver().fail(
      result, call,
      fmt::format("'{}' with grid ({}, {}, {}), block ({}, {}, {}) and {} bytes of dynamic shared memory",
                  function.name(), grid.x, grid.y, grid.z, block.x, block.y, block.z, dynamic_shared));
}

void launch(const Function& function, Dim3 grid, Dim3 block, unsigned dynamic_shared, cuda_abi::CUstream stream,
            void** parameters, std::span<const cuda_abi::CUlaunchAttribute> attributes) {
  constexpr std::string_view call = "cuLaunchKernelEx";
  const Driver& driver = function.driver();
  // The driver does not write to attributes; its header says so from CUDA 12.3 on.
  const cuda_abi::CUlaunchConfig config{
      grid.x,
      grid.y,
      grid.z,
      block.x,
      block.y,
      block.z,
      dynamic_shared,
      stream,
      const_cast<cuda_abi::CUlaunchAttribute*>(attributes.data()),  // NOLINT(cppcoreguidelines-pro-type-const-cast)
      static_cast<unsigned>(attributes.size())};
  auto* const enqueue = driver.optional_call(driver.calls().cuLaunchKernelEx, call);
  const cuda_abi::CUresult result = enqueue(&config, function.raw(), parameters, nullptr);
  if (result != cuda_abi::CUDA_SUCCESS) launch_failed(function, result, grid, block, dynamic_shared, call);
}

}  // namespace kiln::device
