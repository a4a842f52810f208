// How far a kernel's output may be from the reference: the rules of docs/numerics.md, and comparison by them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kiln/generator/request.h"
#include "kiln/reference/reference.h"

namespace kiln::reference {

/// The most that the arithmetic a request permits may put the result off `expected.value`, before rounding to storage:
/// roundings * 2^-24 * magnitude and the like; 0 where f32 arithmetic is exact in any order; inf where sums may
/// overflow f32. `expected` must be finite.
double arithmetic_error(const Request& request, const Expected& expected);

/// The stored values that are right for one element: low <= stored <= high.
struct Accepted {
  double low = 0, high = 0;
};

/// Rounding to storage is monotone, so these are value -/+ arithmetic_error, each rounded to the dtype of the output.
/// If the value is NaN or infinite, both are that value, as it is stored.
Accepted accepted(const Request& request, const Expected& expected);

/// Whether the stored element `got` is right: within accepted(), NaN where NaN is expected, the infinity that is
/// expected, anything where the definition leaves it open. +0 and -0 are equal.
bool is_right(const Request& request, const Expected& expected, double got);

/// The largest distance from expected.value that is right: arithmetic_error and the rounding to storage; for reports.
double bound(const Request& request, const Expected& expected);

/// Outputs that are wrong.
struct Mismatch {
  std::string output;     ///< The name of the operand.
  int64_t checked = 0;    ///< Elements that were compared.
  int64_t wrong = 0;      ///< How many of them are wrong; at least 1.
  Coordinate coordinate;  ///< The first wrong one.
  Expected expected;
  double got = 0;
  double bound = 0;

  /// `3 of 1024 elements of y are wrong, first at (0,2,5,1): got 1.25, expected 1.5 +- 2.4e-07`
  std::string text() const;
};

/// Compares the output memory of a call (`output` starts at its first element) with the reference, every element, or
/// at `coordinates` only. Nothing if all are right. Throws Error(invalid_argument) if `output` is too small, and as
/// Oracle does. `bindings` holds what the call reads, as it was before. `name`: of the output, if it is not the result.
std::optional<Mismatch> compare(const Request& request, const Bindings& bindings, std::span<const std::byte> output,
                                std::string_view name = {});
std::optional<Mismatch> compare_at(const Request& request, const Bindings& bindings, std::span<const std::byte> output,
                                   std::span<const Coordinate> coordinates, std::string_view name = {});

}  // namespace kiln::reference
