// Launching kernels.
#include <memory>

#include "driver.h"
#include "driver/exports.h"
#include "launch.h"

namespace kiln::emulator {
namespace {

void launch(CUfunction function, CUstream stream, const LaunchArguments& arguments) {
  const StreamUse use = use_stream(stream);
  const std::shared_ptr<Function> found = lookup(Driver::instance().functions, function);
  require(usable_context_of(*found) == use.context, CUDA_ERROR_INVALID_HANDLE);
  submit(use, prepare_launch(*use.context, found, arguments));
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): the driver API's parameters
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes, CUstream stream,
                        void** parameters, void** extra) {
  return entry([&] {
    launch(function, stream,
           {.grid = {grid_x, grid_y, grid_z},
            .block = {block_x, block_y, block_z},
            .dynamic_shared_bytes = dynamic_shared_bytes,
            .parameters = parameters,
            .extra = extra});
  });
}

// NOLINTNEXTLINE(readability-function-size): the driver API's parameters
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes,
                                   CUstream stream, void** parameters) {
  return entry([&] {
    launch(function, stream,
           {.grid = {grid_x, grid_y, grid_z},
            .block = {block_x, block_y, block_z},
            .dynamic_shared_bytes = dynamic_shared_bytes,
            .cooperative = true,
            .parameters = parameters});
  });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  return entry([&] {
    require(config != nullptr);
    const LaunchArguments arguments = {.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                                       .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                                       .dynamic_shared_bytes = config->sharedMemBytes,
                                       .parameters = parameters,
                                       .extra = extra};
    launch(function, config->hStream, with_attributes(arguments, config->attrs, config->numAttrs));
  });
}

}  // namespace kiln::emulator
