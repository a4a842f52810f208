// Matrix products by the kernels of convolution: those of a batch, one for each z of the grid.
//
// From the prelude, besides the problem: BATCHED, whether there is more than one product; BATCH_0 to BATCH_2, the
// extents of the batch dimensions, outermost first, and the strides of x, w, y and the residual along them (elements; 0
// where a matrix is used again).
#include "lib/conv_operands.cuh"

__device__ __forceinline__ unsigned products() {
  return static_cast<unsigned>(BATCH_0 * BATCH_1 * BATCH_2);
}

// Offset of the matrix of product number `product`, of an operand with these strides.
__device__ __forceinline__ Index product_offset(int product, long long stride_0, long long stride_1,
                                                long long stride_2) {
  if constexpr (!BATCHED) return 0;
  return strided_offset(static_cast<Index>(product), stride_2, BATCH_2, stride_1, BATCH_1, stride_0, BATCH_0);
}

__device__ __forceinline__ const TX* x_of_product(const TX* x, int product) {
  return x + product_offset(product, X_BATCH_STRIDE_0, X_BATCH_STRIDE_1, X_BATCH_STRIDE_2);
}
__device__ __forceinline__ const TW* w_of_product(const TW* w, int product) {
  return w + product_offset(product, W_BATCH_STRIDE_0, W_BATCH_STRIDE_1, W_BATCH_STRIDE_2);
}
__device__ __forceinline__ Index y_offset_of(int product) {
  return product_offset(product, Y_BATCH_STRIDE_0, Y_BATCH_STRIDE_1, Y_BATCH_STRIDE_2);
}

// The arguments of the epilogue of one product.
__device__ __forceinline__ EpilogueArguments arguments_of(EpilogueArguments arguments, int product) {
  if constexpr (READS_RESIDUAL) {
    arguments.residual +=
        product_offset(product, RESIDUAL_BATCH_STRIDE_0, RESIDUAL_BATCH_STRIDE_1, RESIDUAL_BATCH_STRIDE_2);
  }
  advance_user_tensors(arguments.user, y_offset_of(product));
  return arguments;
}
