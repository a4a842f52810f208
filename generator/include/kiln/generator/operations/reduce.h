// reduce: one value of all elements along some axes, the typed view of its requests.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln {

/// Reduction of the elements of a row, computed in f32. The result for a row without elements stands in brackets.
enum class ReduceMode {
  add,           ///< their sum (0)
  mul,           ///< their product (1)
  min,           ///< the least; NaN if one is NaN (+inf)
  max,           ///< as min (-inf)
  amax,          ///< the largest magnitude; NaN if one is NaN (0)
  mean,          ///< their sum over their number (0)
  norm1,         ///< the sum of their magnitudes (0)
  norm2,         ///< the square root of the sum of their squares (0)
  mul_no_zeros,  ///< the product of those that are not 0 (1)
};

/// The name in requests; "?" for a value that is no mode.
std::string_view to_string(ReduceMode mode);
/// Every mode, in the order above.
const std::vector<ReduceMode>& reduce_modes();
/// Whether the mode picks one element: then its position may be asked for.
bool has_indices(ReduceMode mode);

/// y = alpha * reduce(x) + beta * y over `axes` of x, up to 5 dimensions. y has an extent of 1 there, and those of x
/// elsewhere. Any dtypes: i32 beyond 2^24 is rounded on its way in; y rounds to nearest and saturates if it is stored
/// as integers, where NaN becomes 0.
///
/// indices: as y, i32, for min, max and amax alone: where in its row the element stands, counted in logical order over
/// the axes, the last one fastest. Among equal elements or NaNs the first; -1 for a row without elements. alpha and
/// beta do not concern them.
struct Reduce {
  TensorSpec x, y;
  TensorSpec indices;         ///< Without extents: not asked for.
  std::vector<int64_t> axes;  ///< None: all. Negative ones count from the end.
  ReduceMode mode = ReduceMode::add;
  Blend blend;
  bool dynamic_batch = false;

  static Reduce of(const Request& request);
  /// Makes the request; y may have no extents (inferred).
  Request request() const;

  /// Elements that become one.
  int64_t row_length() const;
};

}  // namespace kiln
