#include "softmax/softmax_across.h"

#include <algorithm>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"

namespace kiln::descriptor {
namespace {

// Blocks that the inner dimension takes.
int64_t slices(const AcrossShape& shape, const RowLayout& layout) {
  const int64_t columns = int64_t{shape.inner_lanes} * shape.vector;
  return ceil_div(layout.inner.extent, columns);
}

}  // namespace

int64_t steps_of(const AcrossShape& shape, const SoftmaxRows& softmax) {
  return ceil_div(softmax.length(), shape.axis_lanes);
}

bool across_aligned(const AcrossShape& shape, const SoftmaxRows& softmax, const Target&) {
  return vector_pays(softmax, across_rows(softmax), shape.vector);
}

bool across_block_fits(const AcrossShape& shape, const SoftmaxRows&, const Target&) {
  const int threads = shape.inner_lanes * shape.axis_lanes;
  return threads >= 32 && threads <= 512;
}

bool across_lanes_have_work(const AcrossShape& shape, const SoftmaxRows& softmax, const Target&) {
  const RowLayout layout = across_rows(softmax);
  const bool inner = shape.inner_lanes == 8 || shape.inner_lanes / 2 * shape.vector < layout.inner.extent;
  return inner && (shape.inner_lanes * shape.axis_lanes <= 32 || shape.axis_lanes / 2 < softmax.length());
}

bool across_has_open_kernel(const AcrossShape& shape, const SoftmaxRows&, const Target&) {
  const bool for_long_rows = shape.axis_lanes == 16 && shape.inner_lanes == 16;
  const bool for_short_rows = shape.axis_lanes == 1 && shape.inner_lanes == 64;
  return shape.keep == 0 && (shape.vector == 1 || shape.vector == 2) && (for_long_rows || for_short_rows);
}

Program across_program(const char* entry, const AcrossShape& shape, const SoftmaxRows& softmax, const Emitter& emit) {
  const RowLayout layout = across_rows(softmax);
  Prelude prelude = softmax_prelude(softmax, layout, shape.vector, emit);
  prelude.constant("INNER_LANES", shape.inner_lanes).constant("AXIS_LANES", shape.axis_lanes);
  prelude.flag("KEEP", shape.keep != 0);
  prelude.constant("KEPT", shape.keep != 0 ? steps_to_keep(emit, steps_of(shape, softmax)) : 1);

  Launch launch = softmax_launch(softmax, entry, shape.inner_lanes * shape.axis_lanes);
  launch.grid[0] = blocks_for_rows(softmax, layout.inner.extent);  // one for each outer index
  launch.grid[0].fixed *= slices(shape, layout);
  launch.grid[0].per_n *= slices(shape, layout);
  return program_of(emit.source(prelude), launch);
}

StreamingWork across_work(const AcrossShape& shape, const SoftmaxRows& softmax, const DeviceFigures& device) {
  const RowLayout layout = across_rows(softmax);
  const double threads = shape.inner_lanes * shape.axis_lanes;
  const double blocks = static_cast<double>(softmax.count()) / static_cast<double>(layout.inner.extent) *
                        static_cast<double>(slices(shape, layout));
  const auto elements = static_cast<double>(softmax.elements());
  const double bytes = softmax.input_bytes();
  const bool keep = shape.keep != 0;
  const auto taken = static_cast<double>(steps_of(shape, softmax));

  StreamingWork work;
  const double under_way = std::min(blocks, device.sms * 2048.0 / threads) * threads * taken * shape.vector * bytes;
  const bool rereads_memory = !keep && under_way > static_cast<double>(device.l2_bytes) / 2;
  work.dram_bytes = softmax.compulsory_bytes() + (rereads_memory ? elements * bytes : 0);
  // A block's piece of a line is at least a sector.
  const double sector = 32.0 / (shape.inner_lanes * shape.vector);
  const auto moved = element_bytes(softmax, layout, shape.vector, sector);
  work.cache_bytes = elements * ((keep ? 1 : 2) * moved.read + moved.written);
  work.threads = blocks * threads;
  work.blocks = blocks;
  work.threads_per_block = threads;
  work.bytes_in_flight_per_thread = (keep ? taken : std::min(taken, 4.0)) * shape.vector * bytes;
  return work;
}

}  // namespace kiln::descriptor
