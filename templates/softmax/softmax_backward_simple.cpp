#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "softmax/softmax_rows.h"

namespace kiln {
namespace softmax_backward_simple_descriptor {
namespace {

using descriptor::SoftmaxRows;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const SoftmaxRows& softmax, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::simple_softmax_prelude(softmax);
  prelude.constant("THREADS", shape.threads);

  Launch launch = descriptor::softmax_launch(softmax, "softmax_backward_simple", shape.threads);
  launch.grid[0] = descriptor::blocks_for_rows(softmax, shape.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const SoftmaxRows& softmax, const Target& target, const DeviceFigures& device) {
  const auto rows = static_cast<double>(softmax.count());
  descriptor::StreamingWork work;
  // Neighbouring threads take neighbouring rows: each of their accesses moves a sector of its own.
  work.dram_bytes = softmax.compulsory_bytes() * 3;
  work.cache_bytes = static_cast<double>(softmax.elements()) * 32 * 5;
  work.threads = rows;
  work.instructions_per_thread = 60 + static_cast<double>(softmax.length()) * 30;
  work.blocks = rows / shape.threads;
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = softmax.input_bytes();
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace softmax_backward_simple_descriptor

Algorithm softmax_backward_simple() {
  using namespace softmax_backward_simple_descriptor;
  return describe<Shape, SoftmaxRows>("softmax_backward_simple", "softmax_backward",
                                      "softmax/softmax_backward_simple.cu")
      .trusted()
      .takes_prologue()
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .adds([](const Shape&, const SoftmaxRows&, const Target&) { return std::string(descriptor::in_one_thread); })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
