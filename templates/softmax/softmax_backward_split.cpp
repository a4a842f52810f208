#include <algorithm>
#include <cmath>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "softmax/softmax_rows.h"

namespace kiln {
namespace softmax_backward_split_descriptor {
namespace {

using descriptor::SoftmaxRows;

constexpr int64_t sum_bytes = 4;  // of a part
constexpr int smallest_block = 128;

struct Shape {
  int threads;
  int vector;  // elements an access
  int splits;  // blocks a row
};

std::optional<std::string> refusal(const SoftmaxRows& softmax, const Target&) {
  if (auto reason = descriptor::refuse_along_rows(softmax)) return reason;
  if (softmax.length() <= smallest_block) return "the row is too short to be split";
  return std::nullopt;
}

bool aligned(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  return descriptor::vector_pays(softmax, descriptor::along_rows(softmax), shape.vector);
}

bool a_thread_reads_a_sum(const Shape& shape, const SoftmaxRows&, const Target&) {
  return shape.splits <= shape.threads;
}

bool threads_have_work(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  return static_cast<int64_t>(shape.threads) / 2 * shape.vector * shape.splits < softmax.length();
}

Program program(const Shape& shape, const SoftmaxRows& softmax, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::softmax_prelude(softmax, descriptor::along_rows(softmax), shape.vector);
  prelude.constant("THREADS", shape.threads).constant("SPLITS", shape.splits);

  const WorkspaceArgument parts{0, softmax.count() * shape.splits * sum_bytes};
  Launch sums = descriptor::launch_of("softmax_backward_split_sums", shape.threads,
                                      {OperandArgument{"y"}, OperandArgument{"dy"}, UserArgument{}, parts});
  sums.grid[0] = descriptor::blocks_for_rows(softmax, 1);
  sums.grid[0].fixed *= shape.splits;
  sums.grid[0].per_n *= shape.splits;

  Launch gradients = sums;
  gradients.entry = "softmax_backward_split_gradients";
  gradients.arguments = {OperandArgument{"y"},
                         OperandArgument{"dy"},
                         OperandArgument{"dx"},
                         Scalar::alpha,
                         Scalar::beta,
                         UserArgument{},
                         parts};
  return Program{{emit.source(prelude)}, {sums, gradients}};
}

Estimate predict(const Shape& shape, const SoftmaxRows& softmax, const Target& target, const DeviceFigures& device) {
  const auto rows = static_cast<double>(softmax.count());
  const auto elements = static_cast<double>(softmax.elements());
  const double bytes = softmax.input_bytes();
  const auto moved = descriptor::element_bytes(softmax, descriptor::along_rows(softmax), shape.vector);

  descriptor::StreamingWork work;
  const bool rereads_memory = elements * bytes > static_cast<double>(device.l2_bytes) / 2;
  work.dram_bytes = softmax.compulsory_bytes() + (rereads_memory ? elements * bytes : 0);
  work.cache_bytes = elements * (2 * moved.read + moved.written);
  work.blocks = rows * shape.splits;
  work.threads = work.blocks * shape.threads;
  const double per_thread = static_cast<double>(softmax.length()) / (shape.threads * shape.splits);
  work.instructions_per_thread = 240 + std::ceil(per_thread / shape.vector) * (22 + 11 * shape.vector);
  work.threads_per_block = shape.threads;
  work.registers_per_thread = 32 + shape.vector * softmax.kept_bytes;  // four steps, four bytes a register
  work.bytes_in_flight_per_thread = std::min(per_thread, 4.0 * shape.vector) * bytes;
  work.launches = 2;
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
      .param("THREADS", &Shape::threads, {256, 512, smallest_block})
      .rule("row length, alignment and VECTOR agree", aligned)
      .rule("a thread reads the sum of each part", a_thread_reads_a_sum)
      .rule("at least half of the threads have work", threads_have_work)
      .applies(refusal)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
