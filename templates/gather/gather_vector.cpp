#include <algorithm>

#include "descriptor/prelude_and_launch.h"
#include "gather/gather_problem.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace gather_vector_descriptor {
namespace {

using descriptor::GatherProblem;
using descriptor::PointwiseProblem;

struct Shape {
  int threads;
  int vector;  // neighbours in y that move together
  int items;   // vectors a thread
};

// Whether `vector` neighbours of operand i, which lie side by side, can move in one access wherever the first stands.
// `more`: a further stride that a vector may begin at.
bool moves_together(const PointwiseProblem& all, size_t i, int64_t vector, int64_t more = 0) {
  const TensorSpec& spec = all.operands[i].spec;
  const std::vector<int64_t>& strides = all.merged.strides[i];
  const int64_t bytes = size_of(spec.dtype), access = std::min<int64_t>(16, vector * bytes);
  const auto keeps = [&](int64_t stride) { return stride * bytes % access == 0; };
  return spec.alignment % access == 0 && keeps(more) && std::all_of(strides.begin() + 1, strides.end(), keeps);
}

bool aligned(const Shape& shape, const GatherProblem& gather, const Target&) {
  if (shape.vector == 1) return true;
  const PointwiseProblem& all = gather.elements;
  const std::vector<std::vector<int64_t>>& strides = all.merged.strides;
  const int64_t row = all.merged.extents.size() == 1 ? all.per_image : all.merged.extents[0];
  if (row % shape.vector != 0 || strides[2][0] != 1 || !moves_together(all, 2, shape.vector)) return false;
  if (strides[1][0] == 1) return moves_together(all, 1, shape.vector);
  const bool rows_of_x = strides[1][0] == 0 && strides[0][0] == 1;
  return !rows_of_x || moves_together(all, 0, shape.vector, gather.axis_stride);
}

int narrower_bytes(const GatherProblem& gather) {
  const std::vector<Operand>& operands = gather.elements.operands;
  return std::min(size_of(operands[0].spec.dtype), size_of(operands[2].spec.dtype));
}

// More than 16 bytes of every operand cost registers and gain nothing.
bool no_wider_than_needed(const Shape& shape, const GatherProblem& gather, const Target&) {
  return shape.vector * narrower_bytes(gather) <= 16;
}

bool fits_registers(const Shape& shape, const GatherProblem& gather, const Target&) {
  const std::vector<Operand>& operands = gather.elements.operands;
  const int bytes = 4 + size_of(operands[0].spec.dtype) + size_of(operands[2].spec.dtype);
  return shape.vector * shape.items * bytes <= 256;
}

int64_t elements_per_block(const Shape& shape) {
  return int64_t{shape.threads} * shape.vector * shape.items;
}

bool no_idle_items(const Shape& shape, const GatherProblem& gather, const Target&) {
  return shape.items == 1 || elements_per_block(shape) <= gather.elements.per_image * gather.elements.batch;
}

bool has_open_kernel(const Shape& shape, const GatherProblem& gather, const Target&) {
  const bool is_open_width = shape.vector == 1 || shape.vector == 4 || shape.vector * narrower_bytes(gather) == 16;
  return is_open_width && shape.items == 1 && shape.threads == 256;
}

Program program(const Shape& shape, const GatherProblem& gather, const Target&, const Emitter& emit) {
  const PointwiseProblem& all = gather.elements;
  Prelude prelude = descriptor::gather_prelude(gather, all.merged, emit.open());
  prelude.constant("THREADS", shape.threads).constant("VECTOR", shape.vector).constant("ITEMS", shape.items);
  Launch launch = descriptor::pointwise_launch(all, "gather_vector", shape.threads);
  launch.grid[0] = descriptor::blocks_for(all.per_image, all.batch, all.dynamic_batch, elements_per_block(shape));
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const GatherProblem& gather, const Target& target, const DeviceFigures& device) {
  return descriptor::streaming_estimate(
      descriptor::gather_work(gather, gather.elements.merged, shape.vector, shape.items, shape.threads), target.arch,
      device);
}

}  // namespace
}  // namespace gather_vector_descriptor

Algorithm gather_vector() {
  using namespace gather_vector_descriptor;
  return describe<Shape, GatherProblem>("gather_vector", "gather", "gather/gather_vector.cu")
      .takes_prologue()
      .param("VECTOR", &Shape::vector, {4, 8, 2, 16, 1})
      .param("ITEMS", &Shape::items, {1, 2, 4})
      .param("THREADS", &Shape::threads, {256, 128, 512})
      .rule("rows, strides, alignment and VECTOR agree", aligned)
      .rule("a vector of the narrower of x and y has at most 16 bytes", no_wider_than_needed)
      .rule("a thread's elements fit registers", fits_registers)
      .pruning("ITEMS leave no block without work", no_idle_items)
      .opens(has_open_kernel)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
