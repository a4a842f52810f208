// The operands of col2im in memory, whatever their strides, which come from the prelude.
#include "lib/images.cuh"
#include "lib/strided.cuh"

using ColumnsOfX = SpatialTensor<X_STRIDE_N, X_STRIDE_K, X_STRIDE_Z, X_STRIDE_P, X_STRIDE_Q, N, Z, P, Q>;
using ImagesOfY = SpatialTensor<Y_STRIDE_N, Y_STRIDE_C, Y_STRIDE_D, Y_STRIDE_H, Y_STRIDE_W, N, D, H, W>;
