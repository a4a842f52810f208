// Operands of layers whose dimensions have names of their own: as their descriptors and templates see them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/program.h"
#include "kiln/generator/request.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// An operand: its type, and the strides of its dimensions, a letter each.
struct LayerOperand {
  std::string name;
  std::string_view dimensions;
  std::optional<TensorSpec> spec;  ///< Nothing where the request has none; extents of 1 that repeat have the stride 0.
};
using LayerOperands = std::vector<LayerOperand>;

/// All operands of the request's operation, in its order. `dimensions_of(name)`: their letters.
LayerOperands layer_operands(const Request& request, std::string_view (*dimensions_of)(std::string_view name));
/// The spec of an operand of this name, which there is; nothing where the request has none.
const std::optional<TensorSpec>& spec_of(const LayerOperands& operands, std::string_view name);
/// Bytes that have to move: each operand once.
double bytes_of(const LayerOperands& operands);

/// Index, wide where an operand needs it, and for each operand WITH_NAME, its type TNAME, and its strides
/// NAME_STRIDE_LETTER.
void add_operands(Prelude& prelude, const LayerOperands& operands);
/// Adds the operands at the end of the arguments.
void append_operands(Launch& launch, const LayerOperands& operands);

}  // namespace kiln::descriptor
