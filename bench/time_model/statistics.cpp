#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln::bench {
namespace {

// Ranks, the mean of them among equals.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) result[order[i]] = static_cast<double>(begin + end - 1) / 2;
    begin = end;
  }
  return result;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n,
               mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return aa == 0 || bb == 0 ? 0 : ab / std::sqrt(aa * bb);
}

}  // namespace

Judgement judge(const std::vector<Pair>& pairs) {
  std::vector<double> measured, modelled;
  double sum = 0, squares = 0;
  for (const Pair& pair : pairs) {
    measured.push_back(pair.measured);
    modelled.push_back(pair.modelled);
    const double ratio = std::log(pair.modelled / pair.measured);
    sum += ratio;
    squares += ratio * ratio;
  }
  const auto n = static_cast<double>(pairs.size());
  Judgement result;
  result.spearman = correlation(ranks(measured), ranks(modelled));
  result.mean = std::exp(sum / n);
  result.spread = std::exp(std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n))));
  std::vector<Pair> order = pairs;
  std::stable_sort(order.begin(), order.end(), [](const Pair& a, const Pair& b) { return a.modelled < b.modelled; });
  const double best = *std::min_element(measured.begin(), measured.end());
  double found = order.front().measured;
  result.favourite = best / found;
  for (size_t i = 0; i < std::min<size_t>(16, order.size()); ++i) found = std::min(found, order[i].measured);
  result.best_of_16 = best / found;
  return result;
}

}  // namespace kiln::bench
