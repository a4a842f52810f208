// Views as arithmetic of strides: where the elements of a value lie in the memory of another.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "kiln/graph/graph.h"

namespace kiln::graph {

/// The elements of a value in some memory: element i is at offset + sum of i[d] * strides[d], counted in elements.
struct Region {
  int64_t offset = 0;
  Extents extents, strides;
};

/// A tensor without gaps. `order`: its dimensions, outermost in memory first; empty for logical order.
Region packed(const Extents& extents, const std::vector<size_t>& order = {});

/// The order of channels last: dimension 1 innermost, as in NHWC, NWC and NDHWC.
std::vector<size_t> channels_last_order(size_t rank);

/// Writes elements of `size` bytes each, given in logical order, to `to` as packed(extents, order) has them.
void write_packed(std::span<const std::byte> elements, int64_t size, const Extents& extents,
                  const std::vector<size_t>& order, std::byte* to);

/// Region of a view's elements, whose source lies in `source`; nothing where no strides describe it, as after some
/// reshapes.
std::optional<Region> seen_through(const ViewKind& kind, const Region& source, const Extents& result);

/// Where the source, of extents `source`, has to lie so that the view's elements lie in `result`; nothing where the
/// view does not show all of its source once.
std::optional<Region> seen_back(const ViewKind& kind, const Region& result, const Extents& source);

/// The same elements with fewer dimensions: neighbours become one where that holds for all of `regions`, which have
/// equal extents but for those of 1 that repeat, and strides 0 there. At least one dimension is left.
void merge_dimensions(std::vector<Region*> regions);

}  // namespace kiln::graph
