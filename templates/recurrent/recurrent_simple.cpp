#include <cmath>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "recurrent/recurrence.h"

namespace kiln {
namespace recurrent_simple_descriptor {
namespace {

struct Shape {
  int threads;
};

Program program(const Shape& shape, const RecurrentForward& layer, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::recurrent_prelude(layer);
  prelude.constant("THREADS", shape.threads);
  const int64_t images = layer.y.extents[0];
  const int64_t state_bytes = images * layer.directions() * 4 * layer.hidden() * 4;
  Launch launch = descriptor::recurrent_launch("recurrent_simple", shape.threads, {0, state_bytes});
  launch.grid[0] = descriptor::blocks_for(layer.directions(), images, layer.dynamic_batch, 1);
  return descriptor::program_of(emit.source(prelude), launch);
}

// Neighbouring threads read neighbouring rows of r, of which each access moves a sector, and wait for it.
Estimate predict(const Shape& shape, const RecurrentForward& layer, const Target& target, const DeviceFigures& device) {
  const auto blocks = static_cast<double>(layer.y.extents[0] * layer.directions());
  const auto rows = static_cast<double>(layer.gates.extents[3]), hidden = static_cast<double>(layer.hidden());
  const auto steps = static_cast<double>(layer.steps());
  const double units_per_thread = std::ceil(hidden / shape.threads);
  descriptor::StreamingWork work;
  work.dram_bytes = descriptor::recurrent_bytes(layer);
  work.cache_bytes = blocks * steps * rows * hidden * 32;
  work.threads = blocks * shape.threads;
  work.instructions_per_thread = steps * units_per_thread * rows * 10;
  work.blocks = blocks;
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = size_of(layer.r.dtype);
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace recurrent_simple_descriptor

Algorithm recurrent_simple() {
  using namespace recurrent_simple_descriptor;
  return describe<Shape, RecurrentForward>("recurrent_simple", "recurrent_forward", "recurrent/recurrent_simple.cu")
      .trusted()
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
