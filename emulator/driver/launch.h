// Launching a kernel: the driver's validation, execution, and modelled time.
#pragma once

#include <memory>

#include "driver/driver.h"

namespace kiln::emulator {

struct LaunchArguments {
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  void** parameters = nullptr;  ///< one pointer per kernel parameter
  void** extra = nullptr;       ///< instead of `parameters`: CU_LAUNCH_PARAM_... list naming one packed buffer
};

/// Validates as cuLaunchKernel does, executes the kernel to its end and places its modelled time on the stream.
/// Fails the call on invalid arguments, with nothing executed. A fault of the kernel breaks the context; the call
/// itself succeeds then, as an asynchronous launch does on hardware.
void launch(Driver& driver, Context& context, const Function& function, Stream& stream,
            const LaunchArguments& arguments);

/// Occupancy of a function on its device, as the driver and the timing model see it.
Occupancy function_occupancy(const DeviceModel& model, const KernelInfo& kernel, uint32_t threads,
                             uint64_t dynamic_shared_bytes);

}  // namespace kiln::emulator
