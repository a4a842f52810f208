// Gradient of a depthwise convolution by its filters, along the channels: every channel of x has MULTIPLIER filters of
// its own. Any strides; fast where channels stand side by side.
//
// A block has BLOCK_K filters and its part of the tiles of TILE_P x TILE_Q outputs of all images. A thread has TAP_ROWS
// rows of VECTOR neighbouring filters, whose sums stay in its registers while it goes from tile to tile. It keeps dy of
// a tile and goes down the rows of x under it (lib/depthwise_rows.cuh): every element of either is converted once and
// serves all of the thread's taps that bring them together. Then the block adds up its threads, and with SPLIT > 1
// parts a second kernel adds those. Every order of addition is fixed.
//
// From the prelude, besides the problem: TILE_P, TILE_Q, TAP_ROWS, VECTOR, BLOCK_K, THREADS and SPLIT
// (conv_backward_filter_depthwise_nhwc.cpp).
#include "lib/depthwise_gradient.cuh"
#include "lib/depthwise_rows.cuh"

// Threads side by side: along channels, then along tiles, then along rows of taps.
constexpr int TAP_GROUPS = ceil_div(R, TAP_ROWS);
constexpr int PLACES = THREADS / (LANES_K * TAP_GROUPS);

static_assert(THREADS % (LANES_K * TAP_GROUPS) == 0, "threads tile channels, tiles and taps");

using Sums = float[T][TAP_ROWS][S][VECTOR];
using TileOfGradients = float[TILE_P][TILE_Q][VECTOR];

constexpr int TAPS_OF_THREAD = T * TAP_ROWS * S;
// Taps that the block adds up at a time, for each thread: the sums of all threads fit into 16 KB.
constexpr int TAPS_AT_ONCE = smaller(TAPS_OF_THREAD, larger(1, 16384 / (THREADS * VECTOR * 4)));

__device__ __forceinline__ void load_gradients(const TDY* first, const Existing& existing, TileOfGradients& gradients) {
#pragma unroll
  for (int p = 0; p < TILE_P; ++p) {
#pragma unroll
    for (int q = 0; q < TILE_Q; ++q) {
      const TDY* const address = first + (p * Index(DY_STRIDE_P) + q * Index(DY_STRIDE_Q));
      const Vector<TDY, VECTOR> pixel = load_readonly_if<VECTOR>(existing.has(p, q), address);
      to_floats(pixel, gradients[p][q]);
    }
  }
}

// sums += the products of the input element at (row, column) under the tile and the thread's taps, on plane `t` of the
// windows. An output that does not exist is left out: its zero times an infinity would not be zero.
__device__ __forceinline__ void multiply(const KeptPixel& kept, int t, int row, int column, const Existing& existing,
                                         const TileOfGradients& gradients, Sums& sums) {
  float values[VECTOR];
  to_floats(kept, values);
#pragma unroll
  for (int p = 0; p < TILE_P; ++p) {
    const int down = row - p * STRIDE_H;
    if (down < 0 || down % DILATION_H != 0 || down / DILATION_H >= TAP_ROWS) continue;
#pragma unroll
    for (int q = 0; q < TILE_Q; ++q) {
      const int right = column - q * STRIDE_W;
      if (right < 0 || right % DILATION_W != 0 || right / DILATION_W >= S) continue;
      float(&sum)[VECTOR] = sums[t][down / DILATION_H][right / DILATION_W];
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) {
        if (existing.has(p, q)) sum[i] = fmaf(values[i], gradients[p][q][i], sum[i]);
      }
    }
  }
}

// Adds what tile number `tile` of all images brings to the filters from k on, in the rows from first_r on.
__device__ __forceinline__ void add_tile(const TX* x, const TDY* dy, Index tile, int k, int first_r,
                                         const UserArguments& user, Sums& sums) {
  const TilePlace at(tile);
  const Index top = at.top + first_r * Index(DILATION_H);
  const Existing existing(at.first_p, at.first_q);
  TileOfGradients gradients;
  load_gradients(dy + Output::at(at.image, k, at.z, at.first_p, at.first_q), existing, gradients);
#pragma unroll
  for (int t = 0; t < T; ++t) {
    const Index d = at.front + Index(t) * DILATION_D;
    if (static_cast<UnsignedIndex>(d) >= UnsignedIndex(D)) continue;
    const TX* const corner = x + Input::at(at.image, 0, d, top, at.left);
    for_each_pixel<TAP_ROWS>(corner, top, at.left, k, user, [&](const KeptPixel& pixel, int row, int column) {
      multiply(pixel, t, row, column, existing, gradients, sums);
    });
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    conv_backward_filter_depthwise_nhwc(const TX* __restrict__ x, const TDY* __restrict__ dy, TDW* dw,
                                        float* __restrict__ parts, float alpha, float beta, UserArguments user,
                                        long long n) {
  __shared__ alignas(16) float of_threads[TAP_GROUPS][PLACES][TAPS_AT_ONCE][BLOCK_K];
  const int first_k = static_cast<int>(blockIdx.x) * BLOCK_K, part = static_cast<int>(blockIdx.y);
  const int k_in_block = static_cast<int>(threadIdx.x) % LANES_K * VECTOR;
  const int place = static_cast<int>(threadIdx.x) / LANES_K % PLACES;
  const int group = static_cast<int>(threadIdx.x) / (LANES_K * PLACES);

  Sums sums = {};
  if (first_k + k_in_block < K) {
    const TilesOfPart<PLACES> tiles(part, images_of(n) * (Index(Z) * p_tiles() * q_tiles()));
#pragma unroll 1
    for (Index tile = tiles.first + place; tile < tiles.end; tile += PLACES) {
      add_tile(x, dy, tile, first_k + k_in_block, group * TAP_ROWS, user, sums);
    }
  }

#pragma unroll
  for (int first = 0; first < TAPS_OF_THREAD; first += TAPS_AT_ONCE) {
    if (first != 0) __syncthreads();
#pragma unroll
    for (int i = 0; i < TAPS_AT_ONCE; ++i) {
      const int number = first + i;
      if (number >= TAPS_OF_THREAD) break;
      Vector<float, VECTOR> values;
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) values[j] = sums[number / (TAP_ROWS * S)][number / S % TAP_ROWS][number % S][j];
      store<VECTOR>(&of_threads[group][place][i][k_in_block], values);
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < TAP_GROUPS * TAPS_AT_ONCE * BLOCK_K; i += THREADS) {
      const int k = i % BLOCK_K, at = i / BLOCK_K % TAPS_AT_ONCE, from_group = i / (BLOCK_K * TAPS_AT_ONCE);
      const int number = first + at, r = from_group * TAP_ROWS + number / S % TAP_ROWS;
      if (number >= TAPS_OF_THREAD || r >= R || first_k + k >= K) continue;
      float sum = 0.0f;
#pragma unroll 8
      for (int from = 0; from < PLACES; ++from) sum += of_threads[from_group][from][at][k];
      const int tap = (number / (TAP_ROWS * S) * R + r) * S + number % S;
      leave_sum<true>(dw, parts, part, first_k + k, tap, sum, {alpha, beta, user});
    }
  }
}

extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)
    conv_backward_filter_depthwise_nhwc_reduce(const float* __restrict__ parts, TDW* dw, float alpha, float beta,
                                               UserArguments user) {
  add_parts<true>(parts, dw, {alpha, beta, user});
}
