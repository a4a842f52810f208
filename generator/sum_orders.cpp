#include "sum_orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/generator/batch_invariance.h"
#include "kiln/generator/operation.h"

namespace kiln {
namespace {

// Logarithms of seconds, by order of sums.
using Times = std::map<std::string, double>;

// The best estimate in each order that serves `request`.
Times best_times(const Catalogue& catalogue, const KeyedRequest& request, const Target& target) {
  const DeviceFigures device = reference_figures();
  Times best;
  for (const Algorithm& algorithm : catalogue.algorithms()) {
    if (algorithm.operation() != request->operation) continue;
    const BoundAlgorithm here = algorithm.on(request, target);
    here.for_each_legal([&](const Config& config) {
      const std::optional<std::string> order = here.order_of_sums(config);
      if (!order) return true;
      const double time = std::log(here.estimate(config, device).seconds);
      const auto [known, is_new] = best.try_emplace(*order, time);
      if (!is_new) known->second = std::min(known->second, time);
      return true;
    });
  }
  return best;
}

// None for a batch that is too large for any variant, or for any tensor.
Times times_of_batch(const Catalogue& catalogue, const Request& request, int64_t n, const Target& target) try {
  return best_times(catalogue, with_reference_batch(request, n), target);
} catch (const Error&) {
  return {};
}

std::optional<std::string> best_order(const Catalogue& catalogue, const Request& request, const Target& target) {
  std::optional<Times> sums;
  for (const int64_t n : reference_batches) {
    const Times times = times_of_batch(catalogue, request, n, target);
    if (times.empty()) continue;
    if (!sums) {
      sums = times;
      continue;
    }
    for (auto sum = sums->begin(); sum != sums->end();) {
      const auto here = times.find(sum->first);
      if (here == times.end()) {
        sum = sums->erase(sum);
      } else {
        (sum++)->second += here->second;
      }
    }
  }
  if (!sums) return std::nullopt;
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto best = std::min_element(sums->begin(), sums->end(), less);
  return best == sums->end() ? std::nullopt : std::optional(best->first);
}

}  // namespace

std::optional<std::string> SumOrders::of(const Catalogue& catalogue, const Request& request, const Target& target) {
  constexpr size_t most = 4096;
  const std::string key = fmt::format("{} {} {}.{}", with_reference_batch(request, 1).key(), target.arch.name(),
                                      target.nvrtc_major, target.nvrtc_minor);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
  }
  std::optional<std::string> order = best_order(catalogue, request, target);
  if (lacks_user_text(request)) return order;  // the key is that of the request with the text
  const std::lock_guard lock(mutex_);
  if (known_.size() >= most) known_.clear();
  return known_.try_emplace(key, std::move(order)).first->second;
}

}  // namespace kiln
