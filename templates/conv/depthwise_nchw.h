// The descriptor of lib/conv_depthwise_nchw.cuh.
#pragma once

#include <string>

#include "conv/conv_parts.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// The convolution or gradient `name` of conv/NAME.cu: for each part one launch of a kernel of that name.
Algorithm depthwise_nchw_convolution(const std::string& name, const std::string& operation);

}  // namespace kiln::descriptor
