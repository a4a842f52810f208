#include "kiln/generator/algorithm.h"
#include "softmax/softmax_parts.h"

namespace kiln {
namespace softmax_backward_split_descriptor {
namespace {

using descriptor::SoftmaxRows;
using Shape = descriptor::PartsShape;

constexpr int64_t sum_bytes = 4;  // of a part

bool a_thread_reads_a_sum(const Shape& shape, const SoftmaxRows&, const Target&) {
  return shape.splits <= shape.threads;
}

Program program(const Shape& shape, const SoftmaxRows& softmax, const Target&, const Emitter& emit) {
  return descriptor::parts_program("softmax_backward_split_sums", sum_bytes, "softmax_backward_split_gradients", shape,
                                   softmax, emit);
}

Estimate predict(const Shape& shape, const SoftmaxRows& softmax, const Target& target, const DeviceFigures& device) {
  descriptor::StreamingWork work = descriptor::parts_work(shape, softmax, device);
  work.instructions_per_thread = 240 + descriptor::steps_of(shape, softmax) * (22 + 11 * shape.vector);
  work.registers_per_thread = 32 + shape.vector * softmax.kept_bytes;  // four steps, four bytes a register
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace softmax_backward_split_descriptor

Algorithm softmax_backward_split() {
  using namespace softmax_backward_split_descriptor;
  return describe<Shape, SoftmaxRows>("softmax_backward_split", "softmax_backward", "softmax/softmax_backward_split.cu")
      .takes_prologue()
      .param("SPLITS", &Shape::splits, {16, 8, 4, 2, 32, 64, 128, 256})
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("THREADS", &Shape::threads, {256, 512, Shape::smallest_block})
      .rule("row length, alignment and VECTOR agree", descriptor::vector_pays_along_row<Shape>)
      .rule("a thread reads the sum of each part", a_thread_reads_a_sum)
      .pruning("at least half of the threads have work", descriptor::part_threads_have_work)
      .opens(descriptor::has_open_parts)
      .applies(descriptor::refuse_parts)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
