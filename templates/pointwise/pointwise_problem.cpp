#include "pointwise/pointwise_problem.h"

#include <algorithm>
#include <numeric>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/strided.h"
#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/operations/activation.h"
#include "kiln/generator/operations/gather.h"
#include "kiln/generator/operations/tensor_op_backward.h"
#include "kiln/generator/operations/tensor_ops.h"
#include "pointwise/gradient_rows.h"

namespace kiln::descriptor {
namespace {

constexpr size_t most_inputs = 3, scalars = 4, integers = 2;  // arguments of every kernel

void set_function(const Request& request, PointwiseProblem& problem) {
  if (request.operation == "activation_forward") {
    problem.function = PointwiseFunction::activation;
    problem.mode = static_cast<int>(ActivationForward::of(request).mode);
  } else if (request.operation == "activation_backward") {
    const ActivationBackward view = ActivationBackward::of(request);
    problem.function = view.x ? PointwiseFunction::activation_gradient : PointwiseFunction::activation_gradient_from_y;
    problem.mode = static_cast<int>(view.mode);
  } else if (request.operation == "tensor_transform") {
    const TensorTransform view = TensorTransform::of(request);
    problem.function = PointwiseFunction::transform;
    problem.pad_begin = problem.padding = view.pad_begin;
    for (size_t i = 0; i < view.pad_end.size(); ++i) problem.padding[i] += view.pad_end[i];
  } else if (request.operation == "tensor_set") {
    problem.function = PointwiseFunction::set;
  } else if (request.operation == "tensor_op") {
    problem.function = PointwiseFunction::op;
    problem.mode = static_cast<int>(TensorOp::of(request).mode);
  } else if (request.operation == "tensor_op_backward") {
    const TensorOpBackward view = TensorOpBackward::of(request);
    problem.function = PointwiseFunction::op_gradient;
    problem.mode = gradient_code(view);
  } else if (request.operation == "dropout") {
    problem.function = PointwiseFunction::dropout;
    problem.numbered = true;
  } else if (request.operation == "gather") {
    problem.function = PointwiseFunction::transform;
    problem.gathered = static_cast<size_t>(Gather::of(request).axis);
  } else {
    throw Error(ErrorCode::internal, request.operation + " is no element-wise operation");
  }
}

// The inputs in the request's order, but first the one that prologues apply to; then the result. User code reads its
// tensors at the offsets of the result.
std::vector<Operand> operands_of(const Request& request) {
  std::vector<Operand> operands;
  const Operand& result = result_of(request);
  const std::string_view entered = operation(request.operation).prologue_operand();
  for (const Operand& operand : request.operands) {
    if (operand.name == result.name || is_user_operand(operand.name)) continue;
    operands.insert(operand.name == entered ? operands.begin() : operands.end(), operand);
  }
  operands.push_back(result);
  return operands;
}

// The dimensions of the result in `order`.
PointwiseGrid grid_of(const PointwiseProblem& problem, const std::vector<size_t>& order) {
  PointwiseGrid grid;
  const TensorSpec& result = problem.result();
  for (const size_t dimension : order) {
    const int64_t extent = result.extents[dimension];
    grid.extents.push_back(std::max<int64_t>(extent, 1));
    const bool padded = !problem.padding.empty() && problem.padding[dimension] != 0;
    grid.pad_begin.push_back(padded ? problem.pad_begin[dimension] : 0);
    grid.inside.push_back(padded ? extent - problem.padding[dimension] : grid.extents.back());
  }
  for (const Operand& operand : problem.operands) {
    const bool is_first = grid.strides.empty();
    std::vector<int64_t>& strides = grid.strides.emplace_back();
    for (const size_t dimension : order) {
      const bool stays = operand.spec.extents[dimension] <= 1 || (is_first && dimension == problem.gathered);
      strides.push_back(stays ? 0 : operand.spec.strides[dimension]);
    }
  }
  return grid;
}

bool is_padded(const PointwiseGrid& grid, size_t dimension) {
  return grid.inside[dimension] != grid.extents[dimension];
}

bool continues(const PointwiseGrid& grid, size_t inner, size_t outer) {
  if (is_padded(grid, inner) || is_padded(grid, outer)) return false;
  return std::all_of(grid.strides.begin(), grid.strides.end(), [&](const std::vector<int64_t>& strides) {
    return strides[outer] == strides[inner] * grid.extents[inner];
  });
}

// Dimensions of the result that matter, in the order of its memory; a dynamic batch last.
std::vector<size_t> memory_order(const PointwiseProblem& problem) {
  const TensorSpec& result = problem.result();
  std::vector<size_t> order;
  for (size_t i = 0; i < result.extents.size(); ++i) {
    const bool pinned = problem.dynamic_batch && i == 0;
    const bool padded = !problem.padding.empty() && problem.padding[i] != 0;
    if (!pinned && (result.extents[i] > 1 || padded)) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return result.strides[a] < result.strides[b]; });
  if (problem.dynamic_batch || order.empty()) order.push_back(0);
  return order;
}

// Takes the dimension behind `into` for a part of it.
void merge_next(PointwiseGrid& grid, size_t into) {
  const auto next = static_cast<std::ptrdiff_t>(into) + 1;
  grid.extents[into] *= grid.extents[into + 1];
  grid.inside[into] = grid.extents[into];
  for (std::vector<int64_t>* values : {&grid.extents, &grid.inside, &grid.pad_begin}) {
    values->erase(values->begin() + next);
  }
  for (std::vector<int64_t>& strides : grid.strides) strides.erase(strides.begin() + next);
}

PointwiseGrid merged_grid(const PointwiseProblem& problem) {
  PointwiseGrid grid = grid_of(problem, memory_order(problem));
  for (size_t i = 0; i + 1 < grid.extents.size();) {
    if (continues(grid, i, i + 1)) {
      merge_next(grid, i);
    } else {
      ++i;
    }
  }
  // The one element of a result has neighbours as good as any.
  if (grid.extents[0] <= 1 && !problem.dynamic_batch) grid.strides.back()[0] = 1;
  return grid;
}

void find_crossing(PointwiseProblem& problem) {
  const PointwiseGrid& grid = problem.merged;
  problem.crossing.assign(problem.inputs(), false);
  if (grid.strides.back()[0] != 1 || !problem.padding.empty()) return;
  const size_t dimensions = grid.extents.size() - (problem.dynamic_batch ? 1 : 0);
  for (size_t dimension = 1; dimension < dimensions && problem.cross == 0; ++dimension) {
    for (size_t i = 0; i < problem.inputs(); ++i) {
      const std::vector<int64_t>& strides = grid.strides[i];
      if (strides[dimension] != 1 || strides[0] <= 1) continue;
      problem.crossing[i] = true;
      problem.cross = dimension;
    }
  }
}

// Whether neighbours along the innermost dimension, four at a time, have numbers that follow each other from a multiple
// of four on.
bool is_numbered_by_fours(const PointwiseProblem& problem, const PointwiseGrid& grid) {
  if (!problem.numbered) return false;
  const std::vector<int64_t>& strides = grid.strides[problem.inputs() - 1];
  return strides[0] == 1 &&
         std::all_of(strides.begin() + 1, strides.end(), [](int64_t stride) { return stride % 4 == 0; });
}

// Which dimensions the kernel looks for padding in: in an open kernel all of them but the innermost, where padding
// costs the vectors.
std::vector<int64_t> padded_dimensions(const PointwiseProblem& problem, const PointwiseGrid& grid, bool open) {
  std::vector<int64_t> padded;
  for (size_t i = 0; i < grid.extents.size(); ++i) {
    padded.push_back(!problem.padding.empty() && (is_padded(grid, i) || (open && i > 0)) ? 1 : 0);
  }
  return padded;
}

}  // namespace

PointwiseProblem PointwiseProblem::of(const Request& request) {
  PointwiseProblem problem;
  set_function(request, problem);
  problem.operands = operands_of(request);
  if (problem.numbered) {
    const std::vector<int64_t>& extents = problem.result().extents;
    problem.operands.insert(
        problem.operands.end() - 1,
        {"number", TensorSpec::packed(DType::i32, extents, dimension_letters(static_cast<int>(extents.size())))});
  }
  if (problem.inputs() > most_inputs) throw Error(ErrorCode::internal, request.operation + " has too many inputs");
  problem.blend = request.blend;
  problem.dynamic_batch = request.dynamic_batch;
  if (request.dynamic_batch) problem.batch = problem.result().extents[0];
  problem.per_image = problem.result().elements() / std::max<int64_t>(problem.batch, 1);

  std::vector<size_t> last_first(problem.result().extents.size());
  std::iota(last_first.rbegin(), last_first.rend(), size_t{0});
  problem.logical = grid_of(problem, last_first);
  problem.merged = merged_grid(problem);
  find_crossing(problem);
  return problem;
}

double PointwiseProblem::compulsory_bytes() const {
  double bytes = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!is_in_memory(i)) continue;
    bytes += static_cast<double>(operands[i].spec.elements()) * size_of(operands[i].spec.dtype);
  }
  if (blend.beta != Scale::zero) bytes += static_cast<double>(result().elements()) * size_of(result().dtype);
  return bytes;
}

Prelude pointwise_prelude(const PointwiseProblem& problem, const PointwiseGrid& grid, bool open) {
  Prelude prelude;
  const auto input_type = [&](size_t i) { return i < problem.inputs() ? problem.operands[i].spec.dtype : DType::f32; };
  prelude.type("TA", input_type(0)).type("TB", input_type(1)).type("TC", input_type(2));
  prelude.type("TY", problem.result().dtype);
  const bool wide = std::any_of(problem.operands.begin(), problem.operands.end(),
                                [](const Operand& operand) { return needs_wide_index({&operand.spec}); });
  prelude.index_type("Index", wide);
  prelude.constant("INPUTS", static_cast<int64_t>(problem.inputs()));
  prelude.constant("DIMENSIONS", static_cast<int64_t>(grid.extents.size())).extents("EXTENTS", grid.extents);
  std::vector<int64_t> strides, step_kinds;
  for (const std::vector<int64_t>& one : grid.strides) {
    strides.insert(strides.end(), one.begin(), one.end());
    step_kinds.push_back(std::clamp<int64_t>(one[0], 0, 2));
  }
  prelude.extents("STRIDES", strides).array("STEP_KINDS", step_kinds);
  prelude.flag("NUMBERED", problem.numbered).flag("NUMBERED_BY_FOURS", is_numbered_by_fours(problem, grid));
  prelude.flag("PADDED", !problem.padding.empty()).extents("PAD_BEGIN", grid.pad_begin);
  prelude.extents("INSIDE", grid.inside).array("PADDED_DIMENSIONS", padded_dimensions(problem, grid, open));
  prelude.extent("PER_IMAGE", problem.per_image);
  add_batch(prelude, problem.batch, problem.dynamic_batch);
  prelude.constant("FUNCTION", static_cast<int64_t>(problem.function)).constant("MODE", problem.mode);
  add_blend(prelude, problem.blend);
  return prelude;
}

Launch pointwise_launch(const PointwiseProblem& problem, std::string entry, int threads) {
  Launch launch = launch_of(std::move(entry), threads);
  for (size_t i = 0; i < most_inputs; ++i) {
    append(launch, {OperandArgument{i < problem.inputs() ? problem.operands[i].name : "none"}});
  }
  append(launch, {OperandArgument{problem.operands.back().name}, Scalar::alpha, Scalar::beta, UserArgument{}});
  for (size_t i = 0; i < scalars; ++i) append(launch, {OperationScalar{i}});
  for (size_t i = 0; i < integers; ++i) append(launch, {OperationInteger{i}});
  append(launch, {Scalar::n});
  return launch;
}

}  // namespace kiln::descriptor
