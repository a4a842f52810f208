#include "kiln/generator/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/base/digest.h"
#include "kiln/generator/code_text.h"

namespace kiln {
namespace {

std::string describe(const Count& count) {
  return fmt::format("{}+{}n/{}", count.fixed, count.per_n, count.divisor);
}

// What digests are made of: it stays as it is, because stored digests hold it.
std::string identity_of(const Argument& argument) {
  return std::visit(
      Match{[](const OperandArgument& operand) { return fmt::format("operand {}+{}", operand.name, operand.offset); },
            [](const WorkspaceArgument& range) { return fmt::format("workspace {}+{}", range.offset, range.bytes); },
            [](Scalar scalar) { return fmt::format("scalar {}", static_cast<int>(scalar)); },
            [](const UserArgument&) { return std::string("user"); },
            [](const OperationScalar& scalar) { return fmt::format("own {}", scalar.index); },
            [](const OperationInteger& integer) { return fmt::format("integer {}", integer.index); }},
      argument);
}

std::string name_of(Scalar scalar) {
  switch (scalar) {
    case Scalar::n:
      return "n";
    case Scalar::alpha:
      return "alpha";
    case Scalar::beta:
      return "beta";
    case Scalar::clip_lo:
      return "clip_lo";
    case Scalar::clip_hi:
      return "clip_hi";
  }
  return "unknown";
}

int64_t end_of(const Argument& argument) {
  const auto* range = std::get_if<WorkspaceArgument>(&argument);  // no other argument is in the workspace
  return range == nullptr ? 0 : range->offset + range->bytes;
}

int64_t end_of(const Launch& launch) {
  int64_t end = 0;
  for (const Argument& argument : launch.arguments) end = std::max(end, end_of(argument));
  return end;
}

int64_t end_of(const ClearWorkspace& clear) {
  return clear.offset + clear.bytes;
}

void add(Digest& digest, const Launch& launch) {
  digest.add("launch").add(std::to_string(launch.source)).add(launch.entry);
  for (const Count& count : launch.grid) digest.add(describe(count));
  for (unsigned extent : launch.block) digest.add(std::to_string(extent));
  digest.add(std::to_string(launch.dynamic_shared_bytes));
  for (const Argument& argument : launch.arguments) digest.add(identity_of(argument));
}

void add(Digest& digest, const ClearWorkspace& clear) {
  digest.add("clear").add(std::to_string(clear.offset)).add(std::to_string(clear.bytes));
}

}  // namespace

ParameterKind parameter_kind(const Argument& argument) {
  return std::visit(
      Match{[](const OperandArgument&) { return ParameterKind::word; },
            [](const WorkspaceArgument&) { return ParameterKind::word; },
            [](Scalar scalar) { return scalar == Scalar::n ? ParameterKind::word : ParameterKind::number; },
            [](const UserArgument&) { return ParameterKind::structure; },
            [](const OperationScalar&) { return ParameterKind::number; },
            [](const OperationInteger&) { return ParameterKind::word; }},
      argument);
}

std::string describe(const Argument& argument) {
  return std::visit(
      Match{[](const OperandArgument& operand) { return "operand " + operand.name; },
            [](const WorkspaceArgument&) { return std::string("workspace"); },
            [](Scalar scalar) { return name_of(scalar); },
            [](const UserArgument&) { return std::string("what user code reads"); },
            [](const OperationScalar& scalar) { return fmt::format("number {} of the operation", scalar.index); },
            [](const OperationInteger& integer) { return fmt::format("integer {} of the operation", integer.index); }},
      argument);
}

int64_t workspace_end(const std::vector<Step>& steps) {
  int64_t end = 0;
  for (const Step& step : steps) {
    end = std::max(end, std::visit([](const auto& value) { return end_of(value); }, step));
  }
  return end;
}

std::string Program::digest() const {
  Digest digest;
  for (const std::string& source : sources) digest.add(code_of(source));
  for (const Step& step : steps) {
    std::visit([&](const auto& value) { add(digest, value); }, step);
  }
  return digest.add(std::to_string(workspace_bytes)).add(deterministic ? "1" : "0").hex();
}

}  // namespace kiln
