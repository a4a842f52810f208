// The descriptor of lib/winograd_steps.cuh.
#pragma once

#include <string>

#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// The convolution or gradient `name` of conv/NAME.cu by F(TILE x TILE, 3x3): launches of NAME_filters, NAME_inputs,
/// conv_1x1 and NAME_outputs. Deterministic. The workspace holds what the transforms make of w and x, and the products.
template <int TILE>
Algorithm winograd_convolution(const std::string& name, const std::string& operation);

extern template Algorithm winograd_convolution<2>(const std::string& name, const std::string& operation);
extern template Algorithm winograd_convolution<4>(const std::string& name, const std::string& operation);

}  // namespace kiln::descriptor
