#include <fmt/format.h>

#include "softmax/softmax_across.h"

namespace kiln {
namespace softmax_strided_descriptor {
namespace {

using descriptor::SoftmaxRows;
using Shape = descriptor::AcrossShape;

constexpr int64_t elements_per_thread = 64;

bool fits_registers(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  const int64_t kept = shape.keep != 0 ? descriptor::steps_of(shape, softmax) : 4;
  return kept * shape.vector <= elements_per_thread;
}

bool shared_memory_fits(const Shape& shape, const SoftmaxRows&, const Target& target) {
  return 8 * shape.inner_lanes * shape.axis_lanes * shape.vector <= target.arch.shared_per_block_default;
}

Program program(const Shape& shape, const SoftmaxRows& softmax, const Target&, const Emitter& emit) {
  return descriptor::across_program("softmax_strided", shape, softmax, emit);
}

Estimate predict(const Shape& shape, const SoftmaxRows& softmax, const Target& target, const DeviceFigures& device) {
  const bool keep = shape.keep != 0;
  const auto taken = static_cast<double>(descriptor::steps_of(shape, softmax));
  const double group = keep ? taken : 4;
  descriptor::StreamingWork work = descriptor::across_work(shape, softmax, device);
  work.instructions_per_thread =
      80 + (keep ? 1 : 2) * taken * 8 + shape.vector * (30 + shape.axis_lanes * 12 + taken * (14 + 8 / group));
  work.registers_per_thread = 40 + (group + 4) * shape.vector;
  work.shared_bytes_per_block = shape.axis_lanes > 1 ? 8 * work.threads_per_block * shape.vector : 0;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace softmax_strided_descriptor

Algorithm softmax_strided() {
  using namespace softmax_strided_descriptor;
  return describe<Shape, SoftmaxRows>("softmax_strided", "softmax_forward", "softmax/softmax_strided.cu")
      .takes_prologue()
      .param("KEEP", &Shape::keep, {1, 0})
      .param("VECTOR", &Shape::vector, {2, 4, 1, 8})
      .param("AXIS_LANES", &Shape::axis_lanes, {4, 1, 2, 8, 16})
      .param("INNER_LANES", &Shape::inner_lanes, {32, 16, 8, 64, 128})
      .rule("inner extent, alignment and VECTOR agree", descriptor::across_aligned)
      .rule("the block has 32 to 512 threads", descriptor::across_block_fits)
      .rule("a thread's elements fit registers", fits_registers)
      .rule("statistics fit shared memory", shared_memory_fits)
      .pruning("at least half of the lanes have work", descriptor::across_lanes_have_work)
      .opens(descriptor::across_has_open_kernel)
      .applies([](const SoftmaxRows& softmax, const Target&) { return descriptor::refuse_across_rows(softmax); })
      .adds([](const Shape& shape, const SoftmaxRows& softmax, const Target&) {
        // Elements that are kept meet in one step: others in steps of four.
        const int64_t together = shape.keep != 0 ? descriptor::steps_of(shape, softmax) : 4;
        return fmt::format("{}, {} together", descriptor::order_across_rows("softmax_strided", shape.axis_lanes),
                           together);
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
