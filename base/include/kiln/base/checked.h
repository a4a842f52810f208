// Arithmetic of 64-bit integers from outside: files, text, callers. Nothing where a result does not fit.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace kiln {

constexpr std::optional<int64_t> checked_add(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
}

constexpr std::optional<int64_t> checked_subtract(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
}

constexpr std::optional<int64_t> checked_multiply(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
}

/// Towards zero. Nothing for b = 0, and for the least number by -1.
constexpr std::optional<int64_t> checked_divide(int64_t a, int64_t b) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return std::nullopt;
  return a / b;
}

/// The number without its fraction. Nothing for NaN, infinities, and what 64 bits do not hold.
constexpr std::optional<int64_t> checked_truncate(double number) {
  constexpr double limit = 9223372036854775808.0;  // 2^63
  if (!(number >= -limit && number < limit)) return std::nullopt;
  return static_cast<int64_t>(number);
}

/// Elements of a tensor of these extents. Nothing where an extent is negative, or where those above 0 have a product
/// beyond `most`: strides of such a tensor need not fit 64 bits, even where it is empty.
constexpr std::optional<int64_t> checked_elements(std::span<const int64_t> extents,
                                                  int64_t most = std::numeric_limits<int64_t>::max()) {
  int64_t product = 1;
  bool is_empty = false;
  for (const int64_t extent : extents) {
    is_empty = is_empty || extent == 0;
    if (extent < 0 || __builtin_mul_overflow(product, extent == 0 ? 1 : extent, &product) || product > most) {
      return std::nullopt;
    }
  }
  return is_empty ? 0 : product;
}

}  // namespace kiln
