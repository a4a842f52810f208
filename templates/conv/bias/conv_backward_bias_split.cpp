#include <algorithm>
#include <bit>

#include "conv/bias/bias_gradient.h"
#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace conv_backward_bias_split_descriptor {
namespace {

using descriptor::BiasGradient;
using descriptor::ceil_div;

struct Shape {
  int threads, split;
};

bool along_k(const BiasGradient& gradient) {
  return gradient.inner == descriptor::Inner::channels ||
         (gradient.inner == descriptor::Inner::either && gradient.k() > 1);
}

// Elements of one access of dy: channels, or pixels of an image. An open kernel has few or one.
int run(const BiasGradient& gradient, bool open = false) {
  using namespace descriptor::dimension;
  const int widest = along_k(gradient)
                         ? descriptor::widest_vector(gradient.dy, {channel}, gradient.k())
                         : descriptor::widest_vector(gradient.dy, {column, row, plane}, gradient.pixels());
  return !open ? widest : widest >= 4 ? 4 : 1;
}

// Threads side by side along channels: as many as there are runs of channels, up to a warp; of an open kernel a warp or
// four.
int lanes_k(const BiasGradient& gradient, bool open = false) {
  if (!along_k(gradient)) return 1;
  const auto runs = std::bit_ceil(static_cast<uint64_t>(gradient.k() / run(gradient, open)));
  return !open ? static_cast<int>(std::min<uint64_t>(32, runs)) : runs >= 32 ? 32 : 4;
}

int64_t channel_blocks(const BiasGradient& gradient, bool open = false) {
  return ceil_div(gradient.k(), lanes_k(gradient, open) * (along_k(gradient) ? run(gradient, open) : 1));
}

// Runs of pixels that a channel has.
int64_t pixel_runs(const BiasGradient& gradient) {
  return gradient.n() * gradient.pixels() / (along_k(gradient) ? 1 : run(gradient));
}

int64_t places(const Shape& shape, const BiasGradient& gradient) {
  return shape.threads / lanes_k(gradient);
}

Program program(const Shape& shape, const BiasGradient& gradient, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::bias_gradient_prelude(gradient);
  prelude.flag("ALONG_K", along_k(gradient)).constant("RUN", run(gradient, emit.open()));
  prelude.constant("LANES_K", lanes_k(gradient, emit.open()));
  prelude.constant("THREADS", shape.threads).extent("SPLIT", shape.split);

  const WorkspaceArgument parts{0, shape.split == 1 ? 0 : shape.split * gradient.k() * 4};
  Launch sum = descriptor::launch_of(
      "conv_backward_bias_split", shape.threads,
      {OperandArgument{"dy"}, OperandArgument{"db"}, parts, Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n});
  sum.grid = {Count{channel_blocks(gradient, emit.open())}, Count{shape.split}, Count{1}};
  Program result{{emit.source(prelude)}, {sum}};
  if (shape.split == 1) return result;

  Launch reduce = descriptor::launch_of("conv_backward_bias_split_reduce", shape.threads,
                                        {parts, OperandArgument{"db"}, Scalar::alpha, Scalar::beta, UserArgument{}});
  reduce.grid[0] = Count{ceil_div(gradient.k(), shape.threads)};
  result.steps.emplace_back(reduce);
  return result;
}

Estimate predict(const Shape& shape, const BiasGradient& gradient, const Target& target, const DeviceFigures& device) {
  const double bytes = static_cast<double>(gradient.dy.elements()) * size_of(gradient.dy.dtype);
  const double access = run(gradient) * size_of(gradient.dy.dtype);
  const double loads = static_cast<double>(ceil_div(pixel_runs(gradient), places(shape, gradient) * shape.split));
  const int64_t pitch =
      gradient.dy.strides[along_k(gradient) ? descriptor::dimension::channel : descriptor::dimension::column];
  descriptor::StreamingWork work;
  work.dram_bytes = bytes + static_cast<double>(shape.split > 1 ? 8 * shape.split * gradient.k() : 0);
  work.cache_bytes =
      bytes / access * descriptor::lane_bytes(access, static_cast<double>(pitch) * size_of(gradient.dy.dtype));
  work.blocks = static_cast<double>(channel_blocks(gradient) * shape.split);
  work.threads = work.blocks * shape.threads;
  work.instructions_per_thread = 60 + loads * (8 + 2 * run(gradient)) + 12 * 8;
  work.threads_per_block = shape.threads;
  work.shared_bytes_per_block = shape.threads * 4.0 * (along_k(gradient) ? run(gradient) : 1);
  work.bytes_in_flight_per_thread = access * std::clamp(loads, 1.0, 4.0);
  work.launches = shape.split == 1 ? 1 : 2;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace conv_backward_bias_split_descriptor

Algorithm conv_backward_bias_split() {
  using namespace conv_backward_bias_split_descriptor;
  return describe<Shape, BiasGradient>("conv_backward_bias_split", "conv_backward_bias",
                                       "conv/bias/conv_backward_bias_split.cu")
      .takes_prologue()
      .applies([](const BiasGradient& gradient, const Target&) -> std::optional<std::string> {
        if (gradient.blend.alpha == Scale::zero) return "alpha is zero: there is nothing to sum";
        return std::nullopt;
      })
      .param("THREADS", &Shape::threads, {256, 512, 128})
      .param("SPLIT", &Shape::split, {1, 4, 16, 64})
      .pruning("each part has pixels for its threads",
               [](const Shape& shape, const BiasGradient& gradient, const Target&) {
                 return shape.split == 1 || pixel_runs(gradient) >= 2 * places(shape, gradient) * shape.split;
               })
      .pruning("splitting is worthwhile",
               [](const Shape& shape, const BiasGradient& gradient, const Target&) {
                 constexpr int64_t plenty_of_blocks = 8192;
                 return shape.split == 1 || channel_blocks(gradient) * shape.split <= plenty_of_blocks;
               })
      .opens([](const Shape& shape, const BiasGradient&, const Target&) { return shape.threads == 512; })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
