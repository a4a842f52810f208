#include "kiln/tuner/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>

#include "kiln/base/digest.h"
#include "kiln/base/error.h"

namespace kiln::tuner {
namespace {

bool parse_number(std::string_view text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// How much a load prefers a shard: a hash that never changes.
uint64_t preference(const std::string& key, uint64_t shard) {
  const std::string digest = digest_of(fmt::format("{} {}", shard, key));
  uint64_t hash = 0;
  std::from_chars(digest.data(), digest.data() + 16, hash, 16);
  return hash;
}

}  // namespace

Shard Shard::parse(const std::string& text) {
  Shard shard;
  const size_t slash = text.find('/');
  const bool parsed = slash != std::string::npos &&
                      parse_number(std::string_view(text).substr(0, slash), shard.index) &&
                      parse_number(std::string_view(text).substr(slash + 1), shard.count);
  if (!parsed || shard.index >= shard.count) {
    throw Error(ErrorCode::parse_error, fmt::format("'{}' is not a shard", text),
                "write i/N with 0 <= i < N, e.g. 0/4 for the first of four");
  }
  if (shard.count > most) {
    throw Error(ErrorCode::parse_error, fmt::format("'{}' is a shard of too many: there may be {}", text, most),
                "a shard without layers has nothing to do: take no more shards than layers");
  }
  return shard;
}

std::vector<uint64_t> shards_of(std::span<const Load> loads, uint64_t count) {
  constexpr double full = 1.1;  // of the mean
  std::vector<size_t> order(loads.size());
  std::iota(order.begin(), order.end(), size_t{0});
  double sum = 0;
  for (const Load& load : loads) sum += load.seconds;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return loads[a].seconds != loads[b].seconds ? loads[a].seconds > loads[b].seconds : loads[a].key < loads[b].key;
  });
  const double room = full * sum / static_cast<double>(count);
  // Only as many shards as there are loads can get one: a count of a billion costs nothing.
  std::vector<uint64_t> shards(loads.size(), 0);
  std::vector<double> taken(std::min<uint64_t>(count, loads.size() * 8), 0.0);
  for (const size_t i : order) {
    const Load& load = loads[i];
    std::vector<std::pair<uint64_t, uint64_t>> wanted;
    for (uint64_t shard = 0; shard < taken.size(); ++shard) wanted.emplace_back(preference(load.key, shard), shard);
    std::sort(wanted.rbegin(), wanted.rend());
    const auto found = std::find_if(wanted.begin(), wanted.end(),
                                    [&](const auto& each) { return taken[each.second] + load.seconds <= room; });
    const auto least = std::min_element(
        wanted.begin(), wanted.end(), [&](const auto& a, const auto& b) { return taken[a.second] < taken[b.second]; });
    shards[i] = (found == wanted.end() ? least : found)->second;
    taken[shards[i]] += load.seconds;
  }
  return shards;
}

}  // namespace kiln::tuner
