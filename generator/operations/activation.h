// Parts shared by activation_forward and activation_backward.
#pragma once

#include <string>
#include <vector>

#include "kiln/generator/operation.h"
#include "kiln/generator/operations/activation.h"

namespace kiln {

/// The modes as the attribute `mode` has them, in the order of activation_modes().
const std::vector<std::string>& activation_words();
ActivationMode activation_mode_of(const Request& request);
/// ActivationNumbers, as Operation::scalars().
const std::vector<ScalarDefinition>& activation_scalars();
/// Rules of the numbers that `mode` reads; `from_y`: for the derivative from y.
std::vector<ScalarRule> activation_rules(ActivationMode mode, bool from_y);

/// Parts of an operation whose result goes through an activation: the attribute `activation`, and the numbers and their
/// rules behind its own.
AttributeDefinition fused_activation_attribute();
std::vector<ScalarDefinition> with_activation_scalars(std::vector<ScalarDefinition> own);
std::vector<ScalarRule> with_activation_rules(std::vector<ScalarRule> own, const Request& request);

}  // namespace kiln
