// Which indices of extremes are right where a prologue's elements may move: a part of the check of user code.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln::reference {

/// All positions at which the extreme may be that an element of `indices` names, for `plain` (without_user_code() of a
/// request with an output that names elements) and `operands`, perturbations as for prologue_slack(): by the number of
/// the element in logical order, for those that have more than one. A position is possible if, with its own element
/// moved towards the extreme and all others away from it, the operation names it; an element whose perturbation is
/// infinite may be anything.
std::map<size_t, std::vector<double>> possible_indices(
    const Request& plain, const std::map<std::string, std::span<const std::byte>>& operands,
    std::span<const float> perturbations);

}  // namespace kiln::reference
