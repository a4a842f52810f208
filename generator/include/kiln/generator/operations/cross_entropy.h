// cross_entropy_forward and cross_entropy_backward: softmax and the loss of classification in one, the typed view of
// their requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kiln/generator/request.h"

namespace kiln {

/// Reduction of the losses of the rows.
enum class LossReduction {
  none,  ///< One loss a row.
  mean,  ///< Their sum over the number of rows that count, or over the weights of their targets; NaN where none does.
  sum,
};

/// The word of requests; "?" for a value that is none.
std::string_view to_string(LossReduction reduction);

/// The operands of both directions. A row are the C logits of one image and place; t is its target, a class. With
/// logp = log(softmax(x)), weights w (1 without them) and the smoothing e, a number of the call (0 unless `smooths`):
///
///   loss of a row = -(1 - e) w[t] logp[t] - e / C * sum over c of w[c] logp[c]
///   dx[c] = dloss * (((1 - e) w[t] + e / C * sum of w) softmax(x)[c] - (1 - e) w[t] (c == t) - e / C * w[c])
///
/// as torch.nn.functional.cross_entropy has them. Without weights and smoothing that is log(sum over c of exp(x[c])) -
/// x[t], and dloss * (softmax(x)[c] - (c == t)).
///
/// x, dx: N,C and up to three spatial dimensions   targets: i32, the extents of x without C   weights: f32, C
/// losses, dlosses (reduction none): as targets   loss, dloss (mean and sum): 1
///
/// A row whose target is `ignore` does not count: its loss and its gradient are 0, whatever its logits. A target that
/// is no class otherwise makes them NaN, and nothing outside x is read. For the mean, losses and
/// dloss are divided by the number of rows that count, or by the sum of the weights of their targets. A row that holds
/// NaN or +inf, or nothing but -inf, has the loss NaN.
struct CrossEntropy {
  TensorSpec x, targets;
  std::optional<TensorSpec> weights;  ///< Weights of the classes.
  bool smooths = false;               ///< Attribute smoothing=any: targets are smoothed by the number `smoothing`.
  LossReduction reduction = LossReduction::mean;
  int64_t ignore = -100;
  Blend blend;
  bool dynamic_batch = false;

  int64_t classes() const { return x.extents[1]; }
  /// Rows at the request's batch.
  int64_t rows() const { return targets.elements(); }
};

struct CrossEntropyForward : CrossEntropy {
  TensorSpec loss;  ///< The operand `losses` or `loss`, as the reduction says.

  static CrossEntropyForward of(const Request& request);
  /// Makes the request; loss may have no extents (inferred). Throws as Request::parse does.
  Request request() const;
};

struct CrossEntropyBackward : CrossEntropy {
  std::optional<TensorSpec> dloss;  ///< The operand `dlosses` or `dloss`; 1 where there is none.
  TensorSpec dx;

  static CrossEntropyBackward of(const Request& request);
  /// Makes the request; dx may have no extents (inferred). Throws as Request::parse does.
  Request request() const;
};

/// Permitted elements of an operand that holds classes.
struct ClassTargets {
  int64_t classes = 0;  ///< 0 to classes - 1
  int64_t ignore = 0;   ///< or this
};
/// Nothing if `operand` holds no classes.
std::optional<ClassTargets> class_targets(const Request& request, std::string_view operand);
/// Whether `operand` holds weights of classes, which are no less than 0 and not all 0.
bool is_class_weights(const Request& request, std::string_view operand);

}  // namespace kiln
