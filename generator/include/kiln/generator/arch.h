// Targets of kernels: compute capabilities and their limits. Figures of a device, from which estimates are drawn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kiln/generator/calibration.h"
#include "kiln/generator/math_class.h"

namespace kiln {

/// A launch has no more blocks along x, and along y and z, than these on any architecture (CUDA C++ Programming Guide,
/// "Technical Specifications per Compute Capability").
inline constexpr int64_t most_blocks_in_x = (int64_t{1} << 31) - 1, most_blocks_in_y = 65535;

/// A compute capability and its limits (CUDA C++ Programming Guide, "Compute Capabilities").
struct Arch {
  int major = 0, minor = 0;
  int threads_per_block = 1024;
  int threads_per_sm = 0;
  int blocks_per_sm = 0;
  int registers_per_sm = 65536;
  int registers_per_thread = 255;
  int shared_per_block_default = 48 * 1024;  ///< bytes without opting in
  int shared_per_block = 0;                  ///< bytes with opting in
  int shared_per_sm = 0;                     ///< bytes
  int f32_lanes_per_sm = 0;                  ///< f32 fused multiply-adds per clock and SM
  int f16_tensor_products_per_sm = 0;        ///< dense f16 multiply-adds with f32 sums per clock and SM

  /// Throws Error(unsupported) for a compute capability below 7.5 or unknown; a newer minor of a known major counts as
  /// the newest known one of that major.
  static Arch of(int major, int minor);
  /// The compute capabilities that Kiln generates for: 7.5, 8.0, 8.6, 8.9, 9.0, 10.0, 12.0.
  static const std::vector<Arch>& all();

  /// "sm_90".
  std::string name() const;
  /// Dense multiply-adds of that class per clock and SM; 0 where there is no unit for it.
  int products_per_clock(MathClass math) const;
  bool at_least(int other_major, int other_minor) const {
    return major > other_major || (major == other_major && minor >= other_minor);
  }
  bool operator==(const Arch&) const = default;
};

/// An Arch with what the NVRTC at hand can compile for it.
struct Target {
  Arch arch;
  int nvrtc_major = 0, nvrtc_minor = 0;
};

/// Knowledge of the device at hand that estimate() may use. Nothing here shapes a kernel.
struct DeviceFigures {
  int sms = 0;
  double clock_hz = 0;
  double dram_bytes_per_second = 0;
  int64_t l2_bytes = 0;
  Calibration calibration{};  ///< How near it comes to them.
};

}  // namespace kiln
