// The descriptors of lib/conv_simple.cuh, lib/conv_backward_data_simple.cuh and lib/conv_backward_filter_simple.cuh:
// the trusted kernels of convolution, of local convolution and of their gradients. `name` is that of conv/NAME.cu and
// of its kernel.
#pragma once

#include <string>

#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

Algorithm simple_convolution(const std::string& name, const std::string& operation);
Algorithm simple_backward_data(const std::string& name, const std::string& operation);
Algorithm simple_backward_filter(const std::string& name, const std::string& operation);

}  // namespace kiln::descriptor
