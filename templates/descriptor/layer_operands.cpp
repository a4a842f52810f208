#include "descriptor/layer_operands.h"

#include <algorithm>
#include <utility>

#include "descriptor/rows.h"
#include "descriptor/strided.h"
#include "kiln/generator/operation.h"

namespace kiln::descriptor {

LayerOperands layer_operands(const Request& request, std::string_view (*dimensions_of)(std::string_view name)) {
  LayerOperands operands;
  for (const OperandDefinition& definition : operation(request.operation).operands()) {
    const TensorSpec* spec = request.find(definition.name);
    LayerOperand operand{definition.name, dimensions_of(definition.name), {}};
    if (spec != nullptr) operand.spec = *spec;
    for (size_t i = 0; operand.spec && definition.repeats && i < operand.spec->extents.size(); ++i) {
      if (operand.spec->extents[i] == 1) operand.spec->strides[i] = 0;
    }
    operands.push_back(std::move(operand));
  }
  return operands;
}

const std::optional<TensorSpec>& spec_of(const LayerOperands& operands, std::string_view name) {
  return std::find_if(operands.begin(), operands.end(), [name](const LayerOperand& each) { return each.name == name; })
      ->spec;
}

double bytes_of(const LayerOperands& operands) {
  double bytes = 0;
  for (const LayerOperand& operand : operands) {
    if (operand.spec) bytes += static_cast<double>(operand.spec->elements()) * size_of(operand.spec->dtype);
  }
  return bytes;
}

void add_operands(Prelude& prelude, const LayerOperands& operands) {
  bool is_wide = false;
  for (const LayerOperand& operand : operands) {
    is_wide = is_wide || (operand.spec && needs_wide_index({&*operand.spec}));
  }
  prelude.index_type("Index", is_wide);
  for (const LayerOperand& operand : operands) {
    const std::vector<int64_t> none(operand.dimensions.size(), 0);
    const TensorSpec spec = operand.spec.value_or(TensorSpec{DType::f32, none, none, 4});
    const std::string name = constant_name({operand.name, spec});
    prelude.flag("WITH_" + name, operand.spec.has_value()).type("T" + name, spec.dtype);
    add_strides(prelude, name, operand.dimensions, spec);
  }
}

void append_operands(Launch& launch, const LayerOperands& operands) {
  for (const LayerOperand& operand : operands) launch.arguments.push_back(OperandArgument{operand.name});
}

}  // namespace kiln::descriptor
