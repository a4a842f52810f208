#include "local_norm/tile.h"

#include <algorithm>
#include <array>
#include <vector>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "local_norm/local_norm_rows.h"

namespace kiln::descriptor {
namespace local_norm_tile_descriptor {
namespace {

struct Shape {
  int vector;             // neighbours that a thread takes together
  int inner, tall, free;  // elements of a tile along the innermost dimension, the other axes, and the free dimension
  int threads;
};

// The dimensions of tiles as the kernels see them: the layout's rows are the axes, its inner dimension is the free one.
struct Tiles : LocalNormRows {
  static Tiles of(const Request& request);

  const std::vector<RowDimension>& along() const { return layout.row; }
  const RowDimension& beside() const { return layout.inner; }
  const RowDimension& innermost() const { return free_inner ? layout.inner : layout.row.front(); }

  RowLayout layout;
  bool free_inner = false;
};

Tiles Tiles::of(const Request& request) {
  Tiles tiles;
  static_cast<LocalNormRows&>(tiles) = LocalNormRows::of(request);
  RowLayout& layout = tiles.layout;
  layout.row = tiles.window_dimensions();
  layout.outer = along_rows(tiles).outer;
  layout.inner = {1, std::vector<int64_t>(tiles.operands.size(), 0)};
  layout.across = true;
  if (!tiles.fixed(layout.outer).empty()) {  // the first is the innermost, a dynamic batch the last
    layout.inner = layout.outer.front();
    layout.outer.erase(layout.outer.begin());
  }
  tiles.free_inner =
      layout.row.empty() || (layout.inner.extent > 1 && layout.inner.strides < layout.row.front().strides);
  return tiles;
}

int64_t least(int64_t extent, int tile) {
  return std::min<int64_t>(extent, tile);
}

// The tile's extent along axis `axis`, and along the free dimension.
int64_t tile_along(const Shape& shape, const Tiles& tiles, size_t axis) {
  if (axis >= tiles.along().size()) return 1;
  return least(tiles.along()[axis].extent, axis == 0 && !tiles.free_inner ? shape.inner : shape.tall);
}
int64_t free_tile(const Shape& shape, const Tiles& tiles) {
  return least(tiles.beside().extent, tiles.free_inner ? shape.inner : shape.free);
}

// Elements of the tile with what `windows` windows reach beyond it; of the first `summed` axes one window less.
double region(const Shape& shape, const Tiles& tiles, int64_t windows, size_t summed = 0) {
  auto elements = static_cast<double>(free_tile(shape, tiles));
  for (size_t axis = 0; axis < tiles.along().size(); ++axis) {
    const int64_t reached = (windows - (axis < summed ? 1 : 0)) * (tiles.size - 1);
    elements *= static_cast<double>(tile_along(shape, tiles, axis) + reached);
  }
  return elements;
}

double shared_bytes(const Shape& shape, const Tiles& tiles) {
  const int64_t windows = tiles.backward ? 2 : 1;
  return 4 * (region(shape, tiles, windows) + region(shape, tiles, windows, 1) +
              (tiles.backward ? region(shape, tiles, 0) : 0));
}

bool fits_shared_memory(const Shape& shape, const Tiles& tiles, const Target& target) {
  return shared_bytes(shape, tiles) <= target.arch.shared_per_block_default;
}

bool is_half_used(int tile, int64_t extent, int smallest) {
  return tile == smallest || tile / 2 < extent;
}

bool no_idle_elements(const Shape& shape, const Tiles& tiles, const Target&) {
  int64_t tallest = 1;
  for (size_t axis = tiles.free_inner ? 0 : 1; axis < tiles.along().size(); ++axis) {
    tallest = std::max(tallest, tiles.along()[axis].extent);
  }
  return is_half_used(shape.inner, tiles.innermost().extent, 4) && is_half_used(shape.tall, tallest, 2) &&
         is_half_used(shape.free, tiles.free_inner ? 1 : tiles.beside().extent, 1);
}

// Only neighbours in the free dimension are neighbours in shared memory too.
bool is_aligned(const Shape& shape, const Tiles& tiles, const Target&) {
  if (shape.vector == 1) return true;
  return tiles.free_inner && free_tile(shape, tiles) % shape.vector == 0 &&
         vector_pays(tiles, tiles.layout, shape.vector);
}

// The same dimensions, longer than any tile: those of an open kernel are never cut.
Tiles lengthened(Tiles tiles) {
  constexpr int64_t longer = 1 << 10;
  for (RowDimension& dimension : tiles.layout.row) dimension.extent = longer;
  tiles.layout.inner.extent = longer;
  return tiles;
}

bool has_open_kernel(const Shape& shape, const Tiles& tiles, const Target& target) {
  const auto is = [&](int inner, int tall) { return shape.inner == inner && shape.tall == tall; };
  const bool has_size = is(64, 32) || is(32, 8) || is(16, 8) || is(8, 16) || (is(4, 2) && shape.vector == 1);
  return shape.threads == 256 && shape.free == 1 && has_size && (shape.vector == 1 || shape.vector == 4) &&
         fits_shared_memory(shape, lengthened(tiles), target);
}

int64_t tiles_of(const RowDimension& dimension, int64_t tile) {
  return ceil_div(dimension.extent, tile);
}

// Blocks for each of the outer dimensions' elements. `cut`: dimensions from which the extents of tiles come.
int64_t blocks_per_outer(const Shape& shape, const Tiles& tiles, const Tiles& cut) {
  int64_t blocks = tiles_of(tiles.beside(), free_tile(shape, cut));
  for (size_t axis = 0; axis < tiles.along().size(); ++axis) {
    blocks *= tiles_of(tiles.along()[axis], tile_along(shape, cut, axis));
  }
  return blocks;
}

void add_tiles(Prelude& prelude, const Shape& shape, const Tiles& tiles, const Tiles& cut) {
  std::vector<int64_t> extents(3, 1), along(3, 1);
  for (size_t axis = 0; axis < tiles.along().size(); ++axis) {
    extents.at(axis) = tiles.along()[axis].extent;
    along.at(axis) = tile_along(shape, cut, axis);
  }
  prelude.constant("AXES", static_cast<int64_t>(tiles.along().size()));
  prelude.extents("AXIS_EXTENTS", extents).array("AXIS_TILES", along);
  prelude.constant("FREE_TILE", free_tile(shape, cut)).flag("FREE_INNER", tiles.free_inner);
  prelude.constant("THREADS", shape.threads);
  for (size_t i = 0; i < tiles.operands.size(); ++i) {
    std::vector<int64_t> strides(3, 0);
    for (size_t axis = 0; axis < tiles.along().size(); ++axis) strides.at(axis) = tiles.along()[axis].strides[i];
    prelude.extents(constant_name(tiles.operands[i]) + "_AXIS_STRIDES", strides);
  }
}

Program program(const Shape& shape, const Tiles& tiles, const Target&, const Emitter& emit) {
  Prelude prelude = rows_prelude(tiles, tiles.layout, shape.vector, emit);
  add_local_norm(prelude, tiles);
  const Tiles cut = emit.open() ? lengthened(tiles) : tiles;
  add_tiles(prelude, shape, tiles, cut);
  const std::string entry = tiles.backward ? "local_norm_backward_tile" : "local_norm_forward_tile";
  Launch launch = local_norm_launch(tiles, entry, shape.threads);
  int64_t blocks = blocks_per_outer(shape, tiles, cut);
  for (const RowDimension& dimension : tiles.fixed(tiles.layout.outer)) blocks *= dimension.extent;
  launch.grid[0] = blocks_for(blocks, 1, tiles.dynamic_batch, 1);
  return program_of(emit.source(prelude), launch);
}

std::optional<std::string> refusal(const Tiles& tiles, const Target& target) {
  if (tiles.elements() == 0) return "there is nothing to do";
  if (!fits_shared_memory({1, 4, 2, 1, 128}, tiles, target)) return "what a window reaches does not fit shared memory";
  return std::nullopt;
}

// Bytes that an element of the tile makes its block ask for. Runs along the innermost dimension are whole sectors.
double bytes_per_element(const Shape& shape, const Tiles& tiles) {
  const double tile = region(shape, tiles, 0);
  const RowDimension& inner = tiles.innermost();
  const double run = static_cast<double>(tiles.free_inner ? free_tile(shape, tiles) : tile_along(shape, tiles, 0));
  double bytes = 0;
  for (size_t i = 0; i < tiles.operands.size(); ++i) {
    const double size = size_of(tiles.operands[i].spec.dtype);
    const double element = std::max(lane_bytes(size, static_cast<double>(inner.strides[i]) * size), 32 / run);
    const double regions = i < 2                      ? region(shape, tiles, tiles.backward ? 2 : 1) / tile + 1
                           : tiles.backward && i == 2 ? region(shape, tiles, 1) / tile
                                                      : 1;
    bytes += inner.strides[i] == 0 ? 0 : element * regions;
  }
  return bytes;
}

// Instructions of all threads for one tile.
double instructions_of(const Shape& shape, const Tiles& tiles) {
  const double vector = shape.vector;
  const int64_t windows = tiles.backward ? 2 : 1;
  double instructions =
      (22 + 3 * vector) * region(shape, tiles, windows) + (25 + 10 * vector) * region(shape, tiles, 0);
  if (tiles.backward) instructions += (25 + 15 * vector) * region(shape, tiles, 1);
  for (int64_t window = windows; window > 0; --window) {
    for (size_t axis = 1; axis <= tiles.along().size(); ++axis) {
      instructions += (12 + (1 + vector) * static_cast<double>(tiles.size)) * region(shape, tiles, window, axis);
    }
  }
  return instructions / vector;
}

Estimate predict(const Shape& shape, const Tiles& tiles, const Target& target, const DeviceFigures& device) {
  StreamingWork work;
  work.dram_bytes = tiles.moved_bytes;
  work.blocks = static_cast<double>(tiles.elements()) / region(shape, tiles, 0);
  work.cache_bytes = static_cast<double>(tiles.elements()) * bytes_per_element(shape, tiles);
  work.threads = work.blocks * shape.threads;
  work.instructions_per_thread = 80 + instructions_of(shape, tiles) / shape.threads;
  work.threads_per_block = shape.threads;
  work.shared_bytes_per_block = shared_bytes(shape, tiles);
  work.registers_per_thread = 40 + 4 * shape.vector;
  work.bytes_in_flight_per_thread = 4.0 * shape.vector * size_of(tiles.operands.front().spec.dtype);
  return streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace local_norm_tile_descriptor

Algorithm local_norm_tile(const std::string& operation) {
  using namespace local_norm_tile_descriptor;
  return describe<Shape, Tiles>(operation + "_tile", operation, "local_norm/" + operation + "_tile.cu")
      .param("VECTOR", &Shape::vector, {4, 2, 1})
      .param("INNER", &Shape::inner, {32, 64, 128, 16, 8, 4})
      .param("TALL", &Shape::tall, {8, 16, 4, 32, 2})
      .param("FREE", &Shape::free, {4, 1, 2, 8, 16})
      .param("THREADS", &Shape::threads, {256, 128})
      .rule("layout, alignment and VECTOR agree", is_aligned)
      .pruning("less than half of the tile is idle", no_idle_elements)
      .rule("the tile fits shared memory", fits_shared_memory)
      .opens(has_open_kernel)
      .applies(refusal)
      .takes_prologue()
      .program(program)
      .estimate(predict);
}

}  // namespace kiln::descriptor
