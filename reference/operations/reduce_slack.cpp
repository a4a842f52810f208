// prologue_slack() of reductions. docs/numerics.md, "User code", derives the bounds.
#include <algorithm>
#include <cmath>

#include "kiln/generator/operations/reduce.h"
#include "kiln/reference/tensor_memory.h"
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

std::vector<float> of_product(const Question& asked) {
  const Reduce reduce = Reduce::of(asked.plain);
  const std::vector<float> x = floats_of(asked.operands, "x");
  std::vector<ProductSlack> products(static_cast<size_t>(reduce.y.elements()));
  std::vector<int64_t> row(reduce.x.extents.size());
  size_t at = 0;
  for_each_coordinate(reduce.x, [&](std::span<const int64_t> coordinate) {
    for (size_t i = 0; i < row.size(); ++i) row[i] = reduce.y.extents[i] == 1 ? 0 : coordinate[i];
    products[static_cast<size_t>(offset_of(reduce.y, row))].take(x[at], asked.perturbations[at],
                                                                 reduce.mode == ReduceMode::mul_no_zeros);
    ++at;
  });
  std::vector<float> slack;
  for (const ProductSlack& product : products) slack.push_back(static_cast<float>(asked.scale * product.value()));
  return slack;
}

}  // namespace

// An extreme moves by at most the most that one of its elements does.
std::vector<float> of_reduce(const Question& asked) {
  const ReduceMode mode = Reduce::of(asked.plain).mode;
  if (mode == ReduceMode::mul || mode == ReduceMode::mul_no_zeros) return of_product(asked);
  if (!has_indices(mode)) return of_sums(asked);
  Request largest = asked.plain;
  for (Attribute& attribute : largest.attributes) {
    if (attribute.name == "mode") attribute.value = std::string("amax");
  }
  return of_sums(
      {largest, asked.output, asked.operands, asked.perturbations, asked.values, asked.sampling, asked.scale});
}

}  // namespace kiln::reference::slack
