#include <algorithm>
#include <optional>
#include <string>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "im2col/columns_problem.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace im2col_nchw_descriptor {
namespace {

using descriptor::ColumnsProblem;
namespace dimension = descriptor::dimension;

struct Tile {
  int threads;
  int tile_q;  // elements of a row of y a thread
  int rows;    // of the window, at most
  int taps;    // of each of these, at most
};

std::optional<std::string> refusal(const ColumnsProblem& problem, const Target&) {
  if (descriptor::inner_of(problem.unfolded) != descriptor::Inner::channels) return std::nullopt;
  return "channels of y stand closer together than its pixels";
}

bool no_idle_elements(const Tile& tile, const ColumnsProblem& problem, const Target&) {
  return tile.tile_q / 2 < problem.columns.outputs;
}
bool no_idle_taps(const Tile& tile, const ColumnsProblem& problem, const Target&) {
  return tile.taps / 2 < problem.columns.window && tile.rows / 2 < problem.rows.window;
}
// All elements are loaded before the first is stored.
bool fits_registers(const Tile& tile, const ColumnsProblem&, const Target&) {
  return tile.tile_q * tile.rows * tile.taps <= 64;
}

int64_t rows_of(const Tile& tile, const ColumnsProblem& problem) {
  return std::min<int64_t>(tile.rows, problem.rows.window);
}

int64_t taps_of(const Tile& tile, const ColumnsProblem& problem) {
  return std::min<int64_t>(tile.taps, problem.columns.window);
}

int64_t tiles_per_row(const Tile& tile, const ColumnsProblem& problem) {
  return descriptor::ceil_div(problem.columns.outputs, tile.tile_q);
}

// Rows of the window that a thread takes, counted through all channels.
int64_t lines_of(const Tile& tile, const ColumnsProblem& problem) {
  return problem.c() * problem.planes.window * descriptor::ceil_div(problem.rows.window, rows_of(tile, problem));
}

int64_t threads_per_image(const Tile& tile, const ColumnsProblem& problem) {
  const int64_t groups = descriptor::ceil_div(problem.columns.window, taps_of(tile, problem));
  return lines_of(tile, problem) * groups * problem.planes.outputs * problem.rows.outputs *
         tiles_per_row(tile, problem);
}

int store_of(const Tile& tile, const ColumnsProblem& problem) {
  return descriptor::widest_vector(problem.unfolded, {dimension::column}, tile.tile_q);
}

bool has_open_kernel(const Tile& tile, const ColumnsProblem&, const Target&) {
  return tile.tile_q == 2 && tile.rows == 4 && tile.taps == 4 && tile.threads == 128;
}

Program program(const Tile& tile, const ColumnsProblem& problem, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::columns_prelude(problem);
  prelude.constant("THREADS", tile.threads).constant("TILE_Q", tile.tile_q);
  prelude.constant("ROWS", rows_of(tile, problem)).constant("TAPS", taps_of(tile, problem));
  prelude.constant("STORE", store_of(tile, problem)).extent("TILES", tiles_per_row(tile, problem));
  prelude.extent("LINES", lines_of(tile, problem));
  Launch launch = descriptor::unary_launch("im2col_nchw", tile.threads);
  launch.grid[0] =
      descriptor::blocks_for(threads_per_image(tile, problem), problem.n(), problem.dynamic_batch, tile.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Tile& tile, const ColumnsProblem& problem, const Target& target, const DeviceFigures& device) {
  const double bytes = size_of(problem.images.dtype);
  const auto rows = static_cast<double>(rows_of(tile, problem)), taps = static_cast<double>(taps_of(tile, problem));
  const double results = tile.tile_q * rows * taps;
  // From one thread's element to the next thread's.
  const WindowAxis& axis = problem.columns;
  const double pitch =
      static_cast<double>(tile.tile_q * axis.stride * problem.images.strides[dimension::column]) * bytes;
  const bool shares = axis.stride == 1 && axis.dilation == 1;
  const double loads = rows * (shares ? tile.tile_q + taps - 1 : tile.tile_q * taps);
  descriptor::StreamingWork work =
      descriptor::columns_work(problem, static_cast<double>(threads_per_image(tile, problem) * problem.n()), results,
                               loads, descriptor::lane_bytes(bytes, pitch));
  work.instructions_per_thread += 60 + loads * 4 + results / store_of(tile, problem) * 6;
  work.blocks = work.threads / tile.threads;
  work.threads_per_block = tile.threads;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace im2col_nchw_descriptor

Algorithm im2col_nchw() {
  using namespace im2col_nchw_descriptor;
  return describe<Tile, ColumnsProblem>("im2col_nchw", "im2col", "im2col/im2col_nchw.cu")
      .param("TILE_Q", &Tile::tile_q, {2, 4, 1})
      .param("ROWS", &Tile::rows, {4, 1, 2})
      .param("TAPS", &Tile::taps, {4, 1, 8})
      .param("THREADS", &Tile::threads, {128, 64, 256})
      .pruning("less than half of the tile is idle", no_idle_elements)
      .pruning("less than half of the taps are idle", no_idle_taps)
      .rule("elements of a tile fit registers", fits_registers)
      .opens(has_open_kernel)
      .applies(refusal)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
