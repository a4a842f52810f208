// The descriptor of lib/winograd_fused.cuh.
#pragma once

#include <string>

#include "contraction/contractions.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// The kernels of FOLDER/NAME.cu, a convolution or a gradient by F(tile x tile, 3x3): launches of NAME_filters and
/// NAME. Deterministic. The workspace holds what the transform makes of w.
Algorithm fused_winograd_convolution(const std::string& template_path, const std::string& operation, int tile,
                                     ContractionMaker make);

}  // namespace kiln::descriptor
