// Launching a kernel: the driver's validation.
#pragma once

#include <memory>

#include "device_work.h"
#include "driver.h"

namespace kiln::emulator {

struct LaunchArguments {
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;     ///< see KernelWork
  void** parameters = nullptr;  ///< one pointer per kernel parameter
  void** extra = nullptr;       ///< instead of `parameters`: CU_LAUNCH_PARAM_... list naming one packed buffer
};

/// Launch arguments that an attribute list has to say: `arguments` with what the attributes add. Fails the call with
/// CUDA_ERROR_INVALID_VALUE for a list that is none, CUDA_ERROR_NOT_SUPPORTED for attributes that would change what a
/// kernel does and are not known here, clusters of more than one block among them.
LaunchArguments with_attributes(LaunchArguments arguments, const CUlaunchAttribute* attributes, unsigned count);

/// Validates as cuLaunchKernel does, and copies the parameters' values. Fails the call on invalid arguments, and with
/// CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE where blocks that may wait for each other do not all fit the device at once.
KernelWork prepare_launch(const Context& context, std::shared_ptr<const Function> function,
                          const LaunchArguments& arguments);

/// Occupancy of a function on its device.
Occupancy function_occupancy(const DeviceModel& model, const Function& function, uint32_t threads,
                             uint64_t dynamic_shared_bytes);

}  // namespace kiln::emulator
