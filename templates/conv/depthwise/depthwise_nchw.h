// The descriptor of lib/conv_depthwise_nchw.cuh.
#pragma once

#include <string>

#include "contraction/contractions.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// The kernel NAME of FOLDER/NAME.cu, a convolution or a gradient: one launch for all contractions of a request.
Algorithm depthwise_nchw_convolution(const std::string& template_path, const std::string& operation,
                                     ContractionMaker make);

}  // namespace kiln::descriptor
