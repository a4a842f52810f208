// Activation functions, forward and backward.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include <optional>

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/generator/operations/activation.h"
#include "kiln/tensor.h"

namespace kiln {

/// A function that another operation, such as norm_forward(), applies to its result.
struct Activation {
  ActivationMode mode = ActivationMode::identity;
  /// The numbers of the mode, as in ActivationOptions.
  std::optional<float> slope = std::nullopt, offset = std::nullopt, low = std::nullopt, high = std::nullopt;
};

struct ActivationOptions {
  ActivationMode mode = ActivationMode::relu;
  /// The numbers of the mode (ActivationMode says which it reads). Numbers that are not given are usual_numbers(mode).
  /// None may be NaN; low <= high, and the high of clipped_relu is not below 0.
  std::optional<float> slope = std::nullopt, offset = std::nullopt, low = std::nullopt, high = std::nullopt;
  float alpha = 1;
  float beta = 0;              ///< Not 0: the old content of y (backward: dx) is read.
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket.
  Epilogue epilogue = {};      ///< User code only: expression().
};

/// Enqueues y = epilogue(alpha * f(x) + beta * y) on `stream` and returns without waiting.
///
/// x, y: f32, f16, bf16, f8e4m3 or f8e5m2, with mode identity also i32, i8 or u8 (rounded to the nearest, saturated;
/// i32 read as f32), of equal extents of 1 to 5 dimensions, any strides; computed in f32. In place: y may be x itself,
/// with its dtype and strides; otherwise they must share no element. Bitwise reproducible.
///
/// For a function of your own, or a chain of functions, call with mode identity and user code as the epilogue. With any
/// mode user code may also have a prologue, through which every element of x passes first. For the gradient of your
/// function, call with mode identity, dy as x and dx as y; the code reads the forward's input or output as a tensor:
/// `expression("acc * slope_at(input)", {{"input", x}})` (docs/user-code.md).
///
/// Throws Error(invalid_argument), nothing enqueued, for other dtypes, extents that differ, memory that overlaps
/// otherwise, an epilogue of stages, and numbers that the mode cannot work with. The first call for a shape compiles,
/// as for conv_forward(). An empty batch is a no-op. Thread-safe.
void activation_forward(Context& context, const Tensor& x, const Tensor& y, const ActivationOptions& options = {},
                        Stream stream = nullptr);

/// Enqueues dx = epilogue(alpha * f'(x) * dy + beta * dx) on `stream`: dx is the gradient with respect to x, dy the one
/// with respect to y = f(x).
///
/// x, dy, dx: as x and y above. In place: dx may be dy itself, or x itself. Where f is constant (relu, clipped_relu,
/// clip, hard_swish, hard_sigmoid), dx is 0 whatever dy is; NaN in x gives NaN. A prologue of user code applies to dy.
/// Errors as activation_forward().
void activation_backward(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dx,
                         const ActivationOptions& options = {}, Stream stream = nullptr);

/// The same from y = f(x) instead of x, for a forward that ran in place. has_derivative_from_y() says for which modes
/// and slopes this is possible; others throw Error(invalid_argument). dx may be y itself too.
void activation_backward_from_y(Context& context, const Tensor& y, const Tensor& dy, const Tensor& dx,
                                const ActivationOptions& options = {}, Stream stream = nullptr);

}  // namespace kiln
