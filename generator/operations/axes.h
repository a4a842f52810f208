// Attribute `axes`, shared by operations along several axes of x.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/operation.h"

namespace kiln {

/// `axes`, which are `what`: by default `fallback`; without values, all.
AttributeDefinition axes_attribute(std::vector<int64_t> fallback, std::string_view what);

/// Counts negative axes of `operand` from its end, and sorts them.
void complete_axes(Request& request, std::string_view operand);

/// Refuses axes that `operand` has not, that stand twice, or that are the batch of a dynamic request.
void check_axes(const Request& request, std::string_view operand);

/// "0,2,3".
std::string axes_words(const Request& request);

/// The extents with 1 along the request's axes, or along all others.
std::vector<int64_t> reduced_extents(const Request& request, const std::vector<int64_t>& extents);
std::vector<int64_t> extents_of_axes(const Request& request, const std::vector<int64_t>& extents);

}  // namespace kiln
