#include "validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "kiln/execution/executable.h"
#include "kiln/generator/request.h"

namespace kiln::execution {
namespace {

constexpr int64_t max_block_threads = 1024;
constexpr int64_t workspace_alignment = 256;
constexpr unsigned max_cluster_blocks = 8;  // of all devices that have clusters

std::string fault_of_grid(const Launch& launch) {
  for (const Count& count : launch.grid) {
    if (!is_legal(count)) return fmt::format("kernel {} has no legal grid", launch.entry);
  }
  const std::array<unsigned, 3>& block = launch.block;
  const bool small = std::all_of(block.begin(), block.end(), [](unsigned n) { return n >= 1 && n <= 1024; });
  if (!small || int64_t{block[0]} * block[1] * block[2] > max_block_threads) {
    return fmt::format("kernel {} starts blocks of {} x {} x {} threads", launch.entry, block[0], block[1], block[2]);
  }
  return {};
}

std::string fault_of_attributes(const Launch& launch) {
  const std::array<unsigned, 3>& cluster = launch.attributes.cluster;
  const bool small =
      std::all_of(cluster.begin(), cluster.end(), [](unsigned n) { return n >= 1 && n <= max_cluster_blocks; });
  if (!small || cluster[0] * cluster[1] * cluster[2] > max_cluster_blocks) {
    return fmt::format("kernel {} starts clusters of {} x {} x {} blocks", launch.entry, cluster[0], cluster[1],
                       cluster[2]);
  }
  if (launch.attributes.cooperative && !launch.persistent) {
    return fmt::format("the blocks of kernel {} wait for each other, but may be more than fit", launch.entry);
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
    const std::string fault = fault_of(argument, compiled.program.workspace_bytes);
    if (!fault.empty()) return fmt::format("kernel {} is given {}", launch.entry, fault);
  }
  const std::string fault = fault_of_grid(launch);
  return fault.empty() ? fault_of_attributes(launch) : fault;
}

// Where a step touches the workspace.
std::vector<WorkspaceArgument> ranges_of(const Step& step) {
  std::vector<WorkspaceArgument> ranges;
  std::visit(Match{[&](const Launch& launch) {
                     for (const Argument& argument : launch.arguments) {
                       if (const auto range = workspace_range(argument)) ranges.push_back(*range);
                     }
                   },
                   [&](const ClearWorkspace& clear) {
                     ranges.push_back({clear.offset, clear.bytes});
                   }},
             step);
  return ranges;
}

// Nothing that differs between calls with the same weights: their numbers, their batch.
bool is_constant(const Step& step) {
  const auto is_address = [](const Argument& argument) {
    return operand_of(argument) != nullptr || workspace_range(argument).has_value();
  };
  return std::visit(Match{[&](const Launch& launch) {
                            return std::all_of(launch.arguments.begin(), launch.arguments.end(), is_address) &&
                                   std::all_of(launch.grid.begin(), launch.grid.end(),
                                               [](const Count& count) { return count.per_n == 0; });
                          },
                          [](const ClearWorkspace&) { return true; }},
                    step);
}

// Prepared ranges lie in another buffer, so no range may begin in one and end in the other.
std::string fault_of_preparation(const Program& program) {
  const auto& [steps, bytes] = program.preparation;
  const bool whole = bytes % workspace_alignment == 0 || bytes == program.workspace_bytes;
  if (steps > program.steps.size() || bytes < 0 || bytes > program.workspace_bytes || !whole) {
    return "it prepares more than it has";
  }
  for (size_t i = 0; i < program.steps.size(); ++i) {
    if (i < steps && !is_constant(program.steps[i])) return "it prepares what differs from call to call";
    for (const auto& [offset, length] : ranges_of(program.steps[i])) {
      const bool prepared = offset < bytes;
      if (prepared && length > bytes - offset) return "it prepares part of what a step touches";
      if (i < steps && !prepared) return "it prepares what it does not keep";
    }
  }
  return {};
}

// Constant memory of a kernel (CUDA C++ Programming Guide, "Compute Capabilities").
constexpr size_t most_constant_bytes = 64 << 10;

std::string fault_of_extents(const std::vector<Extent>& extents) {
  size_t bytes = 0;
  for (const Extent& extent : extents) {
    if (extent.name.empty() || extent.values.empty()) return "an extent has no name, or no value";
    if (extent.bytes != 4 && extent.bytes != 8) return fmt::format("an extent has {} bytes", extent.bytes);
    for (const int64_t value : extent.values) {
      if (extent.bytes == 4 && value != static_cast<int32_t>(value))
        return fmt::format("an extent of 4 bytes is {}", value);
    }
    if (extent.values.size() > most_constant_bytes / 8) return "its extents fit no constant memory";
    bytes += extent.values.size() * static_cast<size_t>(extent.bytes);
    if (bytes > most_constant_bytes) return "its extents fit no constant memory";
  }
  return {};
}

}  // namespace

std::string fault_of(const CompiledProgram& compiled) {
  const Program& program = compiled.program;
  if (program.workspace_bytes < 0) return "its workspace is negative";
  if (!compiled.images.empty() && compiled.images.size() != program.sources.size()) {
    return fmt::format("it has {} images of {} sources", compiled.images.size(), program.sources.size());
  }
  for (const Source& source : program.sources) {
    if (std::string fault = fault_of_extents(source.extents); !fault.empty()) return fault;
  }
  for (const Step& step : program.steps) {
    std::string fault = std::visit(Match{[&](const Launch& launch) { return fault_of_launch(launch, compiled); },
                                         [&](const ClearWorkspace& clear) -> std::string {
                                           const bool fits =
                                               is_range_within(clear.offset, clear.bytes, program.workspace_bytes);
                                           return fits ? "" : "it clears beyond its workspace";
                                         }},
                                   step);
    if (!fault.empty()) return fault;
  }
  return fault_of_preparation(program);
}

}  // namespace kiln::execution
