// Gradients by filters of few channels, whose sums several blocks share: their launches and costs. The kernels include
// lib/filter_parts.cuh.
#pragma once

#include <string>

#include "conv/gradients.h"

namespace kiln::descriptor {

/// Blocks of the launch that sums: `split` of them share what the filters of each in x and z need.
struct SplitGrid {
  int threads, split;
  int64_t blocks_in_x, blocks_in_z = 1;
  int64_t dynamic_shared_bytes = 0;
};

/// Whether it has few enough blocks that splitting may pay, and the parts fit into a gigabyte.
bool split_is_worthwhile(const FilterGradient& gradient, const SplitGrid& grid);

/// The program of the kernels NAME and, if blocks share sums, NAME_reduce. SPLIT and REDUCE_THREADS are added to
/// `prelude`.
Program split_gradient_program(const std::string& name, const FilterGradient& gradient, const SplitGrid& grid,
                               Prelude prelude, const Emitter& emit);

/// The estimate of both launches: `block` is a block of the first.
Estimate split_gradient_estimate(const FilterGradient& gradient, const SplitGrid& grid, const BlockWork& block,
                                 const Target& target, const DeviceFigures& device);

}  // namespace kiln::descriptor
