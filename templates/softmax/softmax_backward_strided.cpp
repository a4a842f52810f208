#include <algorithm>

#include "softmax/softmax_across.h"

namespace kiln {
namespace softmax_backward_strided_descriptor {
namespace {

using descriptor::SoftmaxRows;
using Shape = descriptor::AcrossShape;

constexpr double kept_bytes = 256;  // of y and dy in a thread's registers

bool fits_registers(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  if (shape.keep == 0) return true;
  return static_cast<double>(descriptor::steps_of(shape, softmax) * shape.vector) * softmax.kept_bytes <= kept_bytes;
}

bool reads_twice_where_it_must(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  return shape.keep != 0 || descriptor::steps_of(shape, softmax) > 4;
}

Program program(const Shape& shape, const SoftmaxRows& softmax, const Target&, const Emitter& emit) {
  return descriptor::across_program("softmax_backward_strided", shape, softmax, emit);
}

Estimate predict(const Shape& shape, const SoftmaxRows& softmax, const Target& target, const DeviceFigures& device) {
  const bool keep = shape.keep != 0;
  const auto taken = static_cast<double>(descriptor::steps_of(shape, softmax));
  const double at_a_time = keep ? taken : std::min(taken, 4.0);
  descriptor::StreamingWork work = descriptor::across_work(shape, softmax, device);
  work.instructions_per_thread = 90 + (keep ? 1 : 2) * taken * 10 + shape.vector * (shape.axis_lanes * 3 + taken * 8);
  work.registers_per_thread = 32 + at_a_time * shape.vector * softmax.kept_bytes / 4;
  work.shared_bytes_per_block = shape.axis_lanes > 1 ? 4 * work.threads_per_block * shape.vector : 0;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace softmax_backward_strided_descriptor

Algorithm softmax_backward_strided() {
  using namespace softmax_backward_strided_descriptor;
  return describe<Shape, SoftmaxRows>("softmax_backward_strided", "softmax_backward",
                                      "softmax/softmax_backward_strided.cu")
      .takes_prologue()
      .param("KEEP", &Shape::keep, {1, 0})
      .param("VECTOR", &Shape::vector, {2, 4, 1, 8})
      .param("AXIS_LANES", &Shape::axis_lanes, {4, 1, 2, 8, 16})
      .param("INNER_LANES", &Shape::inner_lanes, {32, 16, 8, 64, 128})
      .rule("inner extent, alignment and VECTOR agree", descriptor::across_aligned)
      .rule("the block has 32 to 512 threads", descriptor::across_block_fits)
      .rule("kept elements fit registers", fits_registers)
      .pruning("at least half of the lanes have work", descriptor::across_lanes_have_work)
      .opens(descriptor::across_has_open_kernel)
      .pruning("rows are read twice only where they are long", reads_twice_where_it_must)
      .applies([](const SoftmaxRows& softmax, const Target&) { return descriptor::refuse_across_rows(softmax); })
      .adds([](const Shape& shape, const SoftmaxRows&, const Target&) {
        return descriptor::order_across_rows("softmax_backward_strided", shape.axis_lanes);
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
