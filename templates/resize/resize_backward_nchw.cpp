#include <optional>
#include <string>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/algorithm.h"
#include "resize/resize_problem.h"

namespace kiln {
namespace resize_backward_nchw_descriptor {
namespace {

using descriptor::ResizeProblem;
namespace dimension = descriptor::dimension;

struct Tile {
  int threads;
  int channels;  // a thread
};

std::optional<std::string> refusal(const ResizeProblem& resize, const Target&) {
  const bool have_vectors =
      descriptor::inner_of(resize.x) == descriptor::Inner::channels && descriptor::channels_fit(resize, 4);
  return have_vectors ? std::optional("channels stand side by side, in fours or more") : std::nullopt;
}

bool no_idle_channels(const Tile& tile, const ResizeProblem& resize, const Target&) {
  return tile.channels / 2 < resize.c();
}

int64_t threads_per_image(const Tile& tile, const ResizeProblem& resize) {
  return resize.pixels_of_x() * descriptor::ceil_div(resize.c(), tile.channels);
}

bool has_open_kernel(const Tile& tile, const ResizeProblem&, const Target&) {
  return tile.channels == 4 && tile.threads == 128;
}

Program program(const Tile& tile, const ResizeProblem& resize, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::resize_backward_prelude(resize, !emit.open());
  prelude.constant("THREADS", tile.threads).constant("CHANNELS", tile.channels);
  Launch launch = descriptor::resize_backward_launch("resize_backward_nchw", tile.threads);
  launch.grid[0] =
      descriptor::blocks_for(threads_per_image(tile, resize), resize.n(), resize.dynamic_batch, tile.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Tile& tile, const ResizeProblem& resize, const Target& target, const DeviceFigures& device) {
  const double bytes = size_of(resize.y.dtype), channels = tile.channels;
  // From one thread's element to the next thread's.
  const ResizeAxis& axis = resize.columns;
  const double steps = static_cast<double>(axis.outputs) / static_cast<double>(axis.extent);
  const double pitch = steps * static_cast<double>(resize.y.strides[dimension::column]) * bytes;
  descriptor::StreamingWork work =
      descriptor::resize_backward_work(resize, static_cast<double>(threads_per_image(tile, resize) * resize.n()),
                                       channels, channels, bytes, descriptor::lane_bytes(bytes, pitch));
  work.blocks = work.threads / tile.threads;
  work.threads_per_block = tile.threads;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace resize_backward_nchw_descriptor

Algorithm resize_backward_nchw() {
  using namespace resize_backward_nchw_descriptor;
  return describe<Tile, ResizeProblem>("resize_backward_nchw", "resize_backward", "resize/resize_backward_nchw.cu")
      .takes_prologue()
      .param("CHANNELS", &Tile::channels, {4, 2, 8, 1})
      .param("THREADS", &Tile::threads, {128, 64, 256})
      .pruning("less than half of a thread's channels are idle", no_idle_channels)
      .opens(has_open_kernel)
      .applies(refusal)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
