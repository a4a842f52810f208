// Sources of CUTLASS's kernels for Kiln's requests.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "kiln/generator/arch.h"
#include "kiln/generator/dtype.h"
#include "kiln/generator/request.h"

namespace kiln::bench {

/// Extents (M, N, K) of a kernel's tiles, and of its tensor instruction.
struct CutlassTile {
  std::array<int, 3> block, warp, instruction;
  int stages = 2;
};

/// One of CUTLASS's kernels for a request.
struct CutlassChoice {
  CutlassTile tile;
  DType sum = DType::f32;
  int slices = 1;         ///< Parts of the sum, each by blocks of its own.
  bool parallel = false;  ///< A second kernel adds the slices; else their blocks do, in turn.
  bool analytic = false;  ///< Iterators that compute each address anew, which take every convolution.

  /// "128x128x32 64x64x32 m16n8k16 stages=3 slices=1 sum=f32".
  std::string print() const;
};

/// Source of a kernel of CUTLASS in CUDA C++, and the numbers that its parameters are made from.
struct CutlassSource {
  std::string text;
  std::vector<std::byte> problem;  ///< A CutlassConvolution or CutlassProduct.
  std::array<size_t, 3> operands;  ///< Positions of a, b and c among the operands of the request.
  size_t slice_bytes = 0;          ///< Memory for the slices that a second kernel adds.
};

/// `request`: conv_forward, conv_backward_data, conv_backward_filter with channels innermost and without groups, or a
/// product of two matrices; alpha and beta, no epilogue. A second kernel adds slices of convolutions alone.
/// Throws Error(unsupported) with the reason if CUTLASS has no such kernel.
CutlassSource cutlass_source(const Request& request, const Arch& arch, const CutlassChoice& choice);

}  // namespace kiln::bench
