#include "kiln/execution/target.h"

#include <fmt/format.h>

#include <string>

#include "kiln/base/error.h"

namespace kiln::execution {

Target target_for(int cc_major, int cc_minor, const device::Nvrtc& nvrtc) {
  Target target;
  target.arch = Arch::of(cc_major, cc_minor);
  target.nvrtc_major = nvrtc.version().major;
  target.nvrtc_minor = nvrtc.version().minor;
  if (!nvrtc.supports(target.arch.major, target.arch.minor)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("NVRTC {}.{} ({}) cannot compile for compute capability {}.{}", target.nvrtc_major,
                            target.nvrtc_minor, nvrtc.path(), cc_major, cc_minor),
                "install a newer NVRTC, or name one with KILN_NVRTC");
  }
  return target;
}

DeviceFigures figures_of(const device::DeviceInfo& info) {
  DeviceFigures figures;
  figures.sms = info.sms;
  figures.clock_hz = 1e3 * info.clock_khz;
  figures.dram_bytes_per_second = 2.0 * 1e3 * info.memory_clock_khz * info.memory_bus_bits / 8;
  figures.l2_bytes = info.l2_bytes;
  // Arch has the rates of other cards (NVIDIA Ada GPU Architecture, 2023: GeForce RTX 4090 and RTX 6000 Ada).
  if (info.name.find("GeForce") != std::string::npos) {
    for (const MathClass of_f32_sums : {MathClass::tensor_f16, MathClass::tensor_tf32, MathClass::tensor_fp8}) {
      figures.calibration.*Calibration::share_of(of_f32_sums) = 0.5;
    }
  }
  return figures;
}

}  // namespace kiln::execution
