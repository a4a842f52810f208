// Attribute `axes`, shared by operations along several axes of x.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

/// Why images mix along these axes, which `what` says of them ("is normalised"); nothing if the batch is none of them.
std::optional<std::string> why_axes_mix_images(const std::vector<int64_t>& axes, std::string_view what);
/// Operation::batch_dimensions() of an operation along axes: those in front of the first axis, as far as operands that
/// have no batch repeat along them and they lie outside of all others in memory.
size_t dimensions_before_axes(const Request& request, const std::vector<int64_t>& axes, std::string_view operand);

/// "0,2,3".
std::string axes_words(const Request& request);

/// The extents with 1 along the request's axes, or along all others.
std::vector<int64_t> reduced_extents(const Request& request, const std::vector<int64_t>& extents);
std::vector<int64_t> extents_of_axes(const Request& request, const std::vector<int64_t>& extents);

}  // namespace kiln
