// Contractions by one launch of a kernel of lib/conv_tile.cuh.
#pragma once

#include <string>

#include "contraction/simt_tiling.h"

namespace kiln::descriptor {

/// The kernel NAME of FOLDER/NAME.cu, whose blocks each multiply all chunks.
Algorithm tiled_contraction(const std::string& template_path, const std::string& operation, ContractionMaker make,
                            ContractionRefusal refusal = no_refusal);

}  // namespace kiln::descriptor
