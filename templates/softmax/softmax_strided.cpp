#include <algorithm>

#include "descriptor/parts.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "softmax/softmax_rows.h"

namespace kiln {
namespace {

using descriptor::RowLayout;
using descriptor::SoftmaxRows;

constexpr int64_t elements_per_thread = 64;

struct Shape {
  int inner_lanes;  // threads along the inner dimension
  int axis_lanes;   // threads that share rows
  int vector;       // neighbouring rows a thread
  int keep;         // whether elements stay in registers between the two passes
};

int64_t steps(const Shape& shape, const RowLayout& layout) {
  return (layout.axis.extent + shape.axis_lanes - 1) / shape.axis_lanes;
}

int64_t slices(const Shape& shape, const RowLayout& layout) {
  const int64_t columns = int64_t{shape.inner_lanes} * shape.vector;
  return (layout.inner.extent + columns - 1) / columns;
}

bool aligned(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  return descriptor::vector_pays(softmax, descriptor::across_rows(softmax), shape.vector);
}

bool block_fits(const Shape& shape, const SoftmaxRows&, const Target&) {
  const int threads = shape.inner_lanes * shape.axis_lanes;
  return threads >= 32 && threads <= 512;
}

bool fits_registers(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  const int64_t kept = shape.keep != 0 ? steps(shape, descriptor::across_rows(softmax)) : 4;
  return kept * shape.vector <= elements_per_thread;
}

bool shared_memory_fits(const Shape& shape, const SoftmaxRows&, const Target& target) {
  return 8 * shape.inner_lanes * shape.axis_lanes * shape.vector <= target.arch.shared_per_block_default;
}

bool lanes_have_work(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  const RowLayout layout = descriptor::across_rows(softmax);
  const bool inner = shape.inner_lanes == 8 || shape.inner_lanes / 2 * shape.vector < layout.inner.extent;
  return inner && (shape.inner_lanes * shape.axis_lanes <= 32 || shape.axis_lanes / 2 < layout.axis.extent);
}

Program program(const Shape& shape, const SoftmaxRows& softmax, const Target&, const Emitter& emit) {
  const RowLayout layout = descriptor::across_rows(softmax);
  Prelude prelude = descriptor::softmax_prelude(softmax, layout, shape.vector);
  prelude.constant("INNER_LANES", shape.inner_lanes).constant("AXIS_LANES", shape.axis_lanes);
  prelude.flag("KEEP", shape.keep != 0);

  Launch launch = descriptor::softmax_launch(softmax, "softmax_strided", shape.inner_lanes * shape.axis_lanes);
  launch.grid[0] = descriptor::blocks_for_rows(softmax, layout.inner.extent);  // one for each outer index
  launch.grid[0].fixed *= slices(shape, layout);
  launch.grid[0].per_n *= slices(shape, layout);
  return Program{{emit.source(prelude)}, {launch}};
}

Estimate predict(const Shape& shape, const SoftmaxRows& softmax, const Target& target, const DeviceFigures& device) {
  const RowLayout layout = descriptor::across_rows(softmax);
  const double threads = shape.inner_lanes * shape.axis_lanes;
  const double blocks = static_cast<double>(softmax.count()) / static_cast<double>(layout.inner.extent) *
                        static_cast<double>(slices(shape, layout));
  const auto elements = static_cast<double>(softmax.elements());
  const double bytes = softmax.input_bytes();
  const bool keep = shape.keep != 0;
  const auto taken = static_cast<double>(steps(shape, layout));

  descriptor::StreamingWork work;
  const double under_way = std::min(blocks, device.sms * 2048.0 / threads) * threads * taken * shape.vector * bytes;
  const bool rereads_memory = !keep && under_way > static_cast<double>(device.l2_bytes) / 2;
  work.dram_bytes = softmax.compulsory_bytes() + (rereads_memory ? elements * bytes : 0);
  // A block's piece of a line is at least a sector.
  const double sector = 32.0 / (shape.inner_lanes * shape.vector);
  const auto moved = descriptor::element_bytes(softmax, layout, shape.vector, sector);
  work.cache_bytes = elements * ((keep ? 1 : 2) * moved.read + moved.written);
  const double group = keep ? taken : 4;
  work.threads = blocks * threads;
  work.instructions_per_thread =
      80 + (keep ? 1 : 2) * taken * 8 + shape.vector * (30 + shape.axis_lanes * 12 + taken * (14 + 8 / group));
  work.blocks = blocks;
  work.threads_per_block = threads;
  work.registers_per_thread = 40 + (group + 4) * shape.vector;
  work.shared_bytes_per_block = shape.axis_lanes > 1 ? 8 * threads * shape.vector : 0;
  work.bytes_in_flight_per_thread = std::min(group, taken) * shape.vector * bytes;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace

Algorithm softmax_strided() {
  return describe<Shape, SoftmaxRows>("softmax_strided", "softmax_forward", "softmax/softmax_strided.cu")
      .param("KEEP", &Shape::keep, {1, 0})
      .param("VECTOR", &Shape::vector, {2, 4, 1, 8})
      .param("AXIS_LANES", &Shape::axis_lanes, {4, 1, 2, 8, 16})
      .param("INNER_LANES", &Shape::inner_lanes, {32, 16, 8, 64, 128})
      .rule("inner extent, alignment and VECTOR agree", aligned)
      .rule("the block has 32 to 512 threads", block_fits)
      .rule("a thread's elements fit registers", fits_registers)
      .rule("statistics fit shared memory", shared_memory_fits)
      .rule("at least half of the lanes have work", lanes_have_work)
      .applies([](const SoftmaxRows& softmax, const Target&) { return descriptor::refuse_across_rows(softmax); })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
