// Sums whose filters depend on where an output lies: the regions of a local convolution, and the segments that they cut
// its gradient into.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "descriptor/window.h"
#include "kiln/generator/operations/conv_pass.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// The regions of a local convolution's outputs along three axes; one where all outputs have the same filters.
struct SpatialRegions {
  RegionAxis planes, rows, columns;

  static SpatialRegions of(const RegionGrid& grid, int axes);
  int64_t count() const { return planes.regions * rows.regions * columns.regions; }
  bool even() const { return planes.even() && rows.even() && columns.even(); }
};

/// GRID_Z, OUTPUTS_Z and so on: what lib/regions.cuh needs.
void add_regions(Prelude& prelude, const SpatialRegions& regions);
/// The same of a single region of all outputs, their numbers as extents: for kernels that have no use for regions.
void add_one_region(Prelude& prelude, const SpatialAxes& axes);

/// Axis that the regions of a local convolution divide where a block works for one of them: the pixels of y, or (where
/// the gradient by the filters is computed) the taps, which are the outputs of the forward convolution. Pixels, or
/// taps, are then those of the largest region. Where the gradient by x is computed, they divide the inputs, which are
/// dy: a block works for a segment of y.
enum class Divided { nothing, pixels, taps, inputs };

/// Pixels of y along three axes, cut wherever a tap meets another region of x than at the pixel before, or begins or
/// ends to meet any (lib/segments.cuh).
struct Segments {
  struct Boxes {
    int64_t pixels;  ///< of an image
    int64_t number;  ///< of segments that have as many
  };
  std::array<std::vector<int64_t>, 3> firsts;  ///< along each axis the first pixel of each, and the end
  std::vector<Boxes> sizes;                    ///< every segment is one of these

  static Segments of(const SpatialAxes& axes, const SpatialRegions& regions);
  int64_t along(size_t axis) const { return static_cast<int64_t>(firsts.at(axis).size()) - 1; }
  int64_t count() const { return along(0) * along(1) * along(2); }
};

/// SEGMENTS_Z, SEGMENT_Z and so on: what lib/segments.cuh needs.
void add_segments(Prelude& prelude, const Segments& segments);

}  // namespace kiln::descriptor
