#include "overlap.h"

#include <algorithm>
#include <array>
#include <span>

namespace kiln {
namespace {

// Share of one dimension in the distance between an element of one tensor and one of another: stride * [least, most].
struct Term {
  int64_t stride, least, most;
};

// At most one for each dimension of each tensor; those of equal strides are one.
struct Terms {
  std::array<Term, 2 * Tensor::max_rank> list;
  size_t count = 0;

  void add(const Term& term) {
    if (term.stride == 0 || term.least == term.most) return;
    Term* const end = list.data() + count;
    Term* const same = std::find_if(list.data(), end, [&](const Term& t) { return t.stride == term.stride; });
    if (same == end) {
      list[count++] = term;
    } else {
      same->least += term.least;
      same->most += term.most;
    }
  }
};

// Whether the terms can add up to `distance`. Their strides fall: where they nest, as those of two regions of one
// tensor do, a dimension has few candidates. Gives up after `budget` comparisons and says yes.
bool can_reach(std::span<const Term> terms, int64_t distance, int& budget) {
  if (terms.empty()) return distance == 0;
  const Term& outer = terms.front();
  int64_t least = 0, most = 0;
  for (const Term& inner : terms.subspan(1)) {
    least += inner.stride * inner.least;
    most += inner.stride * inner.most;
  }
  // Rounding towards zero may add a candidate at either end, never lose one.
  const int64_t from = std::max(outer.least, (distance - most) / outer.stride);
  const int64_t to = std::min(outer.most, (distance - least) / outer.stride);
  for (int64_t i = from; i <= to; ++i) {
    if (--budget < 0 || can_reach(terms.subspan(1), distance - i * outer.stride, budget)) return true;
  }
  return false;
}

}  // namespace

bool share_elements(const Tensor& a, const Tensor& b) {
  const int64_t size = size_of(a.dtype());
  const auto bytes =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(b.data()) - reinterpret_cast<uintptr_t>(a.data()));
  if (size_of(b.dtype()) != size || bytes % size != 0) return true;
  Terms terms;
  for (int i = 0; i < a.rank(); ++i) terms.add({a.stride(i), 0, a.extent(i) - 1});
  for (int i = 0; i < b.rank(); ++i) terms.add({b.stride(i), 1 - b.extent(i), 0});
  const std::span<Term> list(terms.list.data(), terms.count);
  std::sort(list.begin(), list.end(), [](const Term& p, const Term& q) { return p.stride > q.stride; });
  if (!list.empty() && list.back().stride < 0) return true;  // no request has negative strides
  int budget = 1000;
  return can_reach(list, bytes / size, budget);
}

bool is_same_view(const Tensor& a, const Tensor& b) {
  if (a.data() != b.data() || a.dtype() != b.dtype() || a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.extent(i) != b.extent(i) || (a.extent(i) > 1 && a.stride(i) != b.stride(i))) return false;
  }
  return true;
}

}  // namespace kiln
