// Losses: cross entropy of softmax, forward and backward.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include <cstdint>
#include <optional>

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/generator/operations/cross_entropy.h"
#include "kiln/tensor.h"

namespace kiln {

struct CrossEntropyOptions {
  LossReduction reduction = LossReduction::mean;
  int64_t ignore = -100;            ///< The target that excludes a row.
  std::optional<Tensor> weights{};  ///< f32, one for each of C classes; default 1.
  float smoothing = 0;              ///< The part of a target spread over all classes, 0 to 1.
  float alpha = 1;
  float beta = 0;
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket; not for the gradient of a mean.
  Epilogue epilogue = {};      ///< User code only: expression(). A prologue applies to the logits, x.
};

/// Enqueues loss = epilogue(alpha * cross_entropy(softmax(x), targets) + beta * loss) on `stream` and returns without
/// waiting. The epilogue of a sum or mean over a dynamic batch is refused.
///
/// A row is the C logits of one image at one place. Its loss is log(sum over c of exp(x[c])) - x[target]. It is
/// computed from the logits, so no exponential overflows, and no logarithm is taken of a probability that rounds to 0.
///
/// With weights w and smoothing e, as in torch.nn.functional.cross_entropy, the loss is (1 - e) w[target] times the
/// above, plus e / C times the sum over c of w[c] (log(sum of exp(x)) - x[c]).
///
/// x: N,C and up to three spatial dimensions   targets: i32, the extents of x without C loss: with LossReduction::none
/// the extents of targets; else 1 element: the sum over rows, or this sum divided by the number of rows that count or,
/// with weights, by the sum of their targets' weights (NaN if no row counts).
///
/// Rows whose target is `ignore` do not count: their loss is 0 for any logits. Any other target that is no class gives
/// NaN, and nothing outside x is read. Any strides; dtypes of x and loss may differ; sums are in f32. loss must share
/// no element with x, targets or weights. Bitwise reproducible. An empty batch has the sum 0 and the mean NaN. Errors,
/// first call, workspace and threads as for conv_forward().
void cross_entropy_forward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& loss,
                           const CrossEntropyOptions& options = {}, Stream stream = nullptr);

/// Enqueues dx = epilogue(alpha * g + beta * dx) on `stream` and returns without waiting; g is the gradient with
/// respect to x of cross_entropy_forward() without its epilogue: dloss * (softmax(x)[c] - (c == target)), for the mean
/// over the divisor of the mean. CrossEntropy has the formula with weights and smoothing.
///
/// x, targets: as in the forward   dloss: as loss in the forward   dx: the extents of x, any strides. The gradient is 0
/// for rows that do not count, and NaN for rows whose target is no class. In place: dx may be x itself, with its dtype
/// and strides; otherwise dx must share no element with the others. Bitwise reproducible. Otherwise as
/// cross_entropy_forward().
void cross_entropy_backward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& dloss,
                            const Tensor& dx, const CrossEntropyOptions& options = {}, Stream stream = nullptr);

/// The same with a dloss of 1, for the last layer of a training step.
void cross_entropy_backward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& dx,
                            const CrossEntropyOptions& options = {}, Stream stream = nullptr);

}  // namespace kiln
