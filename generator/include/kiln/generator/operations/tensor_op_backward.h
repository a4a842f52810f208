// tensor_op_backward: the gradient of a tensor_op by one of its inputs, the typed view of its requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kiln/generator/operations/tensor_ops.h"
#include "kiln/generator/request.h"

namespace kiln {

/// Inputs of a tensor_op.
enum class TensorOpInput { a, b, c };

std::string_view to_string(TensorOpInput input);

/// dx = alpha * (the gradient of tensor_op by one input) + beta * dx. Along dimensions in which that input repeats, it
/// is the sum of those of all elements. Of one element, by a:
///
///   add, sub   dy                  by b: dy, -dy
///   mul        dy b                by b: dy a
///   div        dy / b              by b: -dy ((a / b) / b)
///   min, max   dy, dy / 2 where a and b are equal, 0 where b is picked; by b likewise. Both get dy where one is NaN
///   pow        dy (b a^(b - 1)), 0 where b is 0
///              by b: dy (a^b log(a)), 0 where a is 0 and b is 0 or more
///   sqrt       dy (1/2 / sqrt(a))   exp   dy exp(a)       log   dy / a
///   abs        dy sign(a); sign(0) is 0                  neg   -dy
///   select     by b: dy where a is not 0, else 0; by c the other way round
///
/// Comparisons, `not` and the a of select have none.
///
/// dy: extents of y. a, b: those of tensor_op; a gradient takes the ones that it reads and no others. dx: in each
/// dimension dy's extent, or 1 where the input repeats. 1 to 5 dimensions.
struct TensorOpBackward {
  TensorSpec dy, dx;
  std::optional<TensorSpec> a, b;
  TensorOpMode mode = TensorOpMode::add;
  TensorOpInput input = TensorOpInput::a;  ///< The input whose gradient it is.
  Blend blend;
  bool dynamic_batch = false;

  static TensorOpBackward of(const Request& request);
  /// Makes the request; dx may have no extents where the input of the gradient is given (inferred).
  Request request() const;

  /// The dimensions along which gradients are added up.
  std::vector<int64_t> axes() const;
};

/// Whether there is such a gradient, and whether it reads a and b.
bool has_gradient(TensorOpMode mode, TensorOpInput by);
bool gradient_reads_a(TensorOpMode mode, TensorOpInput by);
bool gradient_reads_b(TensorOpMode mode, TensorOpInput by);

}  // namespace kiln
