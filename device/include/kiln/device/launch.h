// Kernel launch, as thin as it can be: it is on the hot path of every layer call.
#pragma once

#include <cuda_abi/driver.h>

#include <span>
#include <string_view>

#include "kiln/device/module.h"

namespace kiln::device {

/// Extents of a grid in blocks or of a block in threads.
struct Dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

/// Throws the DriverError of a failed launch, naming kernel, grid, block and dynamic shared memory.
[[noreturn]] void launch_failed(const Function& function, cuda_abi::CUresult result, Dim3 grid, Dim3 block,
                                unsigned dynamic_shared, std::string_view call = "cuLaunchKernel");

/// Enqueues `function` on `stream` and returns. One driver call; no allocation, no lock, no query.
///
/// The function's context must be current on this thread (see Current). `parameters` points to one pointer per kernel
/// parameter, each to that parameter's value; the driver copies the values before this returns. Throws DriverError if
/// the launch is refused; a fault while the kernel runs is reported by a later synchronisation.
inline void launch(const Function& function, Dim3 grid, Dim3 block, unsigned dynamic_shared, cuda_abi::CUstream stream,
                   void** parameters) {
  const cuda_abi::CUresult result = function.driver().calls().cuLaunchKernel(
      function.raw(), grid.x, grid.y, grid.z, block.x, block.y, block.z, dynamic_shared, stream, parameters, nullptr);
  if (result != cuda_abi::CUDA_SUCCESS) launch_failed(function, result, grid, block, dynamic_shared);
}

/// The same with attributes (clusters, cooperative, programmatic), by cuLaunchKernelEx: throws Error(unsupported) where
/// the driver lacks that.
void launch(const Function& function, Dim3 grid, Dim3 block, unsigned dynamic_shared, cuda_abi::CUstream stream,
            void** parameters, std::span<const cuda_abi::CUlaunchAttribute> attributes);

}  // namespace kiln::device
