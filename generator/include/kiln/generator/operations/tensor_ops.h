// tensor_transform, tensor_set and tensor_op: the typed views of their requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln {

/// y = alpha * pad(x) + beta * y, whatever the dtypes and layouts of the two: dtypes are converted, and an extent of x
/// that is 1 where that of y is not repeats. Up to 5 dimensions.
///
/// Arithmetic is in f32: i32 beyond 2^24 is rounded on its way in. Results round to nearest, those stored as integers
/// saturate, and NaN becomes 0. Where nothing is computed (equal dtypes, alpha 1, beta 0) the bits are copied.
struct TensorTransform {
  TensorSpec x, y;
  /// Elements around x, each as if x held the call's number `value` there. No values: none; else one a dimension.
  std::vector<int64_t> pad_begin, pad_end;
  Blend blend;
  bool dynamic_batch = false;

  static TensorTransform of(const Request& request);
  /// Makes the request; y may have no extents (inferred).
  Request request() const;
};

/// y = value, a number of the call.
struct TensorSet {
  TensorSpec y;
  bool dynamic_batch = false;

  static TensorSet of(const Request& request);
  Request request() const;
};

/// Function that tensor_op computes, in f32. Comparisons and `not` give 1 or 0; NaN compares as IEEE says.
enum class TensorOpMode {
  add,          ///< a + b
  sub,          ///< a - b
  mul,          ///< a b
  div,          ///< a / b
  min,          ///< NaN if either is NaN
  max,          ///< as min
  pow,          ///< a to the power of b, as C's pow
  eq,           ///< a == b
  ne,           ///< a != b
  lt,           ///< a < b
  le,           ///< a <= b
  gt,           ///< a > b
  ge,           ///< a >= b
  sqrt,         ///< of a
  exp,          ///< of a
  log,          ///< of a
  abs,          ///< of a
  neg,          ///< -a
  logical_not,  ///< a == 0; `not` in requests
  select,       ///< b where a is not 0 (NaN is not), else c
};

/// The name in requests. Throws Error(invalid_argument) for a value that is no mode, as inputs_of().
std::string_view to_string(TensorOpMode mode);
/// Every mode, in the order above.
const std::vector<TensorOpMode>& tensor_op_modes();
/// How many of a, b and c the mode reads.
int inputs_of(TensorOpMode mode);

/// y = alpha * op(a, b, c) + beta * y. Inputs have the rank of y, and along each dimension its extent or 1, which
/// repeats. Dtypes may differ; rounding as in TensorTransform.
struct TensorOp {
  TensorSpec a;
  std::optional<TensorSpec> b, c;
  TensorSpec y;
  TensorOpMode mode = TensorOpMode::add;
  Blend blend;
  bool dynamic_batch = false;

  static TensorOp of(const Request& request);
  /// Makes the request; y may have no extents (inferred).
  Request request() const;
};

}  // namespace kiln
