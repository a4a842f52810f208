#include <algorithm>
#include <optional>
#include <string>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "pointwise/pointwise_problem.h"

namespace kiln {
namespace pointwise_vector_descriptor {
namespace {

using descriptor::PointwiseProblem;

struct Shape {
  int threads;
  int vector;  // neighbours in y that move together
  int items;   // vectors a thread
};

// Whether `vector` neighbours of operand i can move in one access: they lie side by side, and the address of the first
// is aligned wherever it stands. Inputs whose neighbours do not are loaded one by one.
bool moves_together(const PointwiseProblem& problem, size_t i, int64_t vector) {
  if (!problem.is_in_memory(i)) return true;
  const TensorSpec& spec = problem.operands[i].spec;
  const std::vector<int64_t>& strides = problem.merged.strides[i];
  if (strides[0] != 1) return i != problem.inputs();
  const int64_t bytes = size_of(spec.dtype), access = std::min<int64_t>(16, vector * bytes);
  return spec.alignment % access == 0 &&
         std::all_of(strides.begin() + 1, strides.end(), [&](int64_t stride) { return stride * bytes % access == 0; });
}

bool aligned(const Shape& shape, const PointwiseProblem& problem, const Target&) {
  if (shape.vector == 1) return true;
  if (problem.merged.extents.size() > 1 && problem.merged.extents[0] % shape.vector != 0) return false;
  for (size_t i = 0; i < problem.operands.size(); ++i) {
    if (!moves_together(problem, i, shape.vector)) return false;
  }
  return true;
}

int narrowest_bytes(const PointwiseProblem& problem) {
  int narrowest = 4;
  for (size_t i = 0; i < problem.operands.size(); ++i) {
    if (problem.is_in_memory(i)) narrowest = std::min(narrowest, size_of(problem.operands[i].spec.dtype));
  }
  return narrowest;
}

// More than 16 bytes of every operand cost registers and gain nothing.
bool no_wider_than_needed(const Shape& shape, const PointwiseProblem& problem, const Target&) {
  return shape.vector * narrowest_bytes(problem) <= 16;
}

bool fits_registers(const Shape& shape, const PointwiseProblem& problem, const Target&) {
  int bytes = 0;
  for (const Operand& operand : problem.operands) bytes += size_of(operand.spec.dtype);
  return shape.vector * shape.items * bytes <= 256;
}

// Elements of the batch that a block takes.
int64_t elements_per_block(const Shape& shape) {
  return int64_t{shape.threads} * shape.vector * shape.items;
}

bool no_idle_items(const Shape& shape, const PointwiseProblem& problem, const Target&) {
  return shape.items == 1 || elements_per_block(shape) <= problem.per_image * problem.batch;
}

bool has_open_kernel(const Shape& shape, const PointwiseProblem& problem, const Target&) {
  const bool is_padded_width = shape.vector == 2 && !problem.padding.empty();  // few rows with padding are of fours
  const bool is_open_width =
      shape.vector == 1 || shape.vector == 4 || is_padded_width || shape.vector * narrowest_bytes(problem) == 16;
  return is_open_width && shape.items == 1 && shape.threads == 256;
}

Program program(const Shape& shape, const PointwiseProblem& problem, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::pointwise_prelude(problem, problem.merged, emit.open());
  prelude.constant("THREADS", shape.threads).constant("VECTOR", shape.vector).constant("ITEMS", shape.items);
  Launch launch = descriptor::pointwise_launch(problem, "pointwise_vector", shape.threads);
  launch.grid[0] =
      descriptor::blocks_for(problem.per_image, problem.batch, problem.dynamic_batch, elements_per_block(shape));
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const PointwiseProblem& problem, const Target& target,
                 const DeviceFigures& device) {
  const auto elements = static_cast<double>(problem.per_image * problem.batch);
  const double vector = shape.vector;
  descriptor::StreamingWork work;
  work.dram_bytes = problem.compulsory_bytes();
  double accesses = 0, bytes_of_inputs = 0;  // a vector's
  for (size_t i = 0; i < problem.operands.size(); ++i) {
    if (!problem.is_in_memory(i)) continue;
    const double bytes = size_of(problem.operands[i].spec.dtype);
    const auto stride = static_cast<double>(problem.merged.strides[i][0]);
    if (stride == 1) {
      work.cache_bytes += elements * bytes;
      accesses += std::max(1.0, vector * bytes / 16);
    } else if (stride > 1) {
      // Neighbours of a stray input may be others' neighbours in the cache: half of the time.
      work.cache_bytes += elements * descriptor::lane_bytes(bytes, stride * bytes);
      work.dram_bytes += elements * (descriptor::lane_bytes(bytes, stride * bytes) - bytes) / 2;
      accesses += vector;
    }
    if (i < problem.inputs()) bytes_of_inputs += vector * bytes;
  }
  work.threads = elements / (vector * shape.items);
  const double divisions = static_cast<double>(problem.merged.extents.size()) - 1;
  // Random words come by fours, of neighbours in logical order alone.
  const bool random = problem.function == descriptor::PointwiseFunction::dropout;
  const double words = !random ? 0 : problem.merged.strides[1][0] == 1 ? std::max(1.0, vector / 4) : vector;
  work.instructions_per_thread =
      20 + shape.items * (12 + 8 * divisions + 2 * accesses + (random ? 8 : 20) * vector + 90 * words);
  work.blocks = elements / static_cast<double>(elements_per_block(shape));
  work.threads_per_block = shape.threads;
  work.registers_per_thread = 28 + shape.items * (bytes_of_inputs / 4 + 4) + vector;
  work.bytes_in_flight_per_thread = shape.items * std::max(bytes_of_inputs, 4.0);
  return descriptor::streaming_estimate(work, target.arch, device);
}

using WhyNot = std::optional<std::string>;
WhyNot serves_all(const PointwiseProblem&, const Target&) {
  return std::nullopt;
}

Algorithm vectors(const std::string& operation,
                  WhyNot (*why_not)(const PointwiseProblem&, const Target&) = serves_all) {
  return describe<Shape, PointwiseProblem>(operation + "_vector", operation, "pointwise/pointwise_vector.cu")
      .applies(why_not)
      .takes_prologue()
      .param("VECTOR", &Shape::vector, {4, 8, 2, 16, 1})
      .param("ITEMS", &Shape::items, {1, 2, 4})
      .param("THREADS", &Shape::threads, {256, 128, 512})
      .rule("extents, strides, alignment and VECTOR agree", aligned)
      .rule("a vector of the narrowest operand has at most 16 bytes", no_wider_than_needed)
      .rule("a thread's elements fit registers", fits_registers)
      .pruning("ITEMS leave no block without work", no_idle_items)
      .opens(has_open_kernel)
      .program(program)
      .estimate(predict);
}

}  // namespace
}  // namespace pointwise_vector_descriptor

Algorithm activation_forward_vector() {
  using namespace pointwise_vector_descriptor;
  return vectors("activation_forward");
}
Algorithm activation_backward_vector() {
  using namespace pointwise_vector_descriptor;
  return vectors("activation_backward");
}
Algorithm tensor_transform_vector() {
  using namespace pointwise_vector_descriptor;
  return vectors("tensor_transform");
}
Algorithm tensor_set_vector() {
  using namespace pointwise_vector_descriptor;
  return vectors("tensor_set");
}
Algorithm tensor_op_vector() {
  using namespace pointwise_vector_descriptor;
  return vectors("tensor_op");
}
Algorithm tensor_op_backward_vector() {
  using namespace pointwise_vector_descriptor;
  return vectors("tensor_op_backward", [](const PointwiseProblem& problem, const Target&) -> WhyNot {
    if (problem.operands.front().spec.extents == problem.result().extents) return std::nullopt;
    return "gradients are added up";
  });
}
Algorithm dropout_vector() {
  using namespace pointwise_vector_descriptor;
  return vectors("dropout");
}

}  // namespace kiln
