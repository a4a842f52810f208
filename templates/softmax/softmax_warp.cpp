#include <algorithm>
#include <cmath>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "softmax/softmax_rows.h"

namespace kiln {
namespace softmax_warp_descriptor {
namespace {

using descriptor::SoftmaxRows;

constexpr int64_t elements_per_thread = 64;

struct Shape {
  int threads;
  int lanes;   // threads a row
  int vector;  // elements an access
};

int64_t steps(const Shape& shape, int64_t row) {
  return (row + shape.lanes * shape.vector - 1) / (shape.lanes * shape.vector);
}

std::optional<std::string> refusal(const SoftmaxRows& softmax, const Target&) {
  if (auto reason = descriptor::refuse_along_rows(softmax)) return reason;
  if (softmax.length() > 32 * elements_per_thread) {
    return "a row of more than 2048 elements does not fit the registers of a warp";
  }
  return std::nullopt;
}

bool fits_registers(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  return steps(shape, softmax.length()) * shape.vector <= elements_per_thread;
}

bool lanes_have_work(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  return shape.lanes == 1 || shape.lanes / 2 * shape.vector < softmax.length();
}

bool has_open_kernel(const Shape& shape, const SoftmaxRows&, const Target&) {
  return shape.lanes == 32 && shape.threads == 128 && (shape.vector == 1 || shape.vector == 4);
}

Program program(const Shape& shape, const SoftmaxRows& softmax, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::softmax_prelude(softmax, descriptor::along_rows(softmax), shape.vector, emit);
  prelude.constant("THREADS", shape.threads).constant("LANES", shape.lanes);
  prelude.constant("STEPS", descriptor::steps_to_keep(emit, steps(shape, softmax.length())));

  Launch launch = descriptor::softmax_launch(softmax, "softmax_warp", shape.threads);
  launch.grid[0] = descriptor::blocks_for_rows(softmax, shape.threads / shape.lanes);
  return descriptor::program_of(emit.source(prelude), launch);
}

// Bytes read and written for an element.
double cache_bytes(const Shape& shape, const SoftmaxRows& softmax) {
  const descriptor::RowLayout layout = descriptor::along_rows(softmax);
  const auto moved = descriptor::element_bytes(softmax, layout, shape.vector);
  const double bytes = softmax.input_bytes();
  if (layout.contiguous()) {
    // A warp reads a piece of each of its rows at a time; pieces of less than two sectors waste lookups in L1.
    const double piece = shape.lanes * shape.vector * bytes;
    return (moved.read + moved.written) * (shape.lanes < 32 ? std::max(1.0, 64 / piece) : 1.0);
  }
  if (shape.lanes > 1 || layout.outer.empty()) return moved.read + moved.written;
  // Neighbouring threads take neighbouring rows.
  const descriptor::RowDimension& next = layout.outer.front();
  const double y_bytes = size_of(softmax.result().dtype);
  return descriptor::lane_bytes(bytes, static_cast<double>(next.strides.front()) * bytes) +
         descriptor::lane_bytes(y_bytes, static_cast<double>(next.strides.back()) * y_bytes);
}

Estimate predict(const Shape& shape, const SoftmaxRows& softmax, const Target& target, const DeviceFigures& device) {
  const auto threads = static_cast<double>(softmax.count() * shape.lanes);
  const auto accesses = static_cast<double>(steps(shape, softmax.length()));
  const double bytes = softmax.input_bytes();

  descriptor::StreamingWork work;
  work.dram_bytes = softmax.compulsory_bytes();
  work.cache_bytes = threads * accesses * shape.vector * cache_bytes(shape, softmax);
  work.threads = threads;
  work.instructions_per_thread = 70 + 6 * std::log2(shape.lanes) + accesses * (8 + shape.vector * 12);
  work.blocks = threads / shape.threads;
  work.threads_per_block = shape.threads;
  work.registers_per_thread = 28 + accesses * shape.vector;
  work.bytes_in_flight_per_thread = accesses * shape.vector * bytes;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace softmax_warp_descriptor

Algorithm softmax_warp() {
  using namespace softmax_warp_descriptor;
  return describe<Shape, SoftmaxRows>("softmax_warp", "softmax_forward", "softmax/softmax_warp.cu")
      .takes_prologue()
      .param("LANES", &Shape::lanes, {32, 16, 8, 4, 2, 1})
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .rule("VECTOR divides the row", descriptor::vector_divides_row<Shape>)
      .pruning_open_too("alignment makes VECTOR pay", descriptor::vector_pays_along_row<Shape>)
      .rule("the row fits registers", fits_registers)
      .pruning("at least half of the lanes have work", lanes_have_work)
      .opens(has_open_kernel)
      .applies(refusal)
      .adds([](const Shape& shape, const SoftmaxRows&, const Target&) {
        return descriptor::order_along_rows("softmax_warp", shape.lanes, shape.vector);
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
