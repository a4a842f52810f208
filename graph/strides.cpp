#include "kiln/graph/strides.h"

#include <algorithm>
#include <numeric>

namespace kiln::graph {
namespace {

/// The strides of `to` for the elements that `from` has, in logical order. Runs of dimensions with equal products stand
/// for one another; inside a run of the source all strides must be those of one dimension.
std::optional<Region> reshaped(const Region& from, const Extents& to) {
  Region result{from.offset, to, Extents(to.size(), 0)};
  if (count_elements(to) == 0) return result;
  // Extents of 1 have no say.
  std::vector<size_t> source;
  for (size_t d = 0; d < from.extents.size(); ++d) {
    if (from.extents[d] != 1) source.push_back(d);
  }
  size_t s = 0, t = 0;
  while (s < source.size()) {
    size_t last_s = s + 1, first_t = t;
    int64_t have = from.extents[source[s]], want = 1;
    while (want != have || last_s == s) {
      if (want < have) {
        if (t == to.size()) return std::nullopt;
        want *= to[t++];
      } else {
        have *= from.extents[source[last_s++]];
      }
    }
    for (size_t i = s; i + 1 < last_s; ++i) {
      const size_t outer = source[i], inner = source[i + 1];
      if (from.strides[outer] != from.strides[inner] * from.extents[inner]) return std::nullopt;
    }
    int64_t stride = from.strides[source[last_s - 1]];
    for (size_t d = t; d-- > first_t;) {
      result.strides[d] = stride;
      stride *= to[d];
    }
    s = last_s;
  }
  return result;
}

}  // namespace

std::vector<size_t> channels_last_order(size_t rank) {
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  if (rank > 2) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

Region packed(const Extents& extents, const std::vector<size_t>& order) {
  Region region{0, extents, Extents(extents.size(), 1)};
  std::vector<size_t> outermost_first = order;
  if (order.empty()) {
    outermost_first.resize(extents.size());
    std::iota(outermost_first.begin(), outermost_first.end(), size_t{0});
  }
  int64_t stride = 1;
  for (auto d = outermost_first.rbegin(); d != outermost_first.rend(); ++d) {
    region.strides[*d] = stride;
    stride *= std::max<int64_t>(extents[*d], 1);
  }
  return region;
}

std::optional<Region> seen_through(const ViewKind& kind, const Region& source, const Extents& result) {
  struct Visitor {
    const Region& source;
    const Extents& result;
    std::optional<Region> operator()(const Reshape&) const { return reshaped(source, result); }
    std::optional<Region> operator()(const Permute& permute) const {
      Region region{source.offset, result, {}};
      for (const size_t d : permute.order) region.strides.push_back(source.strides[d]);
      return region;
    }
    std::optional<Region> operator()(const Slice& slice) const {
      Region region{source.offset, result, source.strides};
      for (size_t d = 0; d < result.size(); ++d) {
        region.offset += slice.begin[d] * source.strides[d];
        region.strides[d] *= slice.step[d];
      }
      if (count_elements(result) == 0) region.offset = source.offset;
      return region;
    }
    std::optional<Region> operator()(const Repeat&) const {
      Region region{source.offset, result, source.strides};
      for (size_t d = 0; d < result.size(); ++d) {
        if (source.extents[d] == 1) region.strides[d] = 0;
      }
      return region;
    }
  };
  return std::visit(Visitor{source, result}, kind);
}

std::optional<Region> seen_back(const ViewKind& kind, const Region& result, const Extents& source) {
  struct Visitor {
    const Region& result;
    const Extents& source;
    std::optional<Region> operator()(const Reshape&) const { return reshaped(result, source); }
    std::optional<Region> operator()(const Permute& permute) const {
      Region region{result.offset, source, Extents(source.size())};
      for (size_t d = 0; d < source.size(); ++d) region.strides[permute.order[d]] = result.strides[d];
      return region;
    }
    std::optional<Region> operator()(const Slice&) const { return std::nullopt; }
    std::optional<Region> operator()(const Repeat&) const { return std::nullopt; }
  };
  return std::visit(Visitor{result, source}, kind);
}

void merge_dimensions(std::vector<Region*> regions) {
  const size_t rank = regions.front()->extents.size();
  std::vector<size_t> kept;  // the innermost dimension of each that is left
  const auto is_one = [&](size_t d) {
    return std::all_of(regions.begin(), regions.end(), [&](const Region* r) { return r->extents[d] == 1; });
  };
  const auto may_merge = [&](size_t outer, size_t inner) {
    return std::all_of(regions.begin(), regions.end(), [&](const Region* r) {
      const bool outer_repeats = r->extents[outer] == 1, inner_repeats = r->extents[inner] == 1;
      if (outer_repeats || inner_repeats) return outer_repeats && inner_repeats;
      return r->strides[outer] == r->strides[inner] * r->extents[inner];
    });
  };
  // From the outside in: groups of dimensions, each of which becomes one.
  std::vector<std::vector<size_t>> groups;
  for (size_t d = 0; d < rank; ++d) {
    if (is_one(d)) continue;
    if (!groups.empty() && may_merge(groups.back().back(), d)) {
      groups.back().push_back(d);
    } else {
      groups.push_back({d});
    }
  }
  for (Region* region : regions) {
    Region merged{region->offset, {}, {}};
    for (const std::vector<size_t>& group : groups) {
      int64_t extent = 1;
      for (const size_t d : group) extent *= region->extents[d];
      merged.extents.push_back(extent);
      merged.strides.push_back(region->strides[group.back()]);
    }
    if (groups.empty()) {
      merged.extents = {1};
      merged.strides = {1};
    }
    *region = std::move(merged);
  }
}

void write_packed(std::span<const std::byte> elements, int64_t size, const Extents& extents,
                  const std::vector<size_t>& order, std::byte* to) {
  Region from = packed(extents), at = packed(extents, order);
  merge_dimensions({&from, &at});
  int64_t run = size;  // bytes that lie together in both
  if (at.strides.back() == 1) {
    run *= at.extents.back();
    at.extents.pop_back();
    at.strides.pop_back();
  }
  Extents index(at.extents.size(), 0);
  int64_t offset = 0;
  const auto step = static_cast<size_t>(run);
  // An odometer over the logical order; the innermost dimension turns fastest.
  for (size_t done = 0; done < elements.size(); done += step) {
    std::copy_n(elements.data() + done, step, to + offset);
    for (size_t d = index.size(); d-- > 0;) {
      offset += at.strides[d] * size;
      if (++index[d] < at.extents[d]) break;
      offset -= at.extents[d] * at.strides[d] * size;
      index[d] = 0;
    }
  }
}

}  // namespace kiln::graph
