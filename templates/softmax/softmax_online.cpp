#include <algorithm>
#include <cmath>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "softmax/softmax_rows.h"

namespace kiln {
namespace softmax_online_descriptor {
namespace {

using descriptor::SoftmaxRows;

struct Shape {
  int threads;
  int vector;  // elements an access
};

bool threads_have_work(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  return shape.threads == 128 || shape.threads / 2 * shape.vector < softmax.length();
}

bool has_open_kernel(const Shape& shape, const SoftmaxRows&, const Target&) {
  return (shape.threads == 128 || shape.threads == 1024) && (shape.vector == 1 || shape.vector == 4);
}

Program program(const Shape& shape, const SoftmaxRows& softmax, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::softmax_prelude(softmax, descriptor::along_rows(softmax), shape.vector, emit);
  prelude.constant("THREADS", shape.threads);

  Launch launch = descriptor::softmax_launch(softmax, "softmax_online", shape.threads);
  launch.grid[0] = descriptor::blocks_for_rows(softmax, 1);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const SoftmaxRows& softmax, const Target& target, const DeviceFigures& device) {
  const auto rows = static_cast<double>(softmax.count());
  const auto row = static_cast<double>(softmax.length());
  const double bytes = softmax.input_bytes();
  const auto moved = descriptor::element_bytes(softmax, descriptor::along_rows(softmax), shape.vector);

  descriptor::StreamingWork work;
  // The second read comes from L2 as far as the rows that are under way at the same time fit there.
  const double under_way = std::min(rows, device.sms * 2048.0 / shape.threads) * row * bytes;
  const bool rereads_memory = under_way > static_cast<double>(device.l2_bytes) / 2;
  work.dram_bytes = softmax.compulsory_bytes() + (rereads_memory ? rows * row * bytes : 0);
  work.cache_bytes = rows * row * (2 * moved.read + moved.written);
  work.threads = rows * shape.threads;
  work.instructions_per_thread = 200 + std::ceil(row / (shape.threads * shape.vector)) * (14 * shape.vector + 24);
  work.blocks = rows;
  work.threads_per_block = shape.threads;
  work.registers_per_thread = 40;
  work.bytes_in_flight_per_thread = std::min(row / shape.threads, 4.0 * shape.vector) * bytes;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace softmax_online_descriptor

Algorithm softmax_online() {
  using namespace softmax_online_descriptor;
  return describe<Shape, SoftmaxRows>("softmax_online", "softmax_forward", "softmax/softmax_online.cu")
      .takes_prologue()
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("THREADS", &Shape::threads, {256, 512, 1024, 128})
      .rule("VECTOR divides the row", descriptor::vector_divides_row<Shape>)
      .pruning_open_too("alignment makes VECTOR pay", descriptor::vector_pays_along_row<Shape>)
      .pruning("at least half of the threads have work", threads_have_work)
      .opens(has_open_kernel)
      .applies([](const SoftmaxRows& softmax, const Target&) { return descriptor::refuse_along_rows(softmax); })
      .adds([](const Shape& shape, const SoftmaxRows&, const Target&) {
        return descriptor::order_along_rows("softmax_online", shape.threads, shape.vector);
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
