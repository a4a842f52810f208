#include "call_shape.h"

#include <fmt/format.h>

namespace kiln {
namespace {

CallShape shape_of(const Operation& operation, int64_t number) {
  CallShape shape{.operation = &operation, .number = number, .operands = {}, .written = 0, .blends = {}};
  const std::vector<OperandDefinition>& definitions = operation.operands();
  if (definitions.size() > max_call_operands) throw Error(ErrorCode::internal, "an operation has too many operands");
  for (const OperandDefinition& definition : definitions) {
    OperandShape operand{.name = definition.name};
    shape.written |= static_cast<uint32_t>(definition.role != Role::input) << shape.operands.size();
    for (size_t i = 0; i < definitions.size(); ++i) {
      const auto& same = definition.may_be;
      const bool may_be = std::find(same.begin(), same.end(), definitions[i].name) != same.end();
      operand.may_be |= static_cast<uint32_t>(may_be) << i;
    }
    shape.operands.push_back(operand);
  }
  for (const FurtherBlend& blend : operation.further_blends()) {
    const std::vector<ScalarDefinition>& scalars = operation.scalars();
    const auto alpha = std::ranges::find(scalars, fmt::format("{}_alpha", blend.name), &ScalarDefinition::name);
    shape.blends.push_back({.name = blend.name, .scalar = static_cast<size_t>(alpha - scalars.begin())});
  }
  return shape;
}

std::vector<CallShape> all_shapes() {
  std::vector<CallShape> shapes;
  for (const Operation* each : operations()) shapes.push_back(shape_of(*each, static_cast<int64_t>(shapes.size())));
  return shapes;
}

}  // namespace

const CallShape& call_shape(std::string_view operation) {
  static const std::vector<CallShape> shapes = all_shapes();
  for (const CallShape& shape : shapes) {
    if (shape.operation->name() == operation) return shape;
  }
  (void)kiln::operation(operation);  // throws, and says which there are
  throw Error(ErrorCode::internal, "an operation without a shape");
}

}  // namespace kiln
