#include <algorithm>
#include <cmath>

#include "descriptor/parts.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "softmax/softmax_rows.h"

namespace kiln {
namespace {

constexpr int64_t elements_per_thread = 64;

struct Shape {
  int threads;
  int lanes;   // threads a row
  int vector;  // elements an access
};

int64_t steps(const Shape& shape, int64_t row) {
  return (row + shape.lanes * shape.vector - 1) / (shape.lanes * shape.vector);
}

std::optional<std::string> refusal(const SoftmaxForward& softmax, const Target&) {
  if (auto reason = descriptor::refuse_along_rows(softmax)) return reason;
  if (softmax.row_length() > 32 * elements_per_thread) {
    return "a row of more than 2048 elements does not fit the registers of a warp";
  }
  return std::nullopt;
}

bool aligned(const Shape& shape, const SoftmaxForward& softmax, const Target&) {
  return descriptor::vector_pays(softmax, descriptor::along_rows(softmax), shape.vector);
}

bool fits_registers(const Shape& shape, const SoftmaxForward& softmax, const Target&) {
  return steps(shape, softmax.row_length()) * shape.vector <= elements_per_thread;
}

bool lanes_have_work(const Shape& shape, const SoftmaxForward& softmax, const Target&) {
  return shape.lanes == 1 || shape.lanes / 2 * shape.vector < softmax.row_length();
}

Program program(const Shape& shape, const SoftmaxForward& softmax, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::rows_prelude(softmax, descriptor::along_rows(softmax), shape.vector);
  prelude.constant("THREADS", shape.threads).constant("LANES", shape.lanes);

  Launch launch = descriptor::unary_launch("softmax_warp", shape.threads);
  launch.grid[0] = descriptor::blocks_for_rows(softmax, shape.threads / shape.lanes);
  return Program{{emit.source(prelude)}, {launch}};
}

// Of an element, read and written.
double cache_bytes(const Shape& shape, const SoftmaxForward& softmax) {
  const descriptor::RowLayout layout = descriptor::along_rows(softmax);
  const auto moved = descriptor::element_bytes(softmax, layout, shape.vector);
  const double bytes = size_of(softmax.x.dtype);
  if (layout.contiguous()) {
    // A warp reads a piece of each of its rows at a time; pieces of less than two sectors waste lookups in L1.
    const double piece = shape.lanes * shape.vector * bytes;
    return (moved.x + moved.y) * (shape.lanes < 32 ? std::max(1.0, 64 / piece) : 1.0);
  }
  if (shape.lanes > 1 || layout.outer.empty()) return moved.x + moved.y;
  // Neighbouring threads take neighbouring rows.
  const descriptor::RowDimension& next = layout.outer.front();
  const double y_bytes = size_of(softmax.y.dtype);
  return descriptor::lane_bytes(bytes, static_cast<double>(next.x_stride) * bytes) +
         descriptor::lane_bytes(y_bytes, static_cast<double>(next.y_stride) * y_bytes);
}

Estimate predict(const Shape& shape, const SoftmaxForward& softmax, const Target& target, const DeviceFigures& device) {
  const auto threads = static_cast<double>(softmax.rows() * shape.lanes);
  const auto accesses = static_cast<double>(steps(shape, softmax.row_length()));
  const double bytes = size_of(softmax.x.dtype);

  descriptor::StreamingWork work;
  work.dram_bytes = descriptor::compulsory_bytes(softmax);
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

Algorithm softmax_warp() {
  return describe<Shape, SoftmaxForward>("softmax_warp", "softmax_forward", "softmax/softmax_warp.cu")
      .param("LANES", &Shape::lanes, {32, 16, 8, 4, 2, 1})
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .rule("row length, alignment and VECTOR agree", aligned)
      .rule("the row fits registers", fits_registers)
      .rule("at least half of the lanes have work", lanes_have_work)
      .applies(refusal)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
