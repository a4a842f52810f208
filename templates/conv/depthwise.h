// What the two depthwise descriptors share.
#pragma once

#include <optional>
#include <string>

#include "conv/conv_problem.h"

namespace kiln::descriptor {

/// Why the depthwise kernel for `layout` cannot serve `conv`; nothing if it can.
std::optional<std::string> depthwise_refusal(const ConvForward& conv, ConvLayout layout);

/// Positions along one axis of x that `tile` neighbouring outputs need: 0 is h, 1 is w.
int64_t input_positions(const ConvForward& conv, int axis, int64_t tile);

/// Of those, the ones that some tap meets.
int64_t met_positions(const ConvForward& conv, int axis, int64_t tile);

}  // namespace kiln::descriptor
