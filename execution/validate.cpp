#include "validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <variant>

#include "kiln/execution/executable.h"
#include "kiln/generator/request.h"

namespace kiln::execution {
namespace {

constexpr int64_t max_block_threads = 1024;
// Larger than any tensor's count of elements, and small enough that Count::at() cannot overflow for a batch of 2^20.
constexpr int64_t max_count = int64_t{1} << 42;

bool is_within(int64_t offset, int64_t bytes, int64_t workspace) {
  return offset >= 0 && bytes >= 0 && offset <= workspace && bytes <= workspace - offset;
}

std::string fault_of_grid(const Launch& launch) {
  for (const Count& count : launch.grid) {
    const bool legal = count.divisor >= 1 && count.divisor <= max_count && std::abs(count.fixed) <= max_count &&
                       count.per_n >= 0 && count.per_n <= max_count;
    if (!legal) return fmt::format("kernel {} has no legal grid", launch.entry);
  }
  const std::array<unsigned, 3>& block = launch.block;
  const bool small = std::all_of(block.begin(), block.end(), [](unsigned n) { return n >= 1 && n <= 1024; });
  if (!small || int64_t{block[0]} * block[1] * block[2] > max_block_threads) {
    return fmt::format("kernel {} starts blocks of {} x {} x {} threads", launch.entry, block[0], block[1], block[2]);
  }
  return {};
}

std::string fault_of_launch(const Launch& launch, const CompiledProgram& compiled) {
  if (launch.source >= compiled.program.sources.size()) {
    return fmt::format("kernel {} is of source {} of {}", launch.entry, launch.source, compiled.program.sources.size());
  }
  if (launch.arguments.size() > Executable::max_values)
    return fmt::format("kernel {} has too many arguments", launch.entry);
  for (const Argument& argument : launch.arguments) {
    const auto* workspace = std::get_if<WorkspaceArgument>(&argument);
    if (workspace != nullptr && !is_within(workspace->offset, workspace->bytes, compiled.program.workspace_bytes)) {
      return fmt::format("kernel {} is given memory outside of the workspace", launch.entry);
    }
    const auto* operand = std::get_if<OperandArgument>(&argument);
    if (operand != nullptr && (operand->offset < 0 || operand->offset > max_count)) {
      return fmt::format("kernel {} is given an address outside of {}", launch.entry, operand->name);
    }
    const auto* own = std::get_if<OperationScalar>(&argument);
    if (own != nullptr && own->index >= max_operation_scalars) {
      return fmt::format("kernel {} is given an unknown scalar", launch.entry);
    }
    const auto* integer = std::get_if<OperationInteger>(&argument);
    if (integer != nullptr && integer->index >= max_operation_integers) {
      return fmt::format("kernel {} is given an unknown integer", launch.entry);
    }
    const auto* scalar = std::get_if<Scalar>(&argument);
    if (scalar != nullptr && (*scalar < Scalar::n || *scalar > Scalar::clip_hi)) {
      return fmt::format("kernel {} is given an unknown scalar", launch.entry);
    }
  }
  return fault_of_grid(launch);
}

}  // namespace

std::string fault_of(const CompiledProgram& compiled) {
  const Program& program = compiled.program;
  if (program.workspace_bytes < 0) return "its workspace is negative";
  if (!compiled.images.empty() && compiled.images.size() != program.sources.size()) {
    return fmt::format("it has {} images of {} sources", compiled.images.size(), program.sources.size());
  }
  for (const Step& step : program.steps) {
    std::string fault;
    if (const auto* launch = std::get_if<Launch>(&step)) {
      fault = fault_of_launch(*launch, compiled);
    } else {
      const auto& clear = std::get<ClearWorkspace>(step);
      if (!is_within(clear.offset, clear.bytes, program.workspace_bytes)) fault = "it clears beyond its workspace";
    }
    if (!fault.empty()) return fault;
  }
  return {};
}

}  // namespace kiln::execution
