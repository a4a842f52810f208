// ctc_loss_forward and ctc_loss_backward: connectionist temporal classification, and its gradient; the typed view of
// their requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kiln/generator/request.h"

namespace kiln {

/// Meaning of the numbers in x.
enum class CtcInput {
  scores,             ///< Scores: their softmax over the classes is the probabilities.
  log_probabilities,  ///< Logarithms of probabilities.
};

/// Treatment of losses that are infinite: of too few steps for the labels, or of probability 0.
enum class CtcInfinite {
  keep,
  zero,  ///< They are 0, and so are their gradients.
};

std::string_view to_string(CtcInput input);
std::string_view to_string(CtcInfinite infinite);

/// The part that the two share.
struct CtcLoss {
  TensorSpec x, targets;
  std::optional<TensorSpec> input_lengths, target_lengths;
  CtcInput input = CtcInput::scores;
  int64_t blank = 0;  ///< The class that stands for no label.
  CtcInfinite infinite = CtcInfinite::keep;
  Blend blend;
  bool dynamic_batch = false;

  int64_t images() const { return x.extents[0]; }
  int64_t steps() const { return x.extents[1]; }
  int64_t classes() const { return x.extents[2]; }
  int64_t labels() const { return targets.extents[1]; }
  int64_t states() const { return 2 * labels() + 1; }  ///< Labels, and a blank before, between and behind them.
};

/// loss_n = -log of the sum, over all paths of T_n classes that become the L_n labels of image n when equal neighbours
/// are merged and blanks left out, of the product of the path's probabilities.
///
/// x: N,T,C (images, steps, classes)   targets: N,L of i32, no blanks   loss: N   (any strides)
/// input_lengths: N, steps of each image, T_n from 0 to T; target_lengths: N, labels, L_n from 0 to L; others count as
/// the nearest of these. A loss is infinite if there are too few steps for the labels, or all paths have probability 0;
/// NaN if there is a step, and a label that counts is no class or blank.
///
/// prefixes: N,T,2L+1, for the gradient: the logarithm of the probability of all paths that are in a state (labels with
/// blanks between them) at a step, less the largest one of the step; -inf where there is no such path, and behind the
/// steps and states that count.
///
/// Graves et al., Connectionist Temporal Classification (2006).
struct CtcLossForward : CtcLoss {
  TensorSpec loss;
  std::optional<TensorSpec> prefixes;

  static CtcLossForward of(const Request& request);
  /// Makes the request; loss may have no extents (inferred). Throws as Request::parse does.
  Request request() const;
};

/// Gradient of ctc_loss_forward by the scores, from dloss, that of the losses; also where x holds logarithms of
/// probabilities, as PyTorch has it: it is right for those that a softmax gives, whose gradient leaves it as it is.
///
///   dx_ntc = dloss_n (p_ntc - sum over the states of class c of g_nts)
///
/// p: the probability of a class; g: the probability that the path is in a state, of all paths that give the labels. 0
/// behind the steps that count. Where loss is infinite and it is not zeroed, and where it is NaN, dx of the steps that
/// count is NaN.
struct CtcLossBackward : CtcLoss {
  std::optional<TensorSpec> dloss;  ///< Nothing: 1 for each image.
  TensorSpec prefixes, dx;

  static CtcLossBackward of(const Request& request);
  /// Makes the request; dx may have no extents (inferred). Throws as Request::parse does.
  Request request() const;
};

}  // namespace kiln
