// What definitions with a FurtherBlend share: its attributes and its numbers.
#pragma once

#include <vector>

#include "kiln/generator/operation.h"

namespace kiln {

/// Appends <name>_alpha and <name>_beta: the classes, `0`, `1` or `any`.
void append_classes(const FurtherBlend& blend, std::vector<AttributeDefinition>& definitions);
/// Appends <name>_alpha and <name>_beta: the values, read where the class is `any`.
void append_values(const FurtherBlend& blend, std::vector<ScalarDefinition>& definitions);
/// Appends the attributes of a request.
void append_classes(std::string_view name, const Blend& blend, std::vector<Attribute>& attributes);

/// Refuses a further blend none of whose outputs there is, and then says more than its default.
void check_further_blends(const Request& request);

}  // namespace kiln
