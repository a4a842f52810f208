// The shared descriptor of kernels by lib/conv_patch.cuh.
#pragma once

#include <string>

#include "contraction/contractions.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// The algorithm NAME of FOLDER/NAME.cu, whose blocks keep the part of the input under a tile's windows in shared
/// memory and read fragments from there.
Algorithm patch_convolution(const std::string& template_path, const std::string& operation, ContractionMaker make);

}  // namespace kiln::descriptor
