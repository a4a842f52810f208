#include "kiln/graph/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "kiln/base/checked.h"
#include "kiln/base/error.h"

namespace kiln::graph {
namespace {

constexpr size_t most_looks = size_t{1} << 28;  // at some 2 ns each: of 23,000 values each at all that are placed

int64_t rounded(int64_t bytes) {
  return (bytes + memory_alignment - 1) / memory_alignment * memory_alignment;
}

/// Offsets are at most the sum of all sizes.
void require_sum_that_fits(std::span<const Lifetime> lifetimes) {
  std::optional<int64_t> sum = 0;
  for (const Lifetime& life : lifetimes) {
    const auto end = checked_add(life.bytes, memory_alignment);
    sum = sum && end && life.bytes >= 0 ? checked_add(*sum, *end) : std::nullopt;
  }
  if (!sum) throw Error(ErrorCode::out_of_memory, "what the model computes takes more than 2^63 bytes");
}

/// The most bytes at one step.
int64_t least_of(std::span<const Lifetime> lifetimes) {
  std::vector<std::pair<size_t, int64_t>> changes;
  for (const Lifetime& life : lifetimes) {
    changes.emplace_back(life.first, rounded(life.bytes));
    changes.emplace_back(life.last + 1, -rounded(life.bytes));
  }
  std::sort(changes.begin(), changes.end());  // what ends before a step is gone when others begin there
  int64_t now = 0, most = 0;
  for (const auto& [step, bytes] : changes) {
    now += bytes;
    most = std::max(most, now);
  }
  return most;
}

/// Places the values of `order` behind all others, in the time of a sort: each takes the memory of one that has ended,
/// the smallest that is large enough, or new memory.
void place_behind(std::span<const Lifetime> lifetimes, std::span<size_t> order, MemoryPlan& plan) {
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].first < lifetimes[b].first; });
  struct Block {
    int64_t bytes, offset;
  };
  std::multimap<size_t, Block> used;     // by the last step of who lies there
  std::multimap<int64_t, int64_t> free;  // bytes and offset
  for (const size_t i : order) {
    const Lifetime& life = lifetimes[i];
    if (life.bytes == 0) continue;
    while (!used.empty() && used.begin()->first < life.first) {
      const Block ended = used.extract(used.begin()).mapped();
      free.emplace(ended.bytes, ended.offset);
    }
    Block block{rounded(life.bytes), plan.bytes};
    if (const auto fitting = free.lower_bound(block.bytes); fitting != free.end()) {
      block = {fitting->first, fitting->second};
      free.erase(fitting);
    } else {
      plan.bytes += block.bytes;
    }
    plan.offsets[i] = block.offset;
    used.emplace(life.last, block);
  }
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes) {
  require_sum_that_fits(lifetimes);
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  plan.least = least_of(lifetimes);
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  std::vector<size_t> placed;  // by their offsets
  size_t looks = 0;
  for (const size_t i : order) {
    const Lifetime& life = lifetimes[i];
    if (life.bytes == 0) break;  // and so do those behind: they lie anywhere
    if (looks > most_looks) {
      place_behind(lifetimes, std::span(order).subspan(placed.size()), plan);
      break;
    }
    looks += placed.size();
    int64_t offset = 0;
    for (const size_t other : placed) {
      const bool at_once = lifetimes[other].first <= life.last && life.first <= lifetimes[other].last;
      if (!at_once) continue;
      if (offset + rounded(life.bytes) <= plan.offsets[other]) break;
      offset = std::max(offset, plan.offsets[other] + rounded(lifetimes[other].bytes));
    }
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + rounded(life.bytes));
    const auto behind = std::upper_bound(placed.begin(), placed.end(), offset,
                                         [&](int64_t at, size_t other) { return at < plan.offsets[other]; });
    placed.insert(behind, i);
  }
  return plan;
}

}  // namespace kiln::graph
