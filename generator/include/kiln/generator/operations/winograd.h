// Which convolutions Winograd's minimal filtering may compute: the rule that its kernels and the tolerance share.
#pragma once

#include <optional>
#include <string>

#include "kiln/generator/request.h"

namespace kiln {

/// Why F(2x2,3x3) and F(4x4,3x3) (A. Lavin and S. Gray, *Fast Algorithms for Convolutional Neural Networks*,
/// arXiv:1509.09308, 2015) may not compute a request of conv_forward or conv_backward_data, in words for a user;
/// nothing if they may. Other operations are refused.
///
/// They may where the request says `fast`, which permits that a result strays by more than sums of its own terms would,
/// and that NaN and infinities spread to the outputs around (docs/numerics.md); what they multiply are f32 and 3x3
/// filters with unit stride and dilation, in a plane of two or three dimensions.
std::optional<std::string> winograd_refusal(const Request& request);

}  // namespace kiln
