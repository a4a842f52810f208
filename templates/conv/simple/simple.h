// The descriptors of lib/conv_simple.cuh, lib/conv_backward_data_simple.cuh and lib/conv_backward_filter_simple.cuh:
// the trusted kernels of convolution, of local convolution and of their gradients. `template_path` is
// FOLDER/NAME.cu, with a kernel NAME.
#pragma once

#include <string>

#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

Algorithm simple_convolution(const std::string& template_path, const std::string& operation);
Algorithm simple_backward_data(const std::string& template_path, const std::string& operation);
Algorithm simple_backward_filter(const std::string& template_path, const std::string& operation);

}  // namespace kiln::descriptor
