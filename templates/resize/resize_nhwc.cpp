#include <optional>
#include <string>

#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/algorithm.h"
#include "resize/resize_problem.h"

namespace kiln {
namespace resize_nhwc_descriptor {
namespace {

using descriptor::ResizeProblem;
namespace dimension = descriptor::dimension;

struct Tile {
  int threads;
  int vector;  // channels a thread
};

std::optional<std::string> refusal(const ResizeProblem& resize, const Target&) {
  if (descriptor::inner_of(resize.y) != descriptor::Inner::pixels) return std::nullopt;
  return "pixels of y stand closer together than its channels";
}

bool aligned(const Tile& tile, const ResizeProblem& resize, const Target&) {
  return descriptor::channels_fit(resize, tile.vector);
}

int64_t vectors_per_image(const Tile& tile, const ResizeProblem& resize) {
  return resize.pixels_per_image() * (resize.c() / tile.vector);
}

bool has_open_kernel(const Tile& tile, const ResizeProblem& resize, const Target&) {
  const bool is_open_width = tile.vector == 1 || tile.vector == 4 || tile.vector * size_of(resize.x.dtype) == 16;
  return is_open_width && tile.threads == 128;
}

Program program(const Tile& tile, const ResizeProblem& resize, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::resize_prelude(resize);
  prelude.constant("THREADS", tile.threads).constant("VECTOR", tile.vector);
  Launch launch = descriptor::resize_launch("resize_nhwc", tile.threads);
  launch.grid[0] =
      descriptor::blocks_for(vectors_per_image(tile, resize), resize.n(), resize.dynamic_batch, tile.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Tile& tile, const ResizeProblem& resize, const Target& target, const DeviceFigures& device) {
  const double bytes = size_of(resize.x.dtype), load_bytes = tile.vector * bytes;
  const auto pitch = static_cast<double>(tile.vector * resize.x.strides[dimension::channel]) * bytes;
  const auto taps = static_cast<double>(resize.all_taps);
  descriptor::StreamingWork work =
      descriptor::resize_work(resize, static_cast<double>(vectors_per_image(tile, resize) * resize.n()), tile.vector,
                              taps, load_bytes, descriptor::lane_bytes(load_bytes, pitch));
  work.blocks = work.threads / tile.threads;
  work.threads_per_block = tile.threads;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace resize_nhwc_descriptor

Algorithm resize_nhwc() {
  using namespace resize_nhwc_descriptor;
  return describe<Tile, ResizeProblem>("resize_nhwc", "resize", "resize/resize_nhwc.cu")
      .takes_prologue()
      .param("VECTOR", &Tile::vector, {8, 4, 2, 1})
      .param("THREADS", &Tile::threads, {128, 64, 256})
      .rule("C, alignment and VECTOR agree", aligned)
      .opens(has_open_kernel)
      .applies(refusal)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
