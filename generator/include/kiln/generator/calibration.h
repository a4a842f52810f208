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

  /// Share of the multiply-adds of that class that an SM could do. For tensor cores all of them: no kernel measures
  /// that.
  double efficiency(MathClass math) const { return math == MathClass::f32_lanes ? fma_efficiency : 1; }

  /// One line, `copy_efficiency=0.9 l2_bytes_per_clock=46.6 ...`; parse(print()) gives back an equal value.
  std::string print() const;
  /// Nothing if a figure is missing, unknown, given twice, or not a positive finite number.
  static std::optional<Calibration> parse(std::string_view text);

  bool operator==(const Calibration&) const = default;
};

}  // namespace kiln
