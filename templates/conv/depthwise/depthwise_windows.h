// The descriptors of convolutions of few channels by large windows: lib/conv_windows.cuh.
#pragma once

#include <string>

#include "contraction/contractions.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// The kernel NAME of FOLDER/NAME.cu.
Algorithm windows_convolution(const std::string& template_path, const std::string& operation, ContractionMaker make);

}  // namespace kiln::descriptor
