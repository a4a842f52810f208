// CTC loss: connectionist temporal classification, and its gradient.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include <cstdint>
#include <optional>

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/generator/operations/ctc_loss.h"
#include "kiln/tensor.h"

namespace kiln {

struct CtcLossOptions {
  CtcInput input = CtcInput::scores;  ///< Numbers in x: scores, or logarithms of probabilities.
  int64_t blank = 0;                  ///< The class that stands for no label.
  CtcInfinite infinite =
      CtcInfinite::keep;  ///< zero: losses that are infinite, of too few steps for the labels, become 0.
  std::optional<Tensor> input_lengths{};   ///< i32, N: the steps of each image; default: all.
  std::optional<Tensor> target_lengths{};  ///< i32, N: the labels of each image; default: all.
  std::optional<Tensor> prefixes{};        ///< Output, f32, N,T,2L+1: what ctc_loss_backward() needs.
  float alpha = 1;
  float beta = 0;
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket.
  Epilogue epilogue = {};      ///< On loss; user code only: expression().
};

/// Enqueues loss = epilogue(alpha * l + beta * loss) on `stream` and returns without waiting: l_n is -log of the
/// probability of all paths that give the labels of image n. CtcLossForward has the formulas.
///
/// x: N,T,C (images, steps, classes)   targets: i32, N,L, none of them the blank   loss: N   (any strides). Sums are
/// f32, bitwise reproducible. A loss is infinite where there are too few steps for the labels, and NaN where a label
/// that counts is no class. An empty batch is a no-op. Errors, first call, workspace and threads as for conv_forward().
void ctc_loss_forward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& loss,
                      const CtcLossOptions& options = {}, Stream stream = nullptr);

struct CtcLossBackwardOptions {
  CtcInput input = CtcInput::scores;  ///< This and the next four: as in the forward.
  int64_t blank = 0;
  CtcInfinite infinite = CtcInfinite::keep;
  std::optional<Tensor> input_lengths{};
  std::optional<Tensor> target_lengths{};
  std::optional<Tensor> dloss{};  ///< N: the gradient of loss; default: 1.
  float alpha = 1;
  float beta = 0;
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket.
  Epilogue epilogue = {};      ///< On dx; user code only: expression().
};

/// Enqueues dx = epilogue(alpha * d + beta * dx) on `stream` and returns without waiting: d is the gradient of
/// ctc_loss_forward() with respect to the scores. CtcLossBackward has the formulas.
///
/// x, targets: as in the forward   prefixes: as it gave them   dx: N,T,C. Any strides. Nothing is added atomically:
/// results repeat bit for bit. An empty batch is a no-op. Errors, first call, workspace and threads as for
/// conv_forward().
void ctc_loss_backward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& prefixes,
                       const Tensor& dx, const CtcLossBackwardOptions& options = {}, Stream stream = nullptr);

}  // namespace kiln
