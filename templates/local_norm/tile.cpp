#include "local_norm/tile.h"

#include <algorithm>
#include <array>
#include <vector>

#include "descriptor/parts.h"
#include "descriptor/streaming_estimate.h"
#include "local_norm/local_norm_rows.h"

namespace kiln::descriptor {
namespace {

struct Shape {
  int inner, tall, free;  // elements of a tile along the innermost dimension, the other axes, and the free dimension
  int threads;
};

// The dimensions of tiles as the kernels see them.
struct Tiles : LocalNormRows {
  static Tiles of(const Request& request);

  std::vector<RowDimension> along;  // the axes, innermost first
  RowDimension beside;              // the free dimension
  std::vector<RowDimension> outer;  // the others
  bool free_inner = false;
};

Tiles Tiles::of(const Request& request) {
  Tiles tiles;
  static_cast<LocalNormRows&>(tiles) = LocalNormRows::of(request);
  tiles.along = tiles.window_dimensions();
  tiles.outer = along_rows(tiles).outer;
  tiles.beside = {1, std::vector<int64_t>(tiles.operands.size(), 0)};
  if (!tiles.fixed(tiles.outer).empty()) {  // the first is the innermost, a dynamic batch the last
    tiles.beside = tiles.outer.front();
    tiles.outer.erase(tiles.outer.begin());
    tiles.free_inner = tiles.along.empty() || tiles.beside.strides < tiles.along.front().strides;
  }
  return tiles;
}

int64_t least(int64_t extent, int tile) {
  return std::min<int64_t>(extent, tile);
}

// The tile's extent along axis `axis`, and along the free dimension.
int64_t tile_along(const Shape& shape, const Tiles& tiles, size_t axis) {
  if (axis >= tiles.along.size()) return 1;
  return least(tiles.along[axis].extent, axis == 0 && !tiles.free_inner ? shape.inner : shape.tall);
}
int64_t free_tile(const Shape& shape, const Tiles& tiles) {
  return least(tiles.beside.extent, tiles.free_inner ? shape.inner : shape.free);
}

// Elements of the tile with what `windows` windows reach beyond it; of the first `summed` axes one window less.
double region(const Shape& shape, const Tiles& tiles, int64_t windows, size_t summed = 0) {
  auto elements = static_cast<double>(free_tile(shape, tiles));
  for (size_t axis = 0; axis < tiles.along.size(); ++axis) {
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
  const int64_t innermost = tiles.free_inner || tiles.along.empty() ? tiles.beside.extent : tiles.along.front().extent;
  int64_t tallest = 1;
  for (size_t axis = tiles.free_inner ? 0 : 1; axis < tiles.along.size(); ++axis) {
    tallest = std::max(tallest, tiles.along[axis].extent);
  }
  return is_half_used(shape.inner, innermost, 4) && is_half_used(shape.tall, tallest, 2) &&
         is_half_used(shape.free, tiles.free_inner ? 1 : tiles.beside.extent, 1);
}

int64_t tiles_of(const RowDimension& dimension, int64_t tile) {
  return (dimension.extent + tile - 1) / tile;
}

// Blocks for each of the outer dimensions' elements.
int64_t blocks_per_outer(const Shape& shape, const Tiles& tiles) {
  int64_t blocks = tiles_of(tiles.beside, free_tile(shape, tiles));
  for (size_t axis = 0; axis < tiles.along.size(); ++axis) {
    blocks *= tiles_of(tiles.along[axis], tile_along(shape, tiles, axis));
  }
  return blocks;
}

// Strides of operand `i`: those of dimensions that there are not are 0.
std::vector<int64_t> strides_of(const std::vector<RowDimension>& dimensions, size_t i, size_t count) {
  std::vector<int64_t> strides(count, 0);
  for (size_t d = 0; d < dimensions.size(); ++d) strides.at(d) = dimensions[d].strides[i];
  return strides;
}

void add_tiles(Prelude& prelude, const Shape& shape, const Tiles& tiles) {
  std::vector<int64_t> extents(3, 1), along(3, 1), outer(4, 1);
  for (size_t axis = 0; axis < tiles.along.size(); ++axis) {
    extents.at(axis) = tiles.along[axis].extent;
    along.at(axis) = tile_along(shape, tiles, axis);
  }
  for (size_t d = 0; d < tiles.outer.size(); ++d) outer.at(d) = tiles.outer[d].extent;
  prelude.constant("AXES", static_cast<int64_t>(tiles.along.size()));
  prelude.array("AXIS_EXTENTS", extents).array("AXIS_TILES", along).array("OUTER_EXTENTS", outer);
  prelude.constant("FREE_EXTENT", tiles.beside.extent).constant("FREE_TILE", free_tile(shape, tiles));
  prelude.flag("FREE_INNER", tiles.free_inner).constant("THREADS", shape.threads);
  for (size_t i = 0; i < tiles.operands.size(); ++i) {
    const std::string name = constant_name(tiles.operands[i]);
    prelude.array(name + "_AXIS_STRIDES", strides_of(tiles.along, i, 3));
    prelude.array(name + "_OUTER_STRIDES", strides_of(tiles.outer, i, 4));
    prelude.constant(name + "_FREE_STRIDE", tiles.beside.strides[i]);
  }
}

Program program(const Shape& shape, const Tiles& tiles, const Target&, const Emitter& emit) {
  Prelude prelude = rows_prelude(tiles);
  add_local_norm(prelude, tiles);
  add_tiles(prelude, shape, tiles);
  const std::string entry = tiles.backward ? "local_norm_backward_tile" : "local_norm_forward_tile";
  Launch launch = local_norm_launch(tiles, entry, shape.threads);
  int64_t blocks = blocks_per_outer(shape, tiles);
  for (const RowDimension& dimension : tiles.fixed(tiles.outer)) blocks *= dimension.extent;
  launch.grid[0] = blocks_for(blocks, 1, tiles.dynamic_batch, 1);
  return Program{{emit.source(prelude)}, {launch}};
}

std::optional<std::string> refusal(const Tiles& tiles, const Target& target) {
  if (tiles.elements() == 0) return "there is nothing to do";
  if (!fits_shared_memory({4, 2, 1, 128}, tiles, target)) return "what a window reaches does not fit shared memory";
  return std::nullopt;
}

// Bytes that an element of the tile makes its block ask for. Runs along the innermost dimension are whole sectors.
double bytes_per_element(const Shape& shape, const Tiles& tiles) {
  const double tile = region(shape, tiles, 0);
  const RowDimension& inner = tiles.free_inner || tiles.along.empty() ? tiles.beside : tiles.along.front();
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

Estimate predict(const Shape& shape, const Tiles& tiles, const Target& target, const DeviceFigures& device) {
  const double tile = region(shape, tiles, 0);
  const int64_t windows = tiles.backward ? 2 : 1;
  double instructions = 20 * region(shape, tiles, windows) + (tiles.backward ? 40 * region(shape, tiles, 1) : 0);
  for (int64_t window = windows; window > 0; --window) {
    for (size_t axis = 1; axis <= tiles.along.size(); ++axis) {
      instructions += (10 + 2 * static_cast<double>(tiles.size)) * region(shape, tiles, window, axis);
    }
  }
  StreamingWork work;
  work.dram_bytes = tiles.moved_bytes;
  work.blocks = static_cast<double>(tiles.elements()) / tile;
  work.cache_bytes = static_cast<double>(tiles.elements()) * bytes_per_element(shape, tiles);
  work.threads = work.blocks * shape.threads;
  work.instructions_per_thread = 80 + (instructions + 40 * tile) / shape.threads;
  work.threads_per_block = shape.threads;
  work.shared_bytes_per_block = shared_bytes(shape, tiles);
  work.registers_per_thread = 40;
  work.bytes_in_flight_per_thread = 4.0 * size_of(tiles.operands.front().spec.dtype);
  return streaming_estimate(work, target.arch, device);
}

}  // namespace

Algorithm local_norm_tile(const std::string& operation) {
  return describe<Shape, Tiles>(operation + "_tile", operation, "local_norm/" + operation + "_tile.cu")
      .param("INNER", &Shape::inner, {32, 64, 128, 16, 8, 4})
      .param("TALL", &Shape::tall, {8, 16, 4, 32, 2})
      .param("FREE", &Shape::free, {4, 1, 2, 8, 16})
      .param("THREADS", &Shape::threads, {256, 128})
      .rule("less than half of the tile is idle", no_idle_elements)
      .rule("the tile fits shared memory", fits_shared_memory)
      .applies(refusal)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln::descriptor
