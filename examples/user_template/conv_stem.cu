// A network's first convolution, fused with its epilogue and with the change of layout: reads an image of few channels
// in nchw and writes activations in nhwc, which the layers behind it want.
//
// A thread computes TILE_K channels of one output pixel, so that it writes them side by side. The block's TILE_K
// filters stand in shared memory as f32, channels side by side, and all lanes read the same ones. Parameters:
// conv_stem.json.
#include "lib/epilogue.cuh"
#include "lib/index.cuh"

static_assert(K % TILE_K == 0, "a store stays in its pixel");
static_assert(GROUPS == 1, "one group");

extern "C" __global__ void __launch_bounds__(THREADS)
    conv_stem(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias, float alpha, float beta,
              float clip_lo, float clip_hi, UserArguments user, long long n) {
  __shared__ alignas(16) float filters[FILTER][TILE_K];
  const int first_k = static_cast<int>(blockIdx.y) * TILE_K;
  for (int i = static_cast<int>(threadIdx.x); i < FILTER * TILE_K; i += THREADS) {
    const int element = MIRRORED ? i % FILTER / (R * S) * (R * S) + (R * S - 1 - i % (R * S)) : i % FILTER;
    filters[i % FILTER][i / FILTER] = to_float(w[static_cast<Index>(first_k + i / FILTER) * FILTER + element]);
  }
  __syncthreads();

  const Index pixel = global_thread<THREADS, Index>();
  if (pixel >= (DYNAMIC_N ? static_cast<Index>(n) : N) * (Index(P) * Q)) return;
  Index image = pixel;
  const Index left = take_coordinate(image, Q) * STRIDE_W - PAD_LEFT;
  const Index top = take_coordinate(image, P) * STRIDE_H - PAD_TOP;
  const TX* const planes = x + image * (Index(C) * H * W);

  float sums[TILE_K] = {};
  for (int c = 0; c < C; ++c) {
    for (int r = 0; r < R; ++r) {
      const Index row = top + r * DILATION_H;
      if (row < 0 || row >= H) continue;
#pragma unroll
      for (int s = 0; s < S; ++s) {
        const Index column = left + s * DILATION_W;
        if (column < 0 || column >= W) continue;
        const float value = user_entered(planes[(c * Index(H) + row) * W + column], c, user);
        const Vector<float, TILE_K> taps = load<TILE_K>(filters[(c * R + r) * S + s]);
#pragma unroll
        for (int k = 0; k < TILE_K; ++k) sums[k] = fmaf(value, taps[k], sums[k]);
      }
    }
  }

  const EpilogueArguments arguments{bias, nullptr, alpha, beta, clip_lo, clip_hi, user};
  finish_run<true>(y, pixel * K + first_k, sums, first_k, arguments);
}
