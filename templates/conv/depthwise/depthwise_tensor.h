// The descriptors of the kernels for depthwise convolution on tensor cores (lib/conv_depthwise_tensor.cuh).
#pragma once

#include <string>

#include "contraction/contractions.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// Of `operation`, whose contractions `make` makes.
Algorithm depthwise_tensor_convolution(const std::string& template_path, const std::string& operation,
                                      ContractionMaker make);

}  // namespace kiln::descriptor
