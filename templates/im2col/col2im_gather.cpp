#include <algorithm>
#include <string>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "im2col/columns_problem.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace col2im_gather_descriptor {
namespace {

using descriptor::ColumnsProblem;
namespace dimension = descriptor::dimension;

struct Tile {
  int threads;
  int tile_h, tile_w;  // elements of a channel of y a thread
};

// Whether neighbouring threads take neighbouring channels of y, not pixels.
bool channels_inner(const ColumnsProblem& problem) {
  const descriptor::Inner inner = descriptor::inner_of(problem.images);
  return inner == descriptor::Inner::channels || (inner == descriptor::Inner::either && problem.c() > 1);
}

bool no_idle_elements(const Tile& tile, const ColumnsProblem& problem, const Target&) {
  return tile.tile_h / 2 < problem.rows.extent && tile.tile_w / 2 < problem.columns.extent;
}
// Elsewhere rows of a tile have nothing in common.
bool rows_share(const Tile& tile, const ColumnsProblem& problem, const Target&) {
  return tile.tile_h == 1 || channels_inner(problem);
}

int64_t tiles_h(const Tile& tile, const ColumnsProblem& problem) {
  return descriptor::ceil_div(problem.rows.extent, tile.tile_h);
}
int64_t tiles_w(const Tile& tile, const ColumnsProblem& problem) {
  return descriptor::ceil_div(problem.columns.extent, tile.tile_w);
}
int64_t threads_per_image(const Tile& tile, const ColumnsProblem& problem) {
  return problem.c() * problem.planes.extent * tiles_h(tile, problem) * tiles_w(tile, problem);
}

int store_of(const Tile& tile, const ColumnsProblem& problem) {
  return descriptor::widest_vector(problem.images, {dimension::column}, tile.tile_w);
}

bool has_open_kernel(const Tile& tile, const ColumnsProblem& problem, const Target&) {
  const int edge = channels_inner(problem) ? 2 : 1;
  return tile.tile_h == edge && tile.tile_w == edge && tile.threads == 128;
}

Program program(const Tile& tile, const ColumnsProblem& problem, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::columns_prelude(problem);
  prelude.constant("THREADS", tile.threads).constant("TILE_H", tile.tile_h).constant("TILE_W", tile.tile_w);
  prelude.constant("STORE", store_of(tile, problem)).flag("CHANNELS_INNER", channels_inner(problem));
  prelude.extent("TILES_H", tiles_h(tile, problem)).extent("TILES_W", tiles_w(tile, problem));
  Launch launch = descriptor::unary_launch("col2im_gather", tile.threads);
  launch.grid[0] =
      descriptor::blocks_for(threads_per_image(tile, problem), problem.n(), problem.dynamic_batch, tile.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

// Outputs along an axis whose windows hold an element of a tile.
double outputs_of_tile(const WindowAxis& axis, int64_t tile) {
  const double reach = static_cast<double>(tile + axis.reach() - 1) / static_cast<double>(axis.stride);
  return std::clamp(reach, 1.0, static_cast<double>(axis.outputs));
}

Estimate predict(const Tile& tile, const ColumnsProblem& problem, const Target& target, const DeviceFigures& device) {
  const double bytes = size_of(problem.unfolded.dtype), results = tile.tile_h * tile.tile_w;
  const double loads = results * problem.columns_per_element();
  const bool is_inner = channels_inner(problem);
  const auto taps = static_cast<double>(problem.taps());
  const double step = is_inner ? taps * static_cast<double>(problem.unfolded.strides[dimension::channel])
                               : static_cast<double>(tile.tile_w * problem.unfolded.strides[dimension::column]);
  double lane_bytes = descriptor::lane_bytes(bytes, step * bytes);
  if (is_inner) {
    // All taps of the pixels whose windows hold an element of the tile, which stand side by side.
    const double pixels = outputs_of_tile(problem.planes, 1) * outputs_of_tile(problem.rows, tile.tile_h) *
                          outputs_of_tile(problem.columns, tile.tile_w);
    lane_bytes = std::min(lane_bytes, std::max(bytes, pixels * taps * bytes / loads));
  }
  descriptor::StreamingWork work = descriptor::columns_work(
      problem, static_cast<double>(threads_per_image(tile, problem) * problem.n()), results, loads, lane_bytes);
  work.instructions_per_thread += loads * 2;
  work.registers_per_thread += 8;
  work.blocks = work.threads / tile.threads;
  work.threads_per_block = tile.threads;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace col2im_gather_descriptor

Algorithm col2im_gather() {
  using namespace col2im_gather_descriptor;
  return describe<Tile, ColumnsProblem>("col2im_gather", "col2im", "im2col/col2im_gather.cu")
      .param("TILE_W", &Tile::tile_w, {1, 2, 4})
      .param("TILE_H", &Tile::tile_h, {1, 2, 4})
      .param("THREADS", &Tile::threads, {128, 64, 256})
      .pruning("less than half of the tile is idle", no_idle_elements)
      .pruning("rows of a tile read lines together", rows_share)
      .opens(has_open_kernel)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
