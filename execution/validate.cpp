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

std::string unless(bool holds, std::string fault) {
  return holds ? std::string() : std::move(fault);
}

std::string fault_of_argument(const Argument& argument, int64_t workspace) {
  return std::visit(
      Match{
          [](const OperandArgument& operand) {
            return unless(operand.offset >= 0 && operand.offset <= max_count,
                          fmt::format("an address outside of {}", operand.name));
          },
          [&](const WorkspaceArgument& range) {
            return unless(is_within(range.offset, range.bytes, workspace), "memory outside of the workspace");
          },
          [](Scalar scalar) { return unless(scalar >= Scalar::n && scalar <= Scalar::clip_hi, "an unknown scalar"); },
          [](const UserArgument&) { return std::string(); },
          [](const OperationScalar& own) { return unless(own.index < max_operation_scalars, "an unknown scalar"); },
          [](const OperationInteger& own) { return unless(own.index < max_operation_integers, "an unknown integer"); }},
      argument);
}

std::string fault_of_launch(const Launch& launch, const CompiledProgram& compiled) {
  if (launch.source >= compiled.program.sources.size()) {
    return fmt::format("kernel {} is of source {} of {}", launch.entry, launch.source, compiled.program.sources.size());
  }
  if (launch.arguments.size() > Executable::max_values)
    return fmt::format("kernel {} has too many arguments", launch.entry);
  for (const Argument& argument : launch.arguments) {
    const std::string fault = fault_of_argument(argument, compiled.program.workspace_bytes);
    if (!fault.empty()) return fmt::format("kernel {} is given {}", launch.entry, fault);
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
    std::string fault = std::visit(Match{[&](const Launch& launch) { return fault_of_launch(launch, compiled); },
                                         [&](const ClearWorkspace& clear) {
                                           return unless(is_within(clear.offset, clear.bytes, program.workspace_bytes),
                                                         "it clears beyond its workspace");
                                         }},
                                   step);
    if (!fault.empty()) return fault;
  }
  return {};
}

}  // namespace kiln::execution
