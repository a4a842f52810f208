#include "norm/norm_rows.h"

#include <algorithm>
#include <cctype>

#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/operation.h"

namespace kiln::descriptor {

NormRows NormRows::of(const Request& request) {
  NormRows rows;
  rows.operands = operands_or_stand_ins(
      request, {"x", "w", "b", "y", "mean", "inv_deviation", "running_mean", "running_variance", "residual"});
  for (const Operand& operand : request.operands) rows.present.push_back(operand.name);
  rows.axes = request.ints("axes");
  rows.dynamic_batch = request.dynamic_batch;
  rows.given = request.operation == "norm_inference";
  if (rows.given && rows.dynamic_batch) std::erase(rows.axes, 0);  // each image by itself: nothing is summed
  if (!rows.given) rows.mode = NormForward::of(request).mode;
  rows.epilogue = request.epilogue;
  rows.activation = fused_activation_of(request);
  rows.blend = request.blend;
  rows.x_bytes = kept_bytes_of(request, "x");
  rows.moved_bytes = bytes_of_operands(request);
  return rows;
}

bool NormRows::has(std::string_view operand) const {
  return std::find(present.begin(), present.end(), operand) != present.end();
}

std::vector<Operand> operands_or_stand_ins(const Request& request, const std::vector<std::string_view>& names) {
  const size_t rank = request.operands.front().spec.extents.size();
  const TensorSpec stand_in{DType::f32, std::vector<int64_t>(rank, 1), std::vector<int64_t>(rank, 1), 4};
  std::vector<Operand> operands;
  for (const std::string_view name : names) {
    const TensorSpec* spec = request.find(name);
    operands.push_back({std::string(name), spec == nullptr ? stand_in : *spec});
  }
  return operands;
}

double bytes_of_operands(const Request& request) {
  const Work work = operation(request.operation).work(request);
  return work.read_bytes + work.write_bytes;
}

void add_presence(Prelude& prelude, const Rows& rows, const std::vector<std::string>& present) {
  for (const Operand& operand : rows.operands) {
    prelude.flag("HAS_" + constant_name(operand),
                 std::find(present.begin(), present.end(), operand.name) != present.end());
  }
}

void add_norm(Prelude& prelude, const NormRows& rows) {
  const auto has_stage = [&](EpilogueStage stage) {
    return std::find(rows.epilogue.begin(), rows.epilogue.end(), stage) != rows.epilogue.end();
  };
  add_presence(prelude, rows, rows.present);
  prelude.flag("RMS", rows.mode == NormMode::rms).flag("GIVEN", rows.given);
  prelude.flag("ADD", has_stage(EpilogueStage::add)).flag("RELU", has_stage(EpilogueStage::relu));
  prelude.constant("ACTIVATION", static_cast<int64_t>(rows.activation));
  add_blend(prelude, rows.blend);
}

void add_activation_numbers(Launch& launch, size_t first) {
  for (size_t i = first; i < first + 4; ++i) launch.arguments.emplace_back(OperationScalar{i});
}

Launch norm_apply(const RowBlocks& blocks, const NormRows& rows, const WorkspaceArgument& statistics) {
  Launch apply = row_blocks_launch(blocks, rows, "norm_apply");
  apply.arguments = operand_arguments({"x", "w", "b", "y", "running_mean", "running_variance", "residual"});
  append(apply, {statistics, Scalar::alpha, Scalar::beta, UserArgument{}, OperationScalar{0}});
  add_activation_numbers(apply, rows.activation_scalar());
  append(apply, {Scalar::n});
  return apply;
}

Estimate norm_blocks_estimate(const RowBlocks& blocks, const NormRows& rows, const Target& target,
                              const DeviceFigures& device, double kept, int launches) {
  const double of_x = static_cast<double>(rows.elements()) * size_of(rows.operands[0].spec.dtype);
  const bool rereads = !rows.given && kept == 0;
  RowWork work;
  work.dram_bytes = rows.moved_bytes + (rereads && of_x > static_cast<double>(device.l2_bytes) / 2 ? of_x : 0);
  work.passes = rereads ? 1.5 : 1;  // of all operands: x alone is taken twice
  work.instructions = (rows.given ? 5 : 12) + (rows.activation == ActivationMode::identity ? 0 : 20);
  work.registers = 40 + (kept != 0 ? kept : 8);
  work.shared_words = rows.words();
  work.launches = launches;
  return row_blocks_estimate(blocks, rows, target, device, work);
}

std::vector<Argument> operand_arguments(const std::vector<std::string_view>& names) {
  std::vector<Argument> arguments;
  for (const std::string_view name : names) arguments.emplace_back(OperandArgument{std::string(name)});
  return arguments;
}

}  // namespace kiln::descriptor
