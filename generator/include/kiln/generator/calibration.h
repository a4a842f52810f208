// Rates that a device was measured to reach.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kiln/generator/math_class.h"

namespace kiln {

/// How near a device comes to its nominal figures. The defaults are what recent GPUs do; `kiln devices --calibrate`
/// measures them.
struct Calibration {
  double copy_efficiency = 0.9;      ///< Share of the memory bandwidth that a large copy reaches.
  double l2_bytes_per_clock = 46.6;  ///< From L2 into each SM while all of them read.
  double fma_efficiency = 1;         ///< Share of the f32 multiply-adds that the lanes could do.
  double shared_efficiency = 1;      ///< Shared-memory wavefronts of 128 bytes for each clock and SM.
  double launch_seconds = 2.5e-6;    ///< From one small kernel to the next on a stream.
  /// Shares of Arch::products_per_clock() that mma.sync reaches; 0 where that was not measured.
  double tf32_efficiency = 0, f16_efficiency = 0, fp8_efficiency = 0, int8_efficiency = 0, f16_sums_efficiency = 0;

  /// The figure above that is the share of the units of that class.
  static double Calibration::*share_of(MathClass math);

  /// One line, `copy_efficiency=0.9 l2_bytes_per_clock=46.6 ...`, with the shares of tensor cores that were measured.
  /// parse(print()) gives back an equal value.
  std::string print() const;
  /// Nothing if another figure than one of tensor cores is missing, or one is unknown, given twice, in another order,
  /// or not a positive finite number.
  static std::optional<Calibration> parse(std::string_view text);

  bool operator==(const Calibration&) const = default;
};

}  // namespace kiln
