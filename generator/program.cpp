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

std::string describe(const Argument& argument) {
  if (const auto* operand = std::get_if<OperandArgument>(&argument))
    return fmt::format("operand {}+{}", operand->name, operand->offset);
  if (const auto* workspace = std::get_if<WorkspaceArgument>(&argument)) {
    return fmt::format("workspace {}+{}", workspace->offset, workspace->bytes);
  }
  if (std::holds_alternative<UserArgument>(argument)) return "user";
  if (const auto* scalar = std::get_if<OperationScalar>(&argument)) return fmt::format("own {}", scalar->index);
  if (const auto* integer = std::get_if<OperationInteger>(&argument)) return fmt::format("integer {}", integer->index);
  return fmt::format("scalar {}", static_cast<int>(std::get<Scalar>(argument)));
}

void add(Digest& digest, const Launch& launch) {
  digest.add("launch").add(std::to_string(launch.source)).add(launch.entry);
  for (const Count& count : launch.grid) digest.add(describe(count));
  for (unsigned extent : launch.block) digest.add(std::to_string(extent));
  digest.add(std::to_string(launch.dynamic_shared_bytes));
  for (const Argument& argument : launch.arguments) digest.add(describe(argument));
}

void add(Digest& digest, const ClearWorkspace& clear) {
  digest.add("clear").add(std::to_string(clear.offset)).add(std::to_string(clear.bytes));
}

}  // namespace

int64_t workspace_end(const std::vector<Step>& steps) {
  int64_t end = 0;
  for (const Step& step : steps) {
    if (const auto* clear = std::get_if<ClearWorkspace>(&step)) end = std::max(end, clear->offset + clear->bytes);
    const auto* launch = std::get_if<Launch>(&step);
    if (launch == nullptr) continue;
    for (const Argument& argument : launch->arguments) {
      const auto* workspace = std::get_if<WorkspaceArgument>(&argument);
      if (workspace != nullptr) end = std::max(end, workspace->offset + workspace->bytes);
    }
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
