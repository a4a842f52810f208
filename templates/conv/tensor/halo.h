// The shared descriptor of kernels by lib/conv_halo.cuh.
#pragma once

#include <string>

#include "contraction/contractions.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// The algorithm NAME of FOLDER/NAME.cu, whose blocks bring what the windows of a tile of outputs meet once for all
/// taps.
Algorithm halo_convolution(const std::string& template_path, const std::string& operation, ContractionMaker make);

}  // namespace kiln::descriptor
