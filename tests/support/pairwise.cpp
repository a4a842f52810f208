#include "pairwise.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

namespace kiln::testing_support {
namespace {

// Two parameters with a value each; the same one twice for a space of a single parameter.
using Pair = std::pair<std::pair<std::string, int64_t>, std::pair<std::string, int64_t>>;

std::vector<Pair> pairs_of(const Config& config) {
  const auto& values = config.values();
  std::vector<Pair> pairs;
  if (values.size() == 1) pairs.emplace_back(values[0], values[0]);
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i + 1; j < values.size(); ++j) pairs.emplace_back(values[i], values[j]);
  }
  return pairs;
}

}  // namespace

std::vector<Config> pairwise_cover(const std::vector<Config>& points) {
  std::vector<std::vector<Pair>> pairs;
  std::set<Pair> missing;
  for (const Config& point : points) {
    pairs.push_back(pairs_of(point));
    missing.insert(pairs.back().begin(), pairs.back().end());
  }
  std::vector<Config> cover;
  if (points.empty()) return cover;
  size_t best = 0;
  do {
    cover.push_back(points[best]);
    for (const Pair& pair : pairs[best]) missing.erase(pair);
    size_t best_gain = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      const auto gain = static_cast<size_t>(
          std::count_if(pairs[i].begin(), pairs[i].end(), [&](const Pair& pair) { return missing.contains(pair); }));
      if (gain > best_gain) {
        best_gain = gain;
        best = i;
      }
    }
  } while (!missing.empty());
  return cover;
}

std::vector<Config> pairwise_configs(const Space& space, const Request& request, const Target& target) {
  return pairwise_cover(space.legal(request, target));
}

}  // namespace kiln::testing_support
