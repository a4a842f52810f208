// The attributes and extents of pooling and of its gradient. `input` and `output` name the operands that have the
// extents of x and of y.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/operation.h"
#include "kiln/generator/operations/pool_window.h"

namespace kiln {

/// window, pad, stride and dilation.
std::vector<AttributeDefinition> pool_window_attributes();
/// mode, and those.
std::vector<AttributeDefinition> pooling_attributes();
/// Their short forms written out, `window=global` too.
void complete_pool_window(Request& request, std::string_view input);

/// Refuses an input without channels, and windows, pads, strides and dilations that are none.
void check_pool_input(const Request& request, std::string_view input);
/// Refuses extents of the output other than those of the floor formula or of ceil mode.
void check_pool_output(const Request& request, std::string_view input, std::string_view output);

/// Refuses an operand of indices (if there is one) of other extents than `output`, or of channels with more positions
/// than i32 has numbers.
void check_pool_indices(const Request& request, std::string_view output);
/// Refuses one in other modes than max.
void check_has_maxima(const Request& request);

/// "3", "3x5", "global": the windows over `input`.
std::string pool_window_words(const Request& request, std::string_view input);

/// The axis `i` of a request with complete attributes, without outputs.
WindowAxis pool_axis(const Request& request, std::string_view input, int i);

PoolWindow pool_window_of(const Request& request);
Pooling pooling_of(const Request& request);
/// The attributes of a request that a builder makes.
std::vector<Attribute> attributes_of(const PoolWindow& window);
std::vector<Attribute> attributes_of(const Pooling& pooling);

}  // namespace kiln
