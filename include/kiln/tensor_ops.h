// Tensor functions: copies, conversions, constant values, element-wise arithmetic.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include <array>
#include <optional>

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/generator/operations/tensor_op_backward.h"
#include "kiln/generator/operations/tensor_ops.h"
#include "kiln/tensor.h"

namespace kiln {

struct TransformOptions {
  float alpha = 1;
  float beta = 0;  ///< Not 0: what y held before is read.
  /// Elements of padding before and after x, in the order of its extents. Values beyond its rank are ignored.
  std::array<int64_t, Tensor::max_rank> pad_begin{}, pad_end{};
  float value = 0;             ///< The value of the padding.
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket.
  Epilogue epilogue = {};      ///< User code only: expression().
};

/// Enqueues y = epilogue(alpha * pad(x) + beta * y) on `stream` and returns without waiting: another layout, another
/// dtype, a scale, padding, or all at once. A Tensor with the strides of a larger one is a part of the larger one: give
/// such an x to crop, and such a y to concatenate.
///
/// x, y: 1 to 5 dimensions of any dtype and strides. y has x's extents plus the padding; where x has an extent of 1 and
/// no padding, y may have any extent, and x repeats. TensorTransform has the rules of rounding. In place: y may be x
/// itself, with its dtype and strides; otherwise they must share no element. User code may have a prologue, which every
/// element of x passes through first, but not the padding. Bitwise reproducible.
///
/// Throws Error(invalid_argument), nothing enqueued, for extents that do not fit, negative padding, memory that
/// overlaps, and an epilogue of stages. The first call for a shape compiles, as for conv_forward(). An empty tensor is
/// a no-op. Thread-safe.
void tensor_transform(Context& context, const Tensor& x, const Tensor& y, const TransformOptions& options = {},
                      Stream stream = nullptr);

/// y = alpha * x + beta * y, where x may repeat along dimensions in which its extent is 1: tensor_transform() without
/// padding.
void tensor_add(Context& context, const Tensor& x, const Tensor& y, float alpha = 1, float beta = 1,
                Stream stream = nullptr);

/// y = alpha * y: tensor_transform() in place.
void tensor_scale(Context& context, const Tensor& y, float alpha, Stream stream = nullptr);

/// y = value, rounded to y's dtype. Errors as tensor_transform().
void tensor_set(Context& context, const Tensor& y, float value, Stream stream = nullptr);

/// y = epilogue(value), by user code and the tensors that it reads. Errors as tensor_transform().
void tensor_set(Context& context, const Tensor& y, float value, const Epilogue& epilogue, Stream stream = nullptr);

struct TensorOpOptions {
  float alpha = 1;
  float beta = 0;              ///< Not 0: what y held before is read.
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket.
  Epilogue epilogue = {};      ///< User code only: expression().
};

/// Enqueues y = epilogue(alpha * op(a, b, c) + beta * y) on `stream` and returns without waiting. Takes as many inputs
/// as `mode` reads: one for sqrt and the like, three for select, else two.
///
/// Inputs have y's rank, and along each dimension its extent or 1, which repeats. Any dtypes and strides. In place: y
/// may be one of the inputs itself. User code may have a prologue, which every element of a passes through first.
/// Chains of such operations run as one kernel by user code: activation_forward() with mode identity. Errors,
/// reproducibility and threads as tensor_transform().
void tensor_op(Context& context, TensorOpMode mode, const Tensor& a, const Tensor& y,
               const TensorOpOptions& options = {}, Stream stream = nullptr);
void tensor_op(Context& context, TensorOpMode mode, const Tensor& a, const Tensor& b, const Tensor& y,
               const TensorOpOptions& options = {}, Stream stream = nullptr);
void tensor_op(Context& context, TensorOpMode mode, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& y,
               const TensorOpOptions& options = {}, Stream stream = nullptr);

struct TensorOpBackwardOptions {
  std::optional<Tensor> a{}, b{};  ///< The inputs that the gradient reads.
  float alpha = 1;
  float beta = 0;              ///< Not 0: what dx held before is read.
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket; not where dx repeats along it.
  Epilogue epilogue = {};      ///< User code only: expression().
};

/// Enqueues dx = epilogue(alpha * g + beta * dx) on `stream` and returns without waiting: g is the gradient of
/// tensor_op() by one input, of which dy is that of y. TensorOpBackward
/// (kiln/generator/operations/tensor_op_backward.h) has the formulas, and which inputs are read.
///
/// dy: 1 to 5 dimensions. a, b, dx: in each dimension the extent of dy, or 1, along which inputs repeat and gradients
/// are added up. f32, f16 and bf16, of each operand for itself; any strides. Bitwise reproducible: sums that blocks
/// share are merged in a fixed order. dx must not overlap other operands.
///
/// Throws Error(invalid_argument), nothing enqueued, for modes without such a gradient, inputs that are missing or not
/// read, and extents that do not fit. First call and threads as for conv_forward().
void tensor_op_backward(Context& context, TensorOpMode mode, TensorOpInput input, const Tensor& dy, const Tensor& dx,
                        const TensorOpBackwardOptions& options = {}, Stream stream = nullptr);

}  // namespace kiln
