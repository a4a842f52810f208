// prologue_slack() of reductions. docs/numerics.md, "User code", derives the bounds.
#include <algorithm>
#include <cmath>
#include <functional>

#include "kiln/generator/operations/reduce.h"
#include "operations/slack_rows.h"
#include "slack.h"

namespace kiln::reference::slack {
namespace {

// How far a product of elements moves: at most prod(|x| + d) - prod(|x|), which is reached where all move away from 0.
class ProductSlack {
 public:
  void take(double x, double perturbation, bool skips_zeros) {
    is_open_ = is_open_ || !std::isfinite(perturbation);
    is_nan_ = is_nan_ || std::isnan(x);
    is_infinite_ = is_infinite_ || std::isinf(x);
    if (!std::isfinite(x) || !std::isfinite(perturbation)) return;
    const bool may_be_zero = perturbation > 0 && std::fabs(x) <= perturbation;
    if (skips_zeros && may_be_zero) perturbation = x == 0 ? 1 + perturbation : std::max(perturbation, std::fabs(1 - x));
    const double size = skips_zeros && x == 0 ? 1 : std::fabs(x);
    may_be_zero_ = may_be_zero_ || may_be_zero;
    slack_ = slack_ * (size + perturbation) + size_ * perturbation;
    size_ *= size;
  }

  // Combines the factors of both.
  ProductSlack& operator+=(const ProductSlack& other) {
    slack_ = slack_ * (other.size_ + other.slack_) + size_ * other.slack_;
    size_ *= other.size_;
    is_open_ = is_open_ || other.is_open_;
    is_nan_ = is_nan_ || other.is_nan_;
    is_infinite_ = is_infinite_ || other.is_infinite_;
    may_be_zero_ = may_be_zero_ || other.may_be_zero_;
    return *this;
  }

  // An infinite product keeps its sign, or stays NaN, unless a factor may pass 0.
  double value() const {
    if (is_nan_) return 0;
    if (is_open_ || std::isnan(slack_)) return infinity;
    return is_infinite_ ? (may_be_zero_ ? infinity : 0) : slack_;
  }

 private:
  double size_ = 1, slack_ = 0;  // of those so far
  bool is_open_ = false, is_nan_ = false, is_infinite_ = false, may_be_zero_ = false;
};

}  // namespace

std::vector<float> of_product(const Question& asked) {
  const Reduce reduce = Reduce::of(asked.plain);
  const bool skips_zeros = reduce.mode == ReduceMode::mul_no_zeros;
  std::vector<int64_t> axes;
  for (size_t d = 0; d < reduce.y.extents.size(); ++d) {
    if (reduce.y.extents[d] == 1) axes.push_back(static_cast<int64_t>(d));
  }
  const auto products =
      Rows(reduce.x, axes)
          .sums<ProductSlack>([&](ProductSlack& product, size_t element, size_t,
                                  double x) { product.take(x, asked.perturbations[element], skips_zeros); },
                              Repeating(reduce.x, asked.operands.at("x")));
  std::vector<float> slack;
  for (const ProductSlack& product : products) slack.push_back(static_cast<float>(asked.scale * product.value()));
  return slack;
}

// An extreme moves by at most the most that one of its elements does: the least of what is below 0 is the largest.
std::optional<SlackCall> of_reduce(const Question& asked) {
  const ReduceMode mode = Reduce::of(asked.plain).mode;
  if (mode == ReduceMode::mul || mode == ReduceMode::mul_no_zeros) return std::nullopt;
  if (mode != ReduceMode::min) return with_magnitudes(asked);
  std::vector<float> below(asked.perturbations.size());
  std::ranges::transform(asked.perturbations, below.begin(), std::negate());
  Question lowest = asked;
  lowest.perturbations = below;
  return with_magnitudes(lowest);
}

}  // namespace kiln::reference::slack
