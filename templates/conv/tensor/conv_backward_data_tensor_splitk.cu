// conv_backward_data_tensor for few pixels and channels but long filters. lib/conv_stream.cuh says how the depth is
// divided. Parameters: conv_backward_data_tensor_splitk.cpp.
#include "lib/class_blocks.cuh"
#include "lib/copy_pipeline.cuh"
#include "lib/stream.cuh"
#include "per_class/lib/copied_split.cuh"

// The place behind the tiles of all classes.
__device__ __forceinline__ StreamPlace all_tiles(long long n) {
  StreamPlace place;
#define ADD_TILES(NAME) place = NAME::behind(place, NAME::streamed_tiles(n));
  FOR_EACH_CLASS(ADD_TILES)
  return place;
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_backward_data_tensor_splitk(const TX* __restrict__ x, const TW* __restrict__ w, float* __restrict__ parts,
                                     UserArguments user, long long n) {
  if constexpr (BLOCKS > 0) {
    const Stream stream(all_tiles(n).chunk);
    StreamPlace place;
#define SHARE(NAME)                                                                                                   \
  NAME::sum_share<TensorCopies, NAME::CopiedPixels, NAME::CopiedFilters>(stream, place, 1, parts, user, n, [&](int) { \
    return NAME::StreamOperands{x, w};                                                                                \
  });                                                                                                                 \
  place = NAME::behind(place, NAME::streamed_tiles(n));
    FOR_EACH_CLASS(SHARE)
  } else {
    const ClassBlock block;
    const int part = static_cast<int>(blockIdx.z);
#define CONVOLVE(NAME)                                                                                              \
  if (block.is_of(NAME::CLASS)) {                                                                                   \
    NAME::convolve_part<TensorCopies, NAME::CopiedPixels, NAME::CopiedFilters>(block.place(), x, w, parts, user, n, \
                                                                               part);                               \
  }
    FOR_EACH_CLASS(CONVOLVE)
  }
}

// y from the parts.
extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)
    conv_backward_data_tensor_splitk_reduce(const float* __restrict__ parts, TY* y, const TBias* bias,
                                            const TResidual* residual, float alpha, float beta, float clip_lo,
                                            float clip_hi, UserArguments user, long long n) {
  const ClassBlock block;
  const EpilogueArguments arguments = {bias, residual, alpha, beta, clip_lo, clip_hi, user};
  if constexpr (BLOCKS > 0) {
    const Stream stream(all_tiles(n).chunk);
    StreamPlace place;
#define ADD_SLOTS(NAME)                                                    \
  if (block.is_of(NAME::CLASS)) {                                          \
    NAME::add_slots(block.place(), stream, place, parts, y, arguments, n); \
  }                                                                        \
  place = NAME::behind(place, NAME::streamed_tiles(n));
    FOR_EACH_CLASS(ADD_SLOTS)
  } else {
#define ADD(NAME)                                           \
  if (block.is_of(NAME::CLASS)) {                           \
    NAME::add_parts(block.place(), parts, y, arguments, n); \
  }
    FOR_EACH_CLASS(ADD)
  }
}
