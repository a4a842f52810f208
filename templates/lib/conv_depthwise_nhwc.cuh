// Depthwise convolution along the channels: every channel of x has MULTIPLIER filters of its own. Any strides; fast
// where channels stand side by side.
//
// A thread computes TILE_P x TILE_Q outputs of VECTOR neighbouring channels; lanes are neighbours along channels first.
// It goes down the rows of x that its outputs need (lib/depthwise_rows.cuh). Each element is converted once and serves
// all taps and outputs that meet there. The filters of the block's BLOCK_K channels stand in shared memory as f32, tap
// by tap.
//
// From the prelude, besides the problem: TILE_P, TILE_Q, MULTIPLIER, VECTOR, BLOCK_K and THREADS
// (conv/depthwise/depthwise_nhwc.cpp).
#include "lib/conv_operands.cuh"
#include "lib/depthwise_rows.cuh"

constexpr int PLACES = THREADS / LANES_K;  // output tiles of a block

struct FilterTile {
  alignas(16) float values[TAPS][BLOCK_K];

  __device__ __forceinline__ void fill(const TW* w, int first_k) {
    for (int i = static_cast<int>(threadIdx.x); i < TAPS * BLOCK_K; i += THREADS) {
      const int k = i / TAPS, tap = i % TAPS;
      const Index offset = first_filter_element(first_k + k) + filter_offset(MIRRORED ? TAPS - 1 - tap : tap);
      values[tap][k] = first_k + k < K ? to_float(w[offset]) : 0.0f;
    }
  }
};

// The shared memory of a block.
using BlockMemory = FilterTile;

// sums += the products of the input element at (row, column) of the thread with the taps at `filters`: those of the
// thread's first channel.
__device__ __forceinline__ void multiply(const KeptPixel& kept, int row, int column, const float (*filters)[BLOCK_K],
                                         float (&sums)[TILE_P][TILE_Q][VECTOR]) {
  float values[VECTOR];
  to_floats(kept, values);
#pragma unroll
  for (int p = 0; p < TILE_P; ++p) {
    const int down = row - p * STRIDE_H;
    if (down < 0 || down % DILATION_H != 0 || down / DILATION_H >= R) continue;
#pragma unroll
    for (int q = 0; q < TILE_Q; ++q) {
      const int right = column - q * STRIDE_W;
      if (right < 0 || right % DILATION_W != 0 || right / DILATION_W >= S) continue;
      const Vector<float, VECTOR> taps = load<VECTOR>(filters[down / DILATION_H * S + right / DILATION_W]);
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) sums[p][q][i] = fmaf(values[i], taps[i], sums[p][q][i]);
    }
  }
}

__device__ __forceinline__ void convolve_depthwise(BlockMemory& filters, const GridBlock& block, const TX* x,
                                                   const TW* w, TY* y, const EpilogueArguments& arguments,
                                                   long long n) {
  const int first_k = static_cast<int>(block.y) * BLOCK_K;
  filters.fill(w, first_k);
  __syncthreads();

  const int k_in_block = static_cast<int>(threadIdx.x) % LANES_K * VECTOR;
  const int k = first_k + k_in_block;
  Index image = static_cast<Index>(block.x) * PLACES + static_cast<int>(threadIdx.x) / LANES_K;
  if (image >= images_of(n) * (Index(Z) * p_tiles() * q_tiles()) || k >= K) return;
  const Index first_q = take_coordinate(image, q_tiles()) * TILE_Q;
  const Index first_p = take_coordinate(image, p_tiles()) * TILE_P;
  const Index z = take_coordinate(image, Z);
  const Index front = z * STRIDE_D - PAD_FRONT, top = first_p * STRIDE_H - PAD_TOP,
              left = first_q * STRIDE_W - PAD_LEFT;

  float sums[TILE_P][TILE_Q][VECTOR] = {};
#pragma unroll 1
  for (int t = 0; t < (MULTIPLIES ? T : 0); ++t) {
    const Index d = front + Index(t) * DILATION_D;
    if (static_cast<UnsignedIndex>(d) >= UnsignedIndex(D)) continue;
    const auto* const taps = reinterpret_cast<const float(*)[BLOCK_K]>(&filters.values[t * (R * S)][k_in_block]);
    const TX* const corner = x + Input::at(image, 0, d, top, left);
    for_each_pixel<R>(corner, top, left, k, arguments.user,
                      [&](const KeptPixel& pixel, int row, int column) { multiply(pixel, row, column, taps, sums); });
  }

#pragma unroll
  for (int p = 0; p < TILE_P; ++p) {
    if (P % TILE_P != 0 && first_p + p >= P) break;
#pragma unroll
    for (int q = 0; q < TILE_Q; ++q) {
      if (Q % TILE_Q != 0 && first_q + q >= Q) break;
      finish_outputs<true>(y, OutputPixel(image, z, first_p + p, first_q + q), k, sums[p][q], arguments);
    }
  }
}

// The whole of a kernel whose blocks are all of one class.
__device__ __forceinline__ void convolve_depthwise(const TX* x, const TW* w, TY* y, const EpilogueArguments& arguments,
                                                   long long n) {
  __shared__ BlockMemory filters;
  convolve_depthwise(filters, GridBlock(), x, w, y, arguments, n);
}
