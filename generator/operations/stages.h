// Operands bias and residual, shared by operations with an epilogue of stages.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/operation.h"

namespace kiln {

/// The operand of the stage `bias` of a product, an element for each channel of `result`, which are called `channels`.
OperandDefinition bias_operand(std::string channels, std::string_view result, DTypes dtypes = DTypes::floating_or_fp8);
/// The operand of the stage `add`.
OperandDefinition residual_operand(std::string_view result, DTypes dtypes = DTypes::floating);

/// Tensor that stands for `operand`, bias or residual, where it is left out: an element for each channel of the result,
/// or the result's twin. Nothing if it has no place in this request.
std::optional<TensorSpec> implied_stage_operand(const Request& request, std::string_view operand);

/// Refuses a bias or residual without its stage, or of other extents than the result says.
void check_stage_operands(const Request& request);

/// Bytes of the bias and residual that there are.
double stage_operand_bytes(const Request& request);

/// The operand, if there is one.
std::optional<TensorSpec> optional_operand(const Request& request, std::string_view name);
/// Adds an operand of a builder's request that there may be. One without extents is left out: it is inferred.
void add_operand(Request& request, std::string_view name, const std::optional<TensorSpec>& spec);

}  // namespace kiln
