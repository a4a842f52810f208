#include <algorithm>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "softmax/softmax_rows.h"

namespace kiln {
namespace softmax_block_descriptor {
namespace {

using descriptor::SoftmaxRows;

constexpr int64_t elements_per_thread = 64;
constexpr int64_t scratch_bytes = 128;  // of the reductions

struct Shape {
  int threads;
  int vector;       // elements an access
  int keep_shared;  // whether the row stays in shared memory instead of registers
};

int64_t steps(const Shape& shape, int64_t row) {
  return (row + shape.threads * shape.vector - 1) / (shape.threads * shape.vector);
}

int64_t row_bytes(const SoftmaxRows& softmax) {
  return softmax.length() * softmax.kept_bytes;
}

bool fits_on_chip(const Shape& shape, const SoftmaxRows& softmax, const Target& target) {
  if (shape.keep_shared != 0) return row_bytes(softmax) + scratch_bytes <= target.arch.shared_per_block;
  const int64_t registers =
      std::min<int64_t>(target.arch.registers_per_sm / shape.threads, target.arch.registers_per_thread);
  const int64_t elements = steps(shape, softmax.length()) * shape.vector;
  return elements <= std::min(elements_per_thread, registers - 28);
}

bool threads_have_work(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  return shape.threads == 64 || shape.threads / 2 * shape.vector < softmax.length();
}

bool registers_do_not_suffice(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  return shape.keep_shared == 0 || steps(shape, softmax.length()) * shape.vector > 8;
}

Program program(const Shape& shape, const SoftmaxRows& softmax, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::softmax_prelude(softmax, descriptor::along_rows(softmax), shape.vector, emit);
  prelude.constant("THREADS", shape.threads);
  prelude.flag("KEEP_SHARED", shape.keep_shared != 0);

  Launch launch = descriptor::softmax_launch(softmax, "softmax_block", shape.threads);
  launch.grid[0] = descriptor::blocks_for_rows(softmax, 1);
  if (shape.keep_shared != 0) launch.dynamic_shared_bytes = static_cast<unsigned>(row_bytes(softmax));
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const SoftmaxRows& softmax, const Target& target, const DeviceFigures& device) {
  const auto rows = static_cast<double>(softmax.count());
  const auto elements = static_cast<double>(softmax.elements());
  const auto accesses = static_cast<double>(steps(shape, softmax.length()));
  const double bytes = softmax.input_bytes();
  const bool shared = shape.keep_shared != 0;
  const auto moved = descriptor::element_bytes(softmax, descriptor::along_rows(softmax), shape.vector);

  descriptor::StreamingWork work;
  work.dram_bytes = softmax.compulsory_bytes();
  work.cache_bytes = elements * (moved.read + moved.written + (shared ? 3 * softmax.kept_bytes : 0));
  work.threads = rows * shape.threads;
  work.instructions_per_thread = 180 + accesses * (shared ? 24 : 10) + accesses * shape.vector * (shared ? 15 : 12);
  work.blocks = rows;
  work.threads_per_block = shape.threads;
  work.registers_per_thread = 32 + (shared ? 0 : accesses * shape.vector);
  work.shared_bytes_per_block = static_cast<double>(scratch_bytes + (shared ? row_bytes(softmax) : 0));
  work.bytes_in_flight_per_thread = std::min(accesses, shared ? 4.0 : accesses) * shape.vector * bytes;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace softmax_block_descriptor

Algorithm softmax_block() {
  using namespace softmax_block_descriptor;
  return describe<Shape, SoftmaxRows>("softmax_block", "softmax_forward", "softmax/softmax_block.cu")
      .takes_prologue()
      .param("KEEP_SHARED", &Shape::keep_shared, {0, 1})
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("THREADS", &Shape::threads, {256, 512, 128, 1024, 64})
      .rule("VECTOR divides the row", descriptor::vector_divides_row<Shape>)
      .pruning_open_too("alignment makes VECTOR pay", descriptor::vector_pays_along_row<Shape>)
      .rule("the row fits on chip", fits_on_chip)
      .rule("at least half of the threads have work", threads_have_work)
      .rule("shared memory keeps what eight registers a thread do not", registers_do_not_suffice)
      .applies([](const SoftmaxRows& softmax, const Target&) { return descriptor::refuse_along_rows(softmax); })
      .adds([](const Shape& shape, const SoftmaxRows&, const Target&) {
        return descriptor::order_along_rows("softmax_block", shape.threads, shape.vector);
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
