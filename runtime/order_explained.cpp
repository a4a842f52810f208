#include "order_explained.h"

#include <utility>
#include <vector>

namespace kiln {
namespace {

std::optional<Selection> first_stored(const Selector& selector) {
  std::vector<Selection> stored = selector.stored();
  return stored.empty() ? std::nullopt : std::optional(std::move(stored.front()));
}

}  // namespace

std::optional<ExplainedOrder> explained_order(const Selector& selector, const Candidates& candidates) {
  Variants& variants = selector.variants;
  if (!variants.request()->batch_invariant) return std::nullopt;
  const std::optional<std::string> order = variants.catalogue().order_of_sums(*variants.request(), variants.target());
  if (!order) return std::nullopt;
  ExplainedOrder result{*order, 1, "estimate"};

  Request request = *variants.request();
  request.batch_invariant = false;
  Variants free = variants.catalogue().on(std::move(request), variants.target());
  Selector without{free, selector.winners, selector.bundles, selector.figures, selector.filter, selector.permissions};
  const std::optional<Selection> stored = first_stored(selector), stored_without = first_stored(without);
  if (stored && stored_without && stored->source == stored_without->source) {
    result.slowdown = stored->seconds / stored_without->seconds;
    result.basis = stored->source;
    return result;
  }
  const std::vector<Selection> best = selector.estimated(candidates, 1);
  const std::vector<Selection> best_without = without.estimated(without.candidates(), 1);
  if (best.empty() || best_without.empty()) return std::nullopt;
  result.slowdown = best.front().seconds / best_without.front().seconds;
  return result;
}

}  // namespace kiln
