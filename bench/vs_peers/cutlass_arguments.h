// Arguments of CUTLASS's kernels in plain numbers. Read by the host's compiler and by NVRTC.
#pragma once

namespace kiln::bench {

/// A convolution or a gradient of one, all tensors with channels innermost. Strides are in elements: of a pixel, of a
/// row and of an image or filter.
struct CutlassConvolution {
  int n, h, w, c, k, r, s, p, q;
  int pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w;
  int input[3], filter[3], output[3];
  int slices;    ///< Parts of the sum, each by blocks of its own.
  int parallel;  ///< Whether a second kernel adds the slices.
};

/// c = a b. A stride is that of a row where the matrix is row-major, and of a column where it is column-major.
struct CutlassProduct {
  int m, n, k;
  int a, b, c;
  int slices;
};

/// How to launch a kernel with the parameters that were made, and a second one that adds slices, whose parameters stand
/// behind those of the first.
struct CutlassLaunch {
  int accepted;  ///< By CUTLASS's own conditions.
  int grid[3];
  int threads;
  int shared_bytes;
  int parameter_bytes;
  int adding_grid[2];
  int adding_threads[2];
  int adding_parameter_bytes;  ///< 0 without the second kernel.
};

}  // namespace kiln::bench
