// Depthwise convolution along the pixels: every channel of x has MULTIPLIER filters of its own. Any strides; fast where
// pixels of a row stand side by side.
//
// A thread computes TILE_P x TILE_Q outputs of one channel of one image. It goes down the rows of x that they need
// (lib/depthwise_segments.cuh), and every element serves all taps and outputs that meet there.
//
// From the prelude, besides the problem: TILE_P, TILE_Q, THREADS, MULTIPLIER, SHIFT, X_RUN, and Y_RUN, which divides Q
// (conv/depthwise/depthwise_nchw.cpp).
#include "lib/conv_operands.cuh"
#include "lib/depthwise_segments.cuh"

static_assert(TILE_Q % Y_RUN == 0, "a store stays in its tile");

// Tap plane t of a filter.
__device__ __forceinline__ void load_filter(const TW* w, int t, float (&filter)[R][S]) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
#pragma unroll
    for (int s = 0; s < S; ++s) {
      const Index offset = Index(MIRRORED ? T - 1 - t : t) * Index(W_STRIDE_T) +
                           Index(MIRRORED ? R - 1 - r : r) * Index(W_STRIDE_R) +
                           Index(MIRRORED ? S - 1 - s : s) * Index(W_STRIDE_S);
      filter[r][s] = to_float(load_readonly<1>(w + offset)[0]);
    }
  }
}

// sums += the products of input row number `row` of the thread.
__device__ __forceinline__ void multiply(const Segment& segment, int row, const float (&filter)[R][S],
                                         float (&sums)[TILE_P][TILE_Q]) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int down = row - r * DILATION_H;
    if (down < 0 || down % STRIDE_H != 0 || down / STRIDE_H >= TILE_P) continue;
#pragma unroll
    for (int s = 0; s < S; ++s) {
#pragma unroll
      for (int q = 0; q < TILE_Q; ++q) {
        const int at = SHIFT + q * STRIDE_W + s * DILATION_W;
        sums[down / STRIDE_H][q] = fmaf(segment.values[at], filter[r][s], sums[down / STRIDE_H][q]);
      }
    }
  }
}

__device__ __forceinline__ void convolve_depthwise(const GridBlock& block, const TX* x, const TW* w, TY* y,
                                                   const EpilogueArguments& arguments, long long n) {
  Index image = static_cast<Index>(block.x) * THREADS + static_cast<Index>(threadIdx.x);
  if (image >= images_of(n) * K * (Index(Z) * p_tiles() * q_tiles())) return;
  const Index first_q = take_coordinate(image, q_tiles()) * TILE_Q;
  const Index first_p = take_coordinate(image, p_tiles()) * TILE_P;
  const Index z = take_coordinate(image, Z);
  const Index k = take_coordinate(image, K);
  const Index front = z * STRIDE_D - PAD_FRONT;
  const Index top = first_p * STRIDE_H - PAD_TOP, left = first_q * STRIDE_W - PAD_LEFT - SHIFT;

  float sums[TILE_P][TILE_Q] = {};
#pragma unroll 1
  for (int t = 0; t < (MULTIPLIES ? T : 0); ++t) {
    const Index d = front + Index(t) * DILATION_D;
    if (static_cast<UnsignedIndex>(d) >= UnsignedIndex(D)) continue;
    float filter[R][S];
    load_filter(w + first_filter_element(k), t, filter);
    const TX* const plane = x + Input::at(image, k / MULTIPLIER, d, 0, 0);
#pragma unroll
    for (int row = 0; row < input_rows(R); ++row) {
      const Index h = top + row;
      const Segment segment(plane + h * Index(X_STRIDE_H), left, static_cast<UnsignedIndex>(h) < UnsignedIndex(H),
                            static_cast<int>(k / MULTIPLIER), arguments.user);
      multiply(segment, row, filter, sums);
    }
  }

#pragma unroll
  for (int p = 0; p < TILE_P; ++p) {
    if (P % TILE_P != 0 && first_p + p >= P) break;
#pragma unroll
    for (int q = 0; q < TILE_Q; q += Y_RUN) {
      if (Q % TILE_Q != 0 && first_q + q >= Q) break;
      float run[Y_RUN];
#pragma unroll
      for (int i = 0; i < Y_RUN; ++i) run[i] = sums[p][q + i];
      finish_outputs<false>(y, OutputPixel(image, z, first_p + p, first_q + q), k, run, arguments);
    }
  }
}
