// Parts shared by the definitions of normalisations.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/operation.h"
#include "kiln/generator/operations/norm.h"

namespace kiln {

inline constexpr std::string_view norm_axes = "the dimensions of a row";
AttributeDefinition norm_mode_attribute();
/// Number that is added to the variance.
ScalarDefinition epsilon_scalar();
/// The stages that their epilogues may have.
std::vector<EpilogueStage> norm_stages();
NormMode norm_mode_of(const Request& request);

/// "rms " where that is the mode.
std::string_view norm_mode_words(const Request& request);
/// "normalisation 2x64x56x56 f16, axes 0,2,3": of `input`.
std::string norm_words(const Request& request, std::string_view input);
/// ", add+relu", ", add, swish": stages and activation.
std::string norm_epilogue_words(const Request& request);

ScalarRule epsilon_rule();
/// Rules of epsilon, the first number, of momentum if that is the second, and of the activation.
std::vector<ScalarRule> norm_rules(const Request& request, bool has_momentum);

/// The most that a tensor has: N,G,C/G and three spatial ones, the channels in groups.
inline constexpr int norm_dimensions = 6;

/// `operand`, a parameter: the same for every image, and it may be left out.
OperandDefinition norm_parameter(OperandDefinition operand);
/// The parameters of the forward operations.
OperandDefinition norm_w();
OperandDefinition norm_b();

/// f32, the extents of `x` with 1 along the axes.
std::optional<TensorSpec> implied_statistics(const Request& request, std::string_view x);

/// Refuses statistics of other extents.
void check_statistics(const Request& request, std::string_view x, std::string_view name);
/// Refuses a parameter that has in a dimension neither x's extent nor 1.
void check_parameter(const Request& request, std::string_view x, std::string_view name);
/// Refuses an epilogue other than add, relu, or add and then relu, a residual that does not fit it, and relu with an
/// activation.
void check_norm_epilogue(const Request& request);

/// Every operand that is there once, and `flops` for each element of the first.
Work norm_work(const Request& request, double flops);

}  // namespace kiln
