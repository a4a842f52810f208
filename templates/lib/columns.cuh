// The operands of im2col in memory, whatever their strides, which come from the prelude.
#include "lib/images.cuh"
#include "lib/strided.cuh"

using ImagesOfX = SpatialTensor<X_STRIDE_N, X_STRIDE_C, X_STRIDE_D, X_STRIDE_H, X_STRIDE_W, N, D, H, W>;
using ColumnsOfY = SpatialTensor<Y_STRIDE_N, Y_STRIDE_K, Y_STRIDE_Z, Y_STRIDE_P, Y_STRIDE_Q, N, Z, P, Q>;
