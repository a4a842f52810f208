// The descriptor of lib/winograd_fused.cuh.
#pragma once

#include <string>

#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// The convolution or gradient `name` of conv/NAME.cu by F(TILE x TILE, 3x3): launches of NAME_filters and NAME.
/// Deterministic. The workspace holds what the transform makes of w.
template <int TILE>
Algorithm fused_winograd_convolution(const std::string& name, const std::string& operation);

extern template Algorithm fused_winograd_convolution<2>(const std::string& name, const std::string& operation);
extern template Algorithm fused_winograd_convolution<4>(const std::string& name, const std::string& operation);

}  // namespace kiln::descriptor
