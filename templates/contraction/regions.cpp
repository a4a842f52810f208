#include "contraction/regions.h"

#include <algorithm>
#include <string>

namespace kiln::descriptor {
namespace {

std::array<RegionAxis*, 3> axes_of(SpatialRegions& regions) {
  return {&regions.columns, &regions.rows, &regions.planes};
}

// First pixels of the segments along one axis of y, and the end.
std::vector<int64_t> first_pixels(const WindowAxis& axis, const RegionAxis& regions) {
  std::vector<int64_t> firsts{0, axis.outputs};
  for (int64_t region = 0; region <= regions.regions; ++region) {
    for (int64_t tap = 0; tap < axis.window; ++tap) {
      // The first pixel whose tap is in the region, or beyond the last.
      const int64_t first = regions.first(region) + axis.pad_begin - tap * axis.dilation;
      if (first > 0 && first < axis.outputs) firsts.push_back(first);
    }
  }
  std::sort(firsts.begin(), firsts.end());
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  return firsts;
}

// Multiplies each of `boxes` by each extent that segments along another axis have.
std::vector<Segments::Boxes> extended(const std::vector<Segments::Boxes>& boxes, const std::vector<int64_t>& firsts) {
  std::vector<int64_t> extents;
  for (size_t i = 0; i + 1 < firsts.size(); ++i) extents.push_back(firsts[i + 1] - firsts[i]);
  std::sort(extents.begin(), extents.end());
  std::vector<Segments::Boxes> result;
  for (auto first = extents.begin(); first != extents.end();) {
    const auto end = std::upper_bound(first, extents.end(), *first);
    for (const auto& [pixels, number] : boxes) result.push_back({pixels * *first, number * (end - first)});
    first = end;
  }
  return result;
}

}  // namespace

SpatialRegions SpatialRegions::of(const RegionGrid& grid, int axes) {
  SpatialRegions regions;
  for (int i = 0; i < axes; ++i) *axes_of(regions)[static_cast<size_t>(i)] = grid.axis(axes - 1 - i);
  return regions;
}

Segments Segments::of(const SpatialAxes& axes, const SpatialRegions& regions) {
  Segments segments;
  const std::array of_axes{axes.planes, axes.rows, axes.columns};
  const std::array of_regions{regions.planes, regions.rows, regions.columns};
  for (size_t i = 0; i < of_axes.size(); ++i) segments.firsts[i] = first_pixels(of_axes[i], of_regions[i]);
  segments.sizes = {{1, 1}};
  for (const std::vector<int64_t>& firsts : segments.firsts) segments.sizes = extended(segments.sizes, firsts);
  return segments;
}

void add_one_region(Prelude& prelude, const SpatialAxes& axes) {
  prelude.constant("GRID_Z", 1).extent("OUTPUTS_Z", axes.planes.outputs);
  prelude.constant("GRID_P", 1).extent("OUTPUTS_P", axes.rows.outputs);
  prelude.constant("GRID_Q", 1).extent("OUTPUTS_Q", axes.columns.outputs);
}

void add_regions(Prelude& prelude, const SpatialRegions& regions) {
  prelude.constant("GRID_Z", regions.planes.regions).constant("OUTPUTS_Z", regions.planes.outputs);
  prelude.constant("GRID_P", regions.rows.regions).constant("OUTPUTS_P", regions.rows.outputs);
  prelude.constant("GRID_Q", regions.columns.regions).constant("OUTPUTS_Q", regions.columns.outputs);
}

void add_segments(Prelude& prelude, const Segments& segments) {
  const std::array names{"Z", "P", "Q"};
  for (size_t i = 0; i < names.size(); ++i) {
    prelude.constant(std::string("SEGMENTS_") + names[i], segments.along(i));
    prelude.table(std::string("SEGMENT_") + names[i], segments.firsts[i]);
  }
}

}  // namespace kiln::descriptor
