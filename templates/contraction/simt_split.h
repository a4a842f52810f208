// The descriptor of lib/conv_split.cuh.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contraction/simt_tiling.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// The kernels NAME and NAME_reduce of FOLDER/NAME.cu: for each contraction of a request one launch of the first, which
/// cuts the depth into one of `splits` pieces, and one of the second, which adds them.
Algorithm split_contraction(const std::string& template_path, const std::string& operation, ContractionMaker make,
                            std::vector<int64_t> splits, ContractionRefusal refusal = no_refusal);

}  // namespace kiln::descriptor
