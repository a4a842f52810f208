// reduce_backward: the gradient of a reduce, the typed view of its requests.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kiln/generator/operations/reduce.h"
#include "kiln/generator/request.h"

namespace kiln {

/// dx = alpha * (the gradient of reduce by x) + beta * dx. With the row that an element of x belongs to, the `count` of
/// its elements, and dy, y and the index of that row:
///
///   add            dy
///   mean           dy / count
///   mul            dy (y / x); where x is 0, dy times the product of the row's others, 0 if one of them is 0 too
///   mul_no_zeros   dy (y / x); 0 where x is 0
///   norm1          dy sign(x); sign(0) is 0
///   norm2          dy (x / y); 0 where y is 0
///   min, max       dy at the position `indices`, 0 elsewhere
///   amax           dy sign(x) at the position `indices`, 0 elsewhere
///
/// dy: extents of dx, and 1 along `axes`. x: extents of dx; for mul, mul_no_zeros, norm1, norm2 and amax. y: the result
/// of reduce, extents of dy; for mul, mul_no_zeros and norm2. indices: i32, extents of dy, as reduce gives them; for
/// min, max and amax. A mode takes these operands and no others. dx has 1 to 5 dimensions.
struct ReduceBackward {
  TensorSpec dy, dx;
  std::optional<TensorSpec> x, y, indices;
  std::vector<int64_t> axes;  ///< None: all. Negative ones count from the end.
  ReduceMode mode = ReduceMode::add;
  Blend blend;
  bool dynamic_batch = false;

  static ReduceBackward of(const Request& request);
  /// Makes the request; dx may have no extents where there is x (inferred).
  Request request() const;

  /// Elements of a row.
  int64_t row_length() const;
};

/// Operands that the gradient of a mode reads beside dy.
bool gradient_reads_x(ReduceMode mode);
bool gradient_reads_y(ReduceMode mode);

}  // namespace kiln
