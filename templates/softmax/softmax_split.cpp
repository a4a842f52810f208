#include "kiln/generator/algorithm.h"
#include "softmax/softmax_parts.h"

namespace kiln {
namespace softmax_split_descriptor {
namespace {

using descriptor::SoftmaxRows;
using Shape = descriptor::PartsShape;

constexpr int64_t statistics_bytes = 8;  // of a part: maximum and sum

Program program(const Shape& shape, const SoftmaxRows& softmax, const Target&, const Emitter& emit) {
  return descriptor::parts_program("softmax_split_statistics", statistics_bytes, "softmax_split_normalise", shape,
                                   softmax, emit);
}

Estimate predict(const Shape& shape, const SoftmaxRows& softmax, const Target& target, const DeviceFigures& device) {
  descriptor::StreamingWork work = descriptor::parts_work(shape, softmax, device);
  work.instructions_per_thread =
      220 + 12 * shape.splits + descriptor::steps_of(shape, softmax) * (14 * shape.vector + 24);
  work.registers_per_thread = 40;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace softmax_split_descriptor

Algorithm softmax_split() {
  using namespace softmax_split_descriptor;
  return describe<Shape, SoftmaxRows>("softmax_split", "softmax_forward", "softmax/softmax_split.cu")
      .takes_prologue()
      .param("SPLITS", &Shape::splits, {16, 8, 4, 2, 32, 64})
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("THREADS", &Shape::threads, {256, 512, Shape::smallest_block})
      .rule("row length, alignment and VECTOR agree", descriptor::vector_pays_along_row<Shape>)
      .pruning("at least half of the threads have work", descriptor::part_threads_have_work)
      .opens(descriptor::has_open_parts)
      .applies(descriptor::refuse_parts)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
