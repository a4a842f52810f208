// Parts shared by the definitions of grid_sample, affine_grid and their gradients.
#pragma once

#include <string>

#include "kiln/generator/operation.h"
#include "kiln/generator/operations/grid_sample.h"

namespace kiln {

constexpr const char* coordinates_words = "positions in x, from -1 to 1: along w, h, and in 3-D d";

/// A grid, or its gradient.
OperandDefinition grid_operand(std::string name, Role role, std::string left_out, std::string summary);

/// The attribute `ends`, and that of a complete request.
AttributeDefinition ends_attribute();
GridEnds ends_of(const Request& request);

}  // namespace kiln
