#include <algorithm>
#include <cmath>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "softmax/softmax_rows.h"

namespace kiln {
namespace softmax_backward_rows_descriptor {
namespace {

using descriptor::SoftmaxRows;

constexpr int64_t kept_bytes = 256;  // of y and dy in a thread's registers

struct Shape {
  int threads;
  int lanes;   // threads a row
  int vector;  // elements an access
  int keep;    // whether elements stay in registers between the two passes
};

int64_t steps(const Shape& shape, int64_t row) {
  return (row + shape.lanes * shape.vector - 1) / (shape.lanes * shape.vector);
}

bool rows_fill_blocks(const Shape& shape, const SoftmaxRows&, const Target&) {
  return shape.lanes <= 32 || shape.lanes == shape.threads;
}

bool fits_registers(const Shape& shape, const SoftmaxRows& softmax, const Target& target) {
  if (shape.keep == 0) return true;
  const double bytes = static_cast<double>(steps(shape, softmax.length()) * shape.vector) * softmax.kept_bytes;
  const int registers = std::min(target.arch.registers_per_sm / shape.threads, target.arch.registers_per_thread);
  return bytes <= std::min<double>(kept_bytes, 4.0 * (registers - 32));
}

bool lanes_have_work(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  return shape.lanes == 1 || shape.lanes / 2 * shape.vector < softmax.length();
}

bool reads_twice_where_it_must(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  return shape.keep != 0 || steps(shape, softmax.length()) > 4;
}

bool has_open_kernel(const Shape& shape, const SoftmaxRows&, const Target&) {
  const bool of_warps = shape.lanes == 32 && shape.threads == 128, of_blocks = shape.lanes == 512;
  return (shape.vector == 1 || shape.vector == 4) && (shape.keep != 0 ? of_warps : of_blocks);
}

Program program(const Shape& shape, const SoftmaxRows& softmax, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::softmax_prelude(softmax, descriptor::along_rows(softmax), shape.vector, emit);
  prelude.constant("THREADS", shape.threads).constant("LANES", shape.lanes).flag("KEEP", shape.keep != 0);
  prelude.constant("KEPT", shape.keep != 0 ? descriptor::steps_to_keep(emit, steps(shape, softmax.length())) : 1);

  Launch launch = descriptor::softmax_launch(softmax, "softmax_backward_rows", shape.threads);
  launch.grid[0] = descriptor::blocks_for_rows(softmax, shape.threads / shape.lanes);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const SoftmaxRows& softmax, const Target& target, const DeviceFigures& device) {
  const auto threads = static_cast<double>(softmax.count() * shape.lanes);
  const auto accesses = static_cast<double>(steps(shape, softmax.length()));
  const auto elements = static_cast<double>(softmax.elements());
  const double bytes = softmax.input_bytes();
  const bool keep = shape.keep != 0;
  const double resident = device.sms * 2048.0;
  const double under_way = std::min(threads, resident) * accesses * shape.vector * bytes;
  const bool rereads_memory = !keep && under_way > static_cast<double>(device.l2_bytes) / 2;
  const auto moved = descriptor::element_bytes(softmax, descriptor::along_rows(softmax), shape.vector);
  // A warp reads a piece of each of its rows at a time; pieces of less than two sectors waste look-ups in L1.
  const double waste = std::max(1.0, 128 / (shape.lanes * shape.vector * bytes));

  descriptor::StreamingWork work;
  work.dram_bytes = softmax.compulsory_bytes() + (rereads_memory ? elements * bytes : 0);
  work.cache_bytes = elements * waste * ((keep ? 1 : 2) * moved.read + moved.written);
  work.threads = threads;
  work.instructions_per_thread =
      80 + 6 * std::log2(shape.lanes) + accesses * ((keep ? 12 : 22) + shape.vector * (keep ? 8 : 11));
  work.blocks = threads / shape.threads;
  work.threads_per_block = shape.threads;
  work.registers_per_thread = 32 + (keep ? accesses : 4) * shape.vector * softmax.kept_bytes / 4;
  work.bytes_in_flight_per_thread = std::min(accesses, keep ? accesses : 4.0) * shape.vector * bytes;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace softmax_backward_rows_descriptor

Algorithm softmax_backward_rows() {
  using namespace softmax_backward_rows_descriptor;
  return describe<Shape, SoftmaxRows>("softmax_backward_rows", "softmax_backward", "softmax/softmax_backward_rows.cu")
      .takes_prologue()
      .param("KEEP", &Shape::keep, {1, 0})
      .param("LANES", &Shape::lanes, {32, 256, 8, 128, 512, 1024, 64, 16, 4, 2, 1})
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("THREADS", &Shape::threads, {256, 128, 512, 1024, 64})
      .rule("VECTOR divides the row", descriptor::vector_divides_row<Shape>)
      .pruning_open_too("alignment makes VECTOR pay", descriptor::vector_pays_along_row<Shape>)
      .rule("a row has lanes of a warp or all of a block", rows_fill_blocks)
      .rule("kept elements fit registers", fits_registers)
      .pruning("at least half of the lanes have work", lanes_have_work)
      .pruning("rows are read twice only where they are long", reads_twice_where_it_must)
      .opens(has_open_kernel)
      .applies([](const SoftmaxRows& softmax, const Target&) { return descriptor::refuse_along_rows(softmax); })
      .adds([](const Shape& shape, const SoftmaxRows&, const Target&) {
        return descriptor::order_along_rows("softmax_backward_rows", shape.lanes, shape.vector);
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
