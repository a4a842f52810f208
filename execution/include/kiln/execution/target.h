// The generator's view of a device, from the reports of the device and of NVRTC.
#pragma once

#include "kiln/device/device.h"
#include "kiln/device/nvrtc.h"
#include "kiln/generator/arch.h"

namespace kiln::execution {

/// The Target of a device of compute capability major.minor with `nvrtc`. Throws Error(unsupported) if Kiln or `nvrtc`
/// does not know the compute capability.
Target target_for(int cc_major, int cc_minor, const device::Nvrtc& nvrtc);

/// The figures that estimates are drawn from. Memory bandwidth is that of a double-data-rate bus: 2 * clock * width.
/// Tensor cores of GeForce cards have half of the rate with sums in f32.
DeviceFigures figures_of(const device::DeviceInfo& info);

}  // namespace kiln::execution
