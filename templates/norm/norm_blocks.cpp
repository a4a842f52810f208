#include <algorithm>

#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/algorithm.h"
#include "norm/norm_rows.h"

namespace kiln {
namespace norm_blocks_descriptor {
namespace {

using descriptor::NormRows;

constexpr int64_t kept_bytes = 256;      // of x in a thread's registers
constexpr int64_t most_open_steps = 16;  // whose elements an open kernel keeps

struct Shape : descriptor::RowBlocks {
  int keep;  // whether elements stay in registers between the two passes
};

bool keeps_what_fits(const Shape& shape, const NormRows& rows, const Target&) {
  if (shape.keep == 0) return true;
  if (shape.splits > 1) return false;
  return descriptor::steps(shape, rows) * shape.vector * rows.x_bytes <= kept_bytes;
}

bool rereads_long_rows(const Shape& shape, const NormRows& rows, const Target&) {
  return shape.keep != 0 || shape.splits > 1 || descriptor::steps(shape, rows) > 4;
}

bool has_open_kernel(const Shape& shape, const NormRows& rows, const Target&) {
  return descriptor::has_open_row_blocks(shape, rows, shape.keep != 0, most_open_steps);
}

// Parts of a row that nothing merges may be any number.
bool has_open_inference(const Shape& shape, const NormRows&, const Target&) {
  descriptor::RowBlocks blocks = shape;
  if (blocks.splits > 1) blocks.splits = 64;
  return descriptor::has_open_row_blocks(blocks);
}

bool sums_fit(const Shape& shape, const NormRows& rows, const Target& target) {
  return descriptor::sums_fit(shape, target, rows.words());
}

Prelude prelude_of(const Shape& shape, const NormRows& rows, const Emitter& emit) {
  Prelude prelude = descriptor::row_blocks_prelude(shape, rows, emit);
  descriptor::add_norm(prelude, rows);
  prelude.flag("KEEP", shape.keep != 0);
  prelude.constant("KEPT", shape.keep != 0 ? descriptor::steps_to_keep(emit, shape.lanes,
                                                                       descriptor::steps(shape, rows), most_open_steps)
                                           : 1);
  return prelude;
}

Program program(const Shape& shape, const NormRows& rows, const Target&, const Emitter& emit) {
  const Source source = emit.source(prelude_of(shape, rows, emit));
  if (shape.splits == 1) {
    Launch fused = descriptor::row_blocks_launch(shape, rows, "norm_blocks");
    fused.arguments = descriptor::operand_arguments(
        {"x", "w", "b", "y", "mean", "inv_deviation", "running_mean", "running_variance", "residual"});
    descriptor::append(fused, {WorkspaceArgument{}, Scalar::alpha, Scalar::beta, UserArgument{}, OperationScalar{0},
                               OperationScalar{1}});
    descriptor::add_activation_numbers(fused, rows.activation_scalar());
    descriptor::append(fused, {Scalar::n});
    return Program{{source}, {fused}};
  }
  const WorkspaceArgument workspace{0, descriptor::part_bytes(shape, rows, rows.words()) + rows.count() * 8};
  Launch statistics = descriptor::row_blocks_launch(shape, rows, "norm_statistics");
  statistics.arguments = {OperandArgument{"x"}, workspace, UserArgument{}, Scalar::n};
  Launch finish = descriptor::merge_launch(shape, rows, "norm_finish");
  finish.arguments = descriptor::operand_arguments({"mean", "inv_deviation", "running_mean", "running_variance"});
  descriptor::append(finish, {workspace, OperationScalar{0}, OperationScalar{1}, Scalar::n});
  return Program{{source}, {statistics, finish, descriptor::norm_apply(shape, rows, workspace)}};
}

Program inference_program(const Shape& shape, const NormRows& rows, const Target&, const Emitter& emit) {
  return Program{{emit.source(prelude_of(shape, rows, emit))}, {descriptor::norm_apply(shape, rows, {})}};
}

Estimate predict(const Shape& shape, const NormRows& rows, const Target& target, const DeviceFigures& device) {
  const auto kept = static_cast<double>(shape.keep != 0 ? descriptor::steps(shape, rows) * shape.vector : 0);
  return descriptor::norm_blocks_estimate(shape, rows, target, device, kept, rows.given || shape.splits == 1 ? 1 : 3);
}

}  // namespace
}  // namespace norm_blocks_descriptor

Algorithm norm_forward_blocks() {
  using namespace norm_blocks_descriptor;
  return descriptor::with_row_blocks(
             describe<Shape, NormRows>("norm_forward_blocks", "norm_forward", "norm/norm_blocks.cu"), &Shape::keep)
      .applies(descriptor::refuse_row_blocks)
      .takes_prologue()
      .rule("rows are kept in registers if they fit, and not if they are split", keeps_what_fits)
      .pruning("rows are read twice only where they are long", rereads_long_rows)
      .rule("statistics fit shared memory", sums_fit)
      .opens(has_open_kernel)
      .adds([](const Shape& shape, const NormRows&, const Target&) {
        return descriptor::order_of_sums("norm_forward_blocks", shape);
      })
      .program(program)
      .estimate(predict);
}

Algorithm norm_inference_blocks() {
  using namespace norm_blocks_descriptor;
  return descriptor::with_row_blocks(
             describe<Shape, NormRows>("norm_inference_blocks", "norm_inference", "norm/norm_blocks.cu"))
      .applies(descriptor::refuse_row_blocks)
      .takes_prologue()
      .opens(has_open_inference)
      .program(inference_program)
      .estimate(predict);
}

}  // namespace kiln
