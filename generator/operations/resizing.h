// The attributes and extents of resize and of its gradient. `input` and `output` name the operands that have the
// extents of x and of y.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kiln/generator/operation.h"
#include "kiln/generator/operations/resize.h"

namespace kiln {

/// mode, coordinates, rounding, outside, and up and down.
std::vector<AttributeDefinition> resizing_attributes();
/// cubic, and its rule.
const std::vector<ScalarDefinition>& resizing_scalars();
std::vector<ScalarRule> resizing_scalar_rules(const Request& request);

/// Writes scales out for each axis, in lowest terms, and gives words that the mode does not read their defaults.
void complete_resizing(Request& request, std::string_view input);
/// Refuses operands that no resize has, and scales that are none or that the extents contradict.
void check_resizing(const Request& request, std::string_view input, std::string_view output);

/// x's extent times the scale, rounded down.
int64_t scaled_extent(int64_t extent, const ResizeScale& scale);
/// Elements of x that an element of y is made of, over all axes.
double taps_per_output(const Request& request, std::string_view input, std::string_view output);

Resizing resizing_of(const Request& request);
/// The attributes of a request that a builder makes.
std::vector<Attribute> attributes_of(const Resizing& resizing);

}  // namespace kiln
