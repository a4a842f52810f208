#include <algorithm>

#include "attention/layer.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"

namespace kiln {
namespace attention_backward_simple_descriptor {
namespace {

using descriptor::AttentionLayer;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const AttentionLayer& layer, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::attention_prelude(layer);
  prelude.constant("THREADS", shape.threads);
  const auto launch = [&](const char* entry, int64_t lines) {
    Launch made = descriptor::attention_launch(layer, entry, shape.threads);
    made.grid[0] = descriptor::blocks_for(lines, layer.images(), layer.dynamic_batch, shape.threads);
    return made;
  };
  Program program{{emit.source(prelude)}, {}};
  program.steps.emplace_back(launch("attention_backward_simple", layer.heads() * layer.queries()));
  if (layer.has_gradients_of_keys()) {
    program.steps.emplace_back(launch("attention_backward_simple_keys", layer.key_heads() * layer.keys()));
  }
  return program;
}

// Neighbouring threads read neighbouring lines, of which each access moves a sector, and wait for each.
descriptor::StreamingWork work_of(const Shape& shape, const AttentionLayer& layer, double lines, double elements) {
  const double pairs = layer.pairs();
  descriptor::StreamingWork work;
  work.dram_bytes = layer.bytes();
  work.cache_bytes = pairs * elements * 64;
  work.threads = lines;
  work.instructions_per_thread = 100 + pairs / std::max(lines, 1.0) * (100 + 14 * elements);
  work.blocks = lines / shape.threads;
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = 2 * size_of(layer.k.dtype);
  return work;
}

Estimate predict(const Shape& shape, const AttentionLayer& layer, const Target& target, const DeviceFigures& device) {
  const auto depth = static_cast<double>(layer.depth()), width = static_cast<double>(layer.width());
  std::vector<descriptor::StreamingWork> steps = {work_of(shape, layer, layer.lines(), 2 * depth + width)};
  if (layer.has_gradients_of_keys()) steps.push_back(work_of(shape, layer, layer.key_lines(), 2 * depth + 3 * width));
  return descriptor::streaming_estimate(steps, target.arch, device);
}

}  // namespace
}  // namespace attention_backward_simple_descriptor

Algorithm attention_backward_simple() {
  using namespace attention_backward_simple_descriptor;
  return describe<Shape, AttentionLayer>("attention_backward_simple", "attention_backward",
                                         "attention/attention_backward_simple.cu")
      .trusted()
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
