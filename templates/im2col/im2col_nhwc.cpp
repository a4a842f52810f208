#include <algorithm>
#include <optional>
#include <string>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "im2col/columns_problem.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace im2col_nhwc_descriptor {
namespace {

using descriptor::ColumnsProblem;
namespace dimension = descriptor::dimension;

struct Tile {
  int threads;
  int vector;  // channels of y a thread
  int pixels;  // of a row of y a thread
};

std::optional<std::string> refusal(const ColumnsProblem& problem, const Target&) {
  if (descriptor::inner_of(problem.unfolded) != descriptor::Inner::pixels) return std::nullopt;
  return "pixels of y stand closer together than its channels";
}

bool aligned(const Tile& tile, const ColumnsProblem& problem, const Target&) {
  return descriptor::vector_fits(problem.unfolded, {dimension::channel}, tile.vector);
}
bool no_idle_pixels(const Tile& tile, const ColumnsProblem& problem, const Target&) {
  return tile.pixels / 2 < problem.columns.outputs;
}

int64_t tiles_per_row(const Tile& tile, const ColumnsProblem& problem) {
  return descriptor::ceil_div(problem.columns.outputs, tile.pixels);
}

int64_t threads_per_image(const Tile& tile, const ColumnsProblem& problem) {
  return problem.k() / tile.vector * problem.planes.outputs * problem.rows.outputs * tiles_per_row(tile, problem);
}

bool has_open_kernel(const Tile& tile, const ColumnsProblem& problem, const Target&) {
  const bool is_open_width = tile.vector == 1 || tile.vector * size_of(problem.unfolded.dtype) == 16;
  return is_open_width && tile.pixels == 2 && tile.threads == 128;
}

Program program(const Tile& tile, const ColumnsProblem& problem, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::columns_prelude(problem);
  prelude.constant("THREADS", tile.threads).constant("VECTOR", tile.vector).constant("PIXELS", tile.pixels);
  prelude.extent("TILES", tiles_per_row(tile, problem))
      .extent("VECTORS", std::max<int64_t>(1, problem.k() / tile.vector));
  Launch launch = descriptor::unary_launch("im2col_nhwc", tile.threads);
  launch.grid[0] =
      descriptor::blocks_for(threads_per_image(tile, problem), problem.n(), problem.dynamic_batch, tile.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Tile& tile, const ColumnsProblem& problem, const Target& target, const DeviceFigures& device) {
  const double bytes = size_of(problem.images.dtype), results = tile.vector * tile.pixels;
  // Channels of a pixel stand side by side, and each has a channel of y for each tap of the window.
  const double pitch = std::max(bytes, static_cast<double>(problem.images.strides[dimension::channel]) * bytes);
  descriptor::StreamingWork work =
      descriptor::columns_work(problem, static_cast<double>(threads_per_image(tile, problem) * problem.n()), results,
                               results, descriptor::lane_bytes(bytes, pitch));
  work.instructions_per_thread += tile.vector * 30;
  work.blocks = work.threads / tile.threads;
  work.threads_per_block = tile.threads;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace im2col_nhwc_descriptor

Algorithm im2col_nhwc() {
  using namespace im2col_nhwc_descriptor;
  return describe<Tile, ColumnsProblem>("im2col_nhwc", "im2col", "im2col/im2col_nhwc.cu")
      .param("VECTOR", &Tile::vector, {4, 8, 2, 1})
      .param("PIXELS", &Tile::pixels, {2, 1, 4})
      .param("THREADS", &Tile::threads, {128, 64, 256})
      .rule("K, alignment and VECTOR agree", aligned)
      .pruning("less than half of the pixels are idle", no_idle_pixels)
      .opens(has_open_kernel)
      .applies(refusal)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
