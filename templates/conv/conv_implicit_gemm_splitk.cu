// conv_implicit_gemm for few pixels and channels but long filters: SPLIT_K blocks share one tile, each sums its part of
// the filter, and a second kernel adds the parts in a fixed order. Parameters: conv_implicit_gemm_splitk.cpp.
//
// parts: [SPLIT_K][elements of y at the largest batch] f32, each without gaps, channels side by side if Y_ALONG_K, else
// the pixels of an image.
#include "lib/im2col_pixels.cuh"
#include "lib/pointwise_pixels.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for conv_simple");
static_assert(SPLIT_K <= CHUNKS, "every part has a chunk");

constexpr Index PART_ELEMENTS = Index(N) * K * PIXELS_PER_IMAGE;

// The first channel of an output pixel in a part.
struct PartPixel {
  Index offset;

  __device__ __forceinline__ explicit PartPixel(Index pixel)
      : offset(Y_ALONG_K ? pixel * K : strided_offset<1, PIXELS_PER_IMAGE, PIXELS_PER_IMAGE * K, N>(pixel)) {}
};

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_implicit_gemm_splitk(const TX* __restrict__ x, const TW* __restrict__ w, float* __restrict__ parts,
                              UserArguments user, long long n) {
  const BlockTile tile(n);
  const TilePosition position;
  const int part = static_cast<int>(blockIdx.z);
  // The first CHUNKS % SPLIT_K parts have one chunk more.
  constexpr int WHOLE = CHUNKS / SPLIT_K, REST = CHUNKS % SPLIT_K;
  const int first = part * WHOLE + smaller(part, REST);
  const int last = first + WHOLE + (part < REST ? 1 : 0);
  float sums[THREAD_M][THREAD_N];
  convolve_tile<typename Select<POINTWISE, PointwisePixels, Im2colPixels>::type>(x, w, user, tile, first, last,
                                                                                 position, sums);

  for_each_output_run<PartPixel>(
      tile, position, sums, [&](const PartPixel& pixel, int channel, const float(&values)[Y_RUN]) {
        Vector<float, Y_RUN> run;
#pragma unroll
        for (int i = 0; i < Y_RUN; ++i) run[i] = values[i];
        const Index offset = pixel.offset + channel * (Y_ALONG_K ? Index(1) : PIXELS_PER_IMAGE);
        store<Y_RUN>(parts + (part * PART_ELEMENTS + offset), run);
      });
}

// y from the parts; one run of Y_RUN elements a thread.
extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)
    conv_implicit_gemm_splitk_reduce(const float* __restrict__ parts, TY* y, const TBias* bias,
                                     const TResidual* residual, float alpha, float beta, float clip_lo, float clip_hi,
                                     UserArguments user, long long n) {
  const Index elements = images_of(n) * K * PIXELS_PER_IMAGE;
  const Index offset = global_thread<REDUCE_THREADS, Index>() * Y_RUN;
  if (offset >= elements) return;

  float sums[Y_RUN] = {};
#pragma unroll 4
  for (int part = 0; part < SPLIT_K; ++part) {
    const Vector<float, Y_RUN> run = load_readonly<Y_RUN>(parts + (part * PART_ELEMENTS + offset));
#pragma unroll
    for (int i = 0; i < Y_RUN; ++i) sums[i] += run[i];
  }

  Index pixel = offset;
  Index channel;
  if constexpr (Y_ALONG_K) {
    channel = take_coordinate<K>(pixel);
  } else {
    const Index place = take_coordinate<PIXELS_PER_IMAGE>(pixel);
    channel = take_coordinate<K>(pixel);
    pixel = pixel * PIXELS_PER_IMAGE + place;
  }
  finish_outputs<Y_ALONG_K>(y, OutputPixel(pixel), channel, sums,
                            {bias, residual, alpha, beta, clip_lo, clip_hi, user});
}
