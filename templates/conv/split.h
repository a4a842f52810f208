// The descriptor of lib/conv_split.cuh.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conv/gemm_tiling.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// The convolution, gradient or matrix product `name` of gemm_template(): for each part one launch of a kernel of that
/// name, which cuts the filter into one of `splits` pieces, and one of NAME_reduce, which adds them.
Algorithm split_convolution(const std::string& name, const std::string& operation, std::vector<int64_t> splits,
                            std::optional<std::string> (*refusal)(const ConvProblem&) = no_refusal);

}  // namespace kiln::descriptor
