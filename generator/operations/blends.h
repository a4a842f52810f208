// Attributes and numbers shared by definitions with a FurtherBlend.
#pragma once

#include <vector>

#include "kiln/generator/operation.h"

namespace kiln {

/// `definitions`, and <name>_alpha and <name>_beta of each blend: the classes, `0`, `1` or `any`.
std::vector<AttributeDefinition> with_classes(std::vector<AttributeDefinition> definitions,
                                              const std::vector<FurtherBlend>& blends);
/// `definitions`, and <name>_alpha and <name>_beta of each blend: the values, read where the class is `any`.
std::vector<ScalarDefinition> with_values(std::vector<ScalarDefinition> definitions,
                                          const std::vector<FurtherBlend>& blends);
/// Appends the classes of one blend to the attributes of a request.
void append_classes(std::string_view name, const Blend& blend, std::vector<Attribute>& attributes);

/// Refuses a further blend none of whose outputs there is, and then says more than its default.
void check_further_blends(const Request& request);

}  // namespace kiln
