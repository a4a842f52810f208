// Launching a kernel: the driver's validation.
#pragma once

#include <memory>

#include "driver/driver.h"
#include "driver/work.h"

namespace kiln::emulator {

struct LaunchArguments {
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  void** parameters = nullptr;  ///< one pointer per kernel parameter
  void** extra = nullptr;       ///< instead of `parameters`: CU_LAUNCH_PARAM_... list naming one packed buffer
};

/// Validates as cuLaunchKernel does, and copies the parameters' values. Fails the call on invalid arguments.
KernelWork prepare_launch(const Context& context, std::shared_ptr<const Function> function,
                          const LaunchArguments& arguments);

/// Occupancy of a function on its device, as the driver and the timing model see it.
Occupancy function_occupancy(const DeviceModel& model, const KernelInfo& kernel, uint32_t threads,
                             uint64_t dynamic_shared_bytes);

}  // namespace kiln::emulator
