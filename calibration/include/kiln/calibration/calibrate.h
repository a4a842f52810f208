// Measures what a device reaches.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kiln/device/context.h"
#include "kiln/device/nvrtc.h"
#include "kiln/generator/calibration.h"
#include "kiln/generator/math_class.h"

namespace kiln::calibration {

/// Rate at which a buffer is read again and again.
struct FootprintRate {
  int64_t bytes = 0;
  double bytes_per_second = 0;
};

/// Rate of dense products of matrices by mma.sync.
struct TensorRate {
  std::string_view factors;          ///< "f16" (bf16 is as fast), "tf32", "int8", "fp8"
  std::string_view sums;             ///< "f32", "f16", "i32"
  MathClass math;                    ///< Unit that does them.
  double operations_per_second = 0;  ///< Two for a multiply-add.
  double share = 0;                  ///< Part of Arch::products_per_clock().
};

/// Measured rates (modelled if the device is emulated), and the Calibration that follows from them.
struct Findings {
  Calibration calibration;
  double copy_bytes_per_second = 0;    ///< Rate of a large copy, bytes read plus bytes written.
  double l2_bytes_per_second = 0;      ///< All SMs reading a buffer of a quarter of L2, past L1.
  std::vector<FootprintRate> reads;    ///< Buffers from an eighth to four times L2: where L2 ends shows.
  double fma_flops_per_second = 0;     ///< f32, two for a fused multiply-add.
  double shared_bytes_per_second = 0;  ///< All SMs, without bank conflicts.
  /// One for each type that the device and NVRTC have. None on an emulated device whose clock does not read machine
  /// code: it tells no time of tensor instructions.
  std::vector<TensorRate> tensor;
  double launch_seconds = 0;  ///< From the start of an empty kernel to that of the next, both enqueued long before.
};

/// Runs up to ten small kernels on the device of `context`; takes well under a second on a real one. Uses at most a
/// quarter of its memory. Each figure is the median of nine runs after a warm-up, on an otherwise idle device; of one
/// run on the emulated device, whose times do not vary. Throws DriverError, Error(compile_failed), Error(unsupported).
Findings calibrate(const std::shared_ptr<const device::ContextHandle>& context, const device::Nvrtc& nvrtc);

}  // namespace kiln::calibration
