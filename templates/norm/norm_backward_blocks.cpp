#include <algorithm>

#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/algorithm.h"
#include "norm/norm_gradient_rows.h"

namespace kiln {
namespace norm_backward_blocks_descriptor {
namespace {

using descriptor::NormGradientRows;
using descriptor::RowBlocks;
using descriptor::Rows;
using namespace descriptor::norm_gradient;

constexpr int64_t kept_bytes = 256;     // of dy and x in a thread's registers
constexpr int64_t most_open_steps = 8;  // whose elements an open kernel keeps
constexpr int words = 2;                // floats that the sums of a row have

struct Shape : RowBlocks {
  int keep;  // whether elements stay in registers between the two passes
};

std::optional<std::string> refusal(const NormGradientRows& rows, const Target& target) {
  if (auto reason = descriptor::refuse_row_blocks(rows, target)) return reason;
  if (rows.has_parameters) return descriptor::refuse_row_blocks(rows.parameters, target);
  return std::nullopt;
}

bool activates(const NormGradientRows& rows) {
  return rows.activation != ActivationMode::identity;
}

bool keeps_what_fits(const Shape& shape, const NormGradientRows& rows, const Target&) {
  if (shape.keep == 0) return true;
  if (shape.splits > 1) return false;
  const int of_dy = activates(rows) ? size_of(DType::f32) : rows.dy_bytes;
  const int bytes = of_dy + size_of(rows.operands[1].spec.dtype);
  return descriptor::steps(shape, rows) * shape.vector * bytes <= kept_bytes;
}

bool rereads_long_rows(const Shape& shape, const NormGradientRows& rows, const Target&) {
  return shape.keep != 0 || shape.splits > 1 || descriptor::steps(shape, rows) > 4;
}

bool has_open_kernel(const Shape& shape, const NormGradientRows& rows, const Target&) {
  return descriptor::has_open_row_blocks(shape, rows, shape.keep != 0, most_open_steps);
}

bool has_own_pass(const NormGradientRows& rows) {
  return rows.has_parameters && !rows.same_rows;
}

// How the sums for dw and db are made where they are not those of dx: as wide as vectors may be, and split until blocks
// fill a device. It follows from the request alone. Open kernels have few shapes.
RowBlocks blocks_of_parameters(const Rows& rows, const Target& target, bool open) {
  constexpr int64_t enough_blocks = 256;
  RowBlocks blocks{
      .across = descriptor::refuse_across_rows(rows) ? 0 : 1, .lanes = 32, .vector = 1, .threads = 256, .splits = 1};
  using Values = std::vector<int>;
  for (const int vector : open ? Values{4} : Values{8, 4, 2}) {
    blocks.vector = vector;
    if (descriptor::vectors_suit(blocks, rows, target) && descriptor::sums_fit(blocks, target, words)) break;
    blocks.vector = 1;
  }
  for (const int lanes : open ? Values{blocks.across != 0 ? 32 : 256} : Values{256, 32, 8, 4, 2, 1}) {
    blocks.lanes = lanes;
    if (descriptor::lanes_fill_warps(blocks, rows, target) && descriptor::threads_have_work(blocks, rows, target))
      break;
  }
  for (const int splits : open ? Values{64, 256} : Values{4, 16, 64, 256}) {
    if (descriptor::row_block_count(blocks, rows) * blocks.splits >= enough_blocks) break;
    RowBlocks more = blocks;
    more.splits = splits;
    if (!descriptor::splitting_pays(more, rows, target)) break;
    blocks = more;
  }
  return blocks;
}

// Flags of one of the sources.
struct Flags {
  int64_t kept = 0;         // times that a thread takes elements of a row which stay in registers
  bool parameters = false;  // its sums are those of dw and db
};

Prelude prelude_of(const RowBlocks& blocks, Flags flags, const NormGradientRows& gradient, const Rows& rows,
                   const Emitter& emit) {
  Prelude prelude = descriptor::row_blocks_prelude(blocks, rows, emit);
  descriptor::add_norm_gradient(prelude, gradient);
  prelude.flag("KEEP", flags.kept > 0).constant("KEPT", std::max<int64_t>(flags.kept, 1));
  prelude.flag("PARAMETERS", flags.parameters);
  prelude.flag("SAME_ROWS", !flags.parameters && gradient.same_rows);
  return prelude;
}

// The launches that make sums of `rows` and, split or not, what is to be known of them.
void add_sums(Program& program, const RowBlocks& blocks, const Rows& rows, size_t source,
              const WorkspaceArgument& workspace) {
  Launch sums = descriptor::row_blocks_launch(blocks, rows, "norm_backward_sums");
  sums.source = source;
  sums.arguments =
      descriptor::operand_arguments({"dy", "x", "w", "b", "mean", "inv_deviation", "y", "residual", "dw", "db"});
  descriptor::append(sums, {workspace, UserArgument{}, parameter_alpha, parameter_beta});
  descriptor::add_activation_numbers(sums, first_of_activation);
  descriptor::append(sums, {Scalar::n});
  program.steps.emplace_back(sums);
  if (blocks.splits == 1) return;
  Launch finish = descriptor::merge_launch(blocks, rows, "norm_backward_finish");
  finish.source = source;
  finish.arguments = descriptor::operand_arguments({"w", "dw", "db"});
  descriptor::append(finish, {workspace, parameter_alpha, parameter_beta, Scalar::n});
  program.steps.emplace_back(finish);
}

// dw and db before dx, which may be written over dy.
Program program(const Shape& shape, const NormGradientRows& rows, const Target& target, const Emitter& emit) {
  Program result;
  if (has_own_pass(rows)) {
    const RowBlocks blocks = blocks_of_parameters(rows.parameters, target, emit.open());
    result.sources.push_back(emit.source(prelude_of(blocks, {.parameters = true}, rows, rows.parameters, emit)));
    add_sums(result, blocks, rows.parameters, 0, {0, descriptor::part_bytes(blocks, rows.parameters, words)});
  }
  const size_t source = result.sources.size();
  const int64_t kept =
      shape.keep != 0 ? descriptor::steps_to_keep(emit, shape.lanes, descriptor::steps(shape, rows), most_open_steps)
                      : 0;
  result.sources.push_back(emit.source(prelude_of(shape, {.kept = kept}, rows, rows, emit)));
  if (shape.splits == 1) {
    Launch fused = descriptor::row_blocks_launch(shape, rows, "norm_backward_blocks");
    fused.source = source;
    fused.arguments = descriptor::operand_arguments(
        {"dy", "x", "w", "b", "mean", "inv_deviation", "y", "residual", "dx", "dw", "db", "dresidual"});
    descriptor::append(fused, {Scalar::alpha, Scalar::beta, UserArgument{}, parameter_alpha, parameter_beta,
                               dresidual_alpha, dresidual_beta});
    descriptor::add_activation_numbers(fused, first_of_activation);
    descriptor::append(fused, {Scalar::n});
    result.steps.emplace_back(fused);
    return result;
  }
  // The part of the workspace that dw and db needed is free again.
  const WorkspaceArgument workspace{0, descriptor::part_bytes(shape, rows, words) + rows.count() * 8};
  add_sums(result, shape, rows, source, workspace);
  Launch apply = descriptor::row_blocks_launch(shape, rows, "norm_backward_apply");
  apply.source = source;
  apply.arguments =
      descriptor::operand_arguments({"dy", "x", "w", "b", "mean", "inv_deviation", "y", "residual", "dx", "dresidual"});
  descriptor::append(apply, {workspace, Scalar::alpha, Scalar::beta, UserArgument{}, dresidual_alpha, dresidual_beta});
  descriptor::add_activation_numbers(apply, first_of_activation);
  descriptor::append(apply, {Scalar::n});
  result.steps.emplace_back(apply);
  return result;
}

Estimate predict(const Shape& shape, const NormGradientRows& rows, const Target& target, const DeviceFigures& device) {
  const double of_inputs = static_cast<double>(rows.elements()) *
                           (size_of(rows.operands[0].spec.dtype) + size_of(rows.operands[1].spec.dtype));
  const bool from_memory = of_inputs > static_cast<double>(device.l2_bytes) / 2;
  const int more_passes = (shape.keep == 0 ? 1 : 0) + (has_own_pass(rows) ? 1 : 0);
  descriptor::RowWork work;
  work.dram_bytes = rows.moved_bytes + (from_memory ? more_passes * of_inputs : 0);
  work.passes = 1 + 0.67 * more_passes;  // of all operands
  work.instructions = 14 + (activates(rows) ? 40 : 0);
  work.registers =
      48 + (shape.keep != 0 ? 2.0 * static_cast<double>(descriptor::steps(shape, rows)) * shape.vector : 16);
  work.shared_words = words;
  work.launches = (shape.splits == 1 ? 1 : 3) + (has_own_pass(rows) ? 2 : 0);
  return descriptor::row_blocks_estimate(shape, rows, target, device, work);
}

}  // namespace
}  // namespace norm_backward_blocks_descriptor

Algorithm norm_backward_blocks() {
  using namespace norm_backward_blocks_descriptor;
  return descriptor::with_row_blocks(
             describe<Shape, NormGradientRows>("norm_backward_blocks", "norm_backward", "norm/norm_backward_blocks.cu"),
             &Shape::keep)
      .applies(refusal)
      .takes_prologue()
      .rule("rows are kept in registers if they fit, and not if they are split", keeps_what_fits)
      .pruning("rows are read twice only where they are long", rereads_long_rows)
      .rule("sums fit shared memory", [](const Shape& shape, const NormGradientRows&,
                                         const Target& target) { return descriptor::sums_fit(shape, target, words); })
      .opens(has_open_kernel)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
