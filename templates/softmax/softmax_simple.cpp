#include <algorithm>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "softmax/softmax_rows.h"

namespace kiln {
namespace softmax_simple_descriptor {
namespace {

using descriptor::SoftmaxRows;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const SoftmaxRows& softmax, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::simple_softmax_prelude(softmax);
  prelude.constant("THREADS", shape.threads);

  Launch launch = descriptor::softmax_launch(softmax, "softmax_simple", shape.threads);
  launch.grid[0] = descriptor::blocks_for_rows(softmax, shape.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const SoftmaxRows& softmax, const Target& target, const DeviceFigures& device) {
  const auto rows = static_cast<double>(softmax.count());
  const auto elements = static_cast<double>(softmax.elements());
  // Neighbouring threads take neighbouring rows, so only rows across a contiguous dimension share sectors.
  const bool shares_sectors =
      !descriptor::refuse_across_rows(softmax) && descriptor::across_rows(softmax).inner.strides.front() == 1;
  descriptor::StreamingWork work;
  work.dram_bytes = softmax.compulsory_bytes() * (shares_sectors ? 1 : 3);
  const double access = shares_sectors ? 4 : 32;
  work.cache_bytes = elements * access * 4;
  work.threads = rows;
  work.instructions_per_thread = 60 + static_cast<double>(softmax.length()) * 45;
  work.blocks = rows / shape.threads;
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = 2.0 * softmax.input_bytes();
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace softmax_simple_descriptor

Algorithm softmax_simple() {
  using namespace softmax_simple_descriptor;
  return describe<Shape, SoftmaxRows>("softmax_simple", "softmax_forward", "softmax/softmax_simple.cu")
      .trusted()
      .takes_prologue()
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .adds([](const Shape&, const SoftmaxRows&, const Target&) { return std::string(descriptor::in_one_thread); })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
