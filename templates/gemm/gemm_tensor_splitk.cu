// gemm_tensor for small products of long rows and columns. lib/conv_stream.cuh says how the depth is divided.
// Parameters: gemm_tensor_splitk.cpp.
//
// parts: for each product of the batch [SPLIT_K][M * N] f32; with BLOCKS the slots of all products.
#include "lib/conv_stream.cuh"
#include "lib/copied_operands.cuh"
#include "lib/copy_pipeline.cuh"
#include "lib/gemm_batch.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for gemm_simple");

// The place behind the tiles of so many products.
__device__ __forceinline__ StreamPlace of_products(long long products, long long n) {
  return behind({}, static_cast<unsigned>(products) * streamed_tiles(n));
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_tensor_splitk(const TX* __restrict__ a, const TW* __restrict__ b, float* __restrict__ parts,
                       UserArguments user, long long n) {
  if constexpr (STREAM_K) {
    const Stream stream(of_products(products(), n).chunk);
    sum_share<TensorCopies, CopiedPixels, CopiedFilters>(stream, {}, products(), parts, user, n, [&](int product) {
      return StreamOperands{x_of_product(a, product), w_of_product(b, product)};
    });
  } else {
    const int product = static_cast<int>(blockIdx.z) / SPLIT_K;
    convolve_part<TensorCopies, CopiedPixels, CopiedFilters>(
        GridBlock(), x_of_product(a, product), w_of_product(b, product), parts + product * (SPLIT_K * part_elements()),
        user, n, static_cast<int>(blockIdx.z) % SPLIT_K);
  }
}

// c from the parts.
extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)
    gemm_tensor_splitk_reduce(const float* __restrict__ parts, TY* c, const TBias* bias, const TResidual* residual,
                              float alpha, float beta, float clip_lo, float clip_hi, UserArguments user, long long n) {
  const int product = static_cast<int>(blockIdx.z);
  TY* const y = c + y_offset_of(product);
  const EpilogueArguments arguments = arguments_of({bias, residual, alpha, beta, clip_lo, clip_hi, user}, product);
  if constexpr (STREAM_K) {
    const Stream stream(of_products(products(), n).chunk);
    add_slots(GridBlock(), stream, of_products(product, n), parts, y, arguments, n);
  } else {
    add_parts(GridBlock(), parts + product * (SPLIT_K * part_elements()), y, arguments, n);
  }
}
