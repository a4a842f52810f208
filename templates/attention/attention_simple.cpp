#include <algorithm>

#include "attention/layer.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/rows.h"
#include "descriptor/streaming_estimate.h"

namespace kiln {
namespace attention_simple_descriptor {
namespace {

using descriptor::AttentionLayer;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const AttentionLayer& layer, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::attention_prelude(layer);
  prelude.constant("THREADS", shape.threads);
  Launch launch = descriptor::attention_launch(layer, "attention_simple", shape.threads);
  launch.grid[0] =
      descriptor::blocks_for(layer.heads() * layer.queries(), layer.images(), layer.dynamic_batch, shape.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

// Neighbouring threads read neighbouring queries, of which each access moves a sector, and wait for each key.
Estimate predict(const Shape& shape, const AttentionLayer& layer, const Target& target, const DeviceFigures& device) {
  const double lines = layer.lines(), pairs = layer.pairs();
  const auto elements = static_cast<double>(2 * layer.depth() + layer.width());
  descriptor::StreamingWork work;
  work.dram_bytes = layer.bytes();
  work.cache_bytes = pairs * elements * 64;
  work.threads = lines;
  work.instructions_per_thread = 100 + pairs / std::max(lines, 1.0) * (100 + 14 * elements);
  work.blocks = lines / shape.threads;
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = 2 * size_of(layer.k.dtype);
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace attention_simple_descriptor

Algorithm attention_simple() {
  using namespace attention_simple_descriptor;
  return describe<Shape, AttentionLayer>("attention_simple", "attention_forward", "attention/attention_simple.cu")
      .trusted()
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .adds([](const Shape&, const AttentionLayer&, const Target&) { return std::string(descriptor::in_one_thread); })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
