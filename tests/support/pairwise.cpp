#include "pairwise.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>

namespace kiln::testing_support {
namespace {

// Two parameters with a value each; the same one twice for a space of a single parameter.
using Pair = std::pair<std::pair<std::string, int64_t>, std::pair<std::string, int64_t>>;

// The pairs of every point, as numbers from 0 on.
struct Pairs {
  std::vector<std::vector<size_t>> of_point;
  size_t count = 0;
};

Pairs pairs_of(const std::vector<Config>& points) {
  Pairs pairs;
  std::map<Pair, size_t> numbers;
  for (const Config& point : points) {
    const auto& values = point.values();
    std::vector<size_t>& own = pairs.of_point.emplace_back();
    const auto add = [&](size_t i, size_t j) {
      own.push_back(numbers.try_emplace({values[i], values[j]}, numbers.size()).first->second);
    };
    if (values.size() == 1) add(0, 0);
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t j = i + 1; j < values.size(); ++j) add(i, j);
    }
  }
  pairs.count = numbers.size();
  return pairs;
}

// The first point, then always the one with most pairs that are missing; of equals the first in `order`.
std::vector<size_t> greedy_cover(const Pairs& pairs, const std::vector<size_t>& order) {
  std::vector<size_t> cover;
  std::vector<int> missing(pairs.count, 1);
  int most = 0;
  size_t next = 0;
  do {
    cover.push_back(next);
    for (const size_t pair : pairs.of_point[next]) missing[pair] = 0;
    most = 0;
    for (const size_t point : order) {
      int gain = 0;
      for (const size_t pair : pairs.of_point[point]) gain += missing[pair];
      if (gain > most) {
        most = gain;
        next = point;
      }
    }
  } while (most > 0);
  return cover;
}

}  // namespace

std::vector<Config> pairwise_cover(const std::vector<Config>& points) {
  if (points.empty()) return {};
  const Pairs pairs = pairs_of(points);
  std::vector<size_t> order(points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<size_t> smallest = greedy_cover(pairs, order);
  constexpr int attempts = 20;  // more find hardly anything
  std::minstd_rand random(1);
  for (int attempt = 0; attempt < attempts; ++attempt) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    std::vector<size_t> cover = greedy_cover(pairs, order);
    if (cover.size() < smallest.size()) smallest = std::move(cover);
  }
  std::vector<Config> cover;
  for (const size_t point : smallest) cover.push_back(points[point]);
  return cover;
}

std::vector<Config> pairwise_configs(const BoundAlgorithm& algorithm) {
  return pairwise_cover(algorithm.legal());
}

}  // namespace kiln::testing_support
