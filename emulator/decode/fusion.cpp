#include "decode/fusion.h"

namespace kiln::emulator {
namespace {

bool has_factor(const MultiplyAdd& m, uint32_t factor) {
  return m.a == factor || m.b == factor;
}

/// The factor that most of the following operations share.
uint32_t common_factor(const std::vector<MultiplyAdd>& run, size_t first) {
  const auto length = [&](uint32_t factor) {
    size_t k = first;
    while (k < run.size() && has_factor(run[k], factor)) ++k;
    return k - first;
  };
  return length(run[first].b) > length(run[first].a) ? run[first].b : run[first].a;
}

}  // namespace

uint32_t fma_run_length(const std::vector<Operation>& operations, uint32_t first) {
  uint32_t end = first;
  while (end < operations.size() && operations[end].fusable) ++end;
  return end > first ? end - first : 1;
}

uint32_t append_groups(const std::vector<MultiplyAdd>& run, std::vector<uint32_t>& lists) {
  uint32_t groups = 0;
  for (size_t k = 0; k < run.size(); ++groups) {
    const uint32_t factor = common_factor(run, k);
    lists.push_back(factor);
    const size_t length_at = lists.size();
    lists.push_back(0);
    // The factor is read once, so a group ends with an operation that overwrites it.
    for (bool overwritten = false; k < run.size() && !overwritten && has_factor(run[k], factor); ++k) {
      const MultiplyAdd& m = run[k];
      lists.insert(lists.end(), {m.d, m.a == factor ? m.b : m.a, m.c});
      ++lists[length_at];
      overwritten = m.d == factor;
    }
  }
  return groups;
}

}  // namespace kiln::emulator
