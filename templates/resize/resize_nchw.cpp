#include <optional>
#include <string>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/algorithm.h"
#include "resize/resize_problem.h"

namespace kiln {
namespace resize_nchw_descriptor {
namespace {

using descriptor::ResizeProblem;
namespace dimension = descriptor::dimension;

struct Tile {
  int threads;
  int tile_q;  // outputs of a row a thread
};

std::optional<std::string> refusal(const ResizeProblem& resize, const Target&) {
  if (descriptor::inner_of(resize.y) != descriptor::Inner::channels) return std::nullopt;
  return "channels of y stand closer together than its pixels";
}

bool no_idle_outputs(const Tile& tile, const ResizeProblem& resize, const Target&) {
  return tile.tile_q / 2 < resize.columns.outputs;
}

// Positions and weights of all outputs of the tile are kept.
bool fits_registers(const Tile& tile, const ResizeProblem& resize, const Target&) {
  return tile.tile_q * resize.taps(resize.columns) <= 16;
}

int64_t tiles_per_image(const Tile& tile, const ResizeProblem& resize) {
  return resize.c() * resize.planes.outputs * resize.rows.outputs *
         descriptor::ceil_div(resize.columns.outputs, tile.tile_q);
}

int store_of(const Tile& tile, const ResizeProblem& resize) {
  return descriptor::widest_vector(resize.y, {dimension::column}, tile.tile_q);
}

bool has_open_kernel(const Tile& tile, const ResizeProblem&, const Target&) {
  return tile.tile_q == 4 && tile.threads == 128;
}

Program program(const Tile& tile, const ResizeProblem& resize, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::resize_prelude(resize);
  prelude.constant("THREADS", tile.threads).constant("TILE_Q", tile.tile_q).constant("STORE", store_of(tile, resize));
  Launch launch = descriptor::resize_launch("resize_nchw", tile.threads);
  launch.grid[0] =
      descriptor::blocks_for(tiles_per_image(tile, resize), resize.n(), resize.dynamic_batch, tile.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Tile& tile, const ResizeProblem& resize, const Target& target, const DeviceFigures& device) {
  const double bytes = size_of(resize.x.dtype), outputs = tile.tile_q;
  const auto taps = static_cast<double>(resize.all_taps);
  // From one thread's element to the next thread's.
  const ResizeAxis& axis = resize.columns;
  const double steps = outputs * static_cast<double>(axis.step) / static_cast<double>(axis.denominator);
  const double pitch = steps * static_cast<double>(resize.x.strides[dimension::column]) * bytes;
  descriptor::StreamingWork work =
      descriptor::resize_work(resize, static_cast<double>(tiles_per_image(tile, resize) * resize.n()), outputs,
                              outputs * taps, bytes, descriptor::lane_bytes(bytes, pitch));
  work.instructions_per_thread +=
      outputs * (resize.mode == ResizeMode::cubic ? 40 : 12) + outputs / store_of(tile, resize) * 6;
  work.registers_per_thread += 2 * outputs * resize.taps(axis);
  work.blocks = work.threads / tile.threads;
  work.threads_per_block = tile.threads;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace resize_nchw_descriptor

Algorithm resize_nchw() {
  using namespace resize_nchw_descriptor;
  return describe<Tile, ResizeProblem>("resize_nchw", "resize", "resize/resize_nchw.cu")
      .takes_prologue()
      .param("TILE_Q", &Tile::tile_q, {4, 2, 8, 1})
      .param("THREADS", &Tile::threads, {128, 64, 256})
      .pruning("less than half of the tile is idle", no_idle_outputs)
      .rule("a tile's weights fit registers", fits_registers)
      .opens(has_open_kernel)
      .applies(refusal)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
