// The descriptor of lib/conv_direct.cuh.
#pragma once

#include <string>

#include "contraction/contractions.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// The kernel NAME of FOLDER/NAME.cu, a convolution or a gradient: one launch for all contractions of a request.
Algorithm direct_convolution(const std::string& template_path, const std::string& operation, ContractionMaker make);

}  // namespace kiln::descriptor
