// col2im by gathering: a thread adds up TILE_H x TILE_W neighbouring elements of a channel of y. Any strides.
//
// Neighbouring threads take neighbouring channels of y if CHANNELS_INNER, else neighbouring columns, so that a warp
// stores whole lines. All taps of a window at one pixel stand side by side where channels do: the elements of a tile,
// which need them all, read a line together. What is outside x is loaded from its edge, so that no load waits for a
// branch, and replaced by 0. Each sum is in the order of taps. STORE divides W. Parameters: col2im_gather.cpp.
#include "lib/column_sums.cuh"
#include "lib/store.cuh"
#include "lib/window_outputs.cuh"

static_assert(TILE_W % STORE == 0, "a store must lie inside a tile");

// Taps that an element may have along each axis.
constexpr int HELD_D = ceil_div<int>(T, TAP_STEP<STRIDE_D, DILATION_D, T>);
constexpr int HELD_H = ceil_div<int>(R, TAP_STEP<STRIDE_H, DILATION_H, R>);
constexpr int HELD_W = ceil_div<int>(S, TAP_STEP<STRIDE_W, DILATION_W, S>);
constexpr int STEPS_H = HELD_H <= 4 ? HELD_H : 2, STEPS_W = HELD_W <= 8 ? HELD_W : 4;  // that are unrolled

// Tap number `step` of those that meet an output at a position, along one axis, and this output.
struct HeldBy {
  Index tap, output;
  bool exists;

  __device__ __forceinline__ HeldBy(Index position, Index first, Index step, Index taps, Index pad, Index stride,
                                    Index dilation, Index outputs)
      : tap(first + step) {
    const Index distance = position + pad - tap * dilation;
    exists = tap < taps && distance >= 0 && distance / stride < outputs;
    if (!exists) tap = 0;
    output = exists ? distance / stride : 0;
  }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    col2im_gather(const TX* __restrict__ x, TY* __restrict__ y, float alpha, float beta, UserArguments user,
                  long long n) {
  Index index = global_thread<THREADS, Index>();
  if (index >= images_of(n) * Index(C) * D * TILES_H * TILES_W) return;
  Index c = 0;
  if constexpr (CHANNELS_INNER) c = take_coordinate(index, C);
  const Index w0 = take_coordinate(index, TILES_W) * TILE_W;
  const Index h0 = take_coordinate(index, TILES_H) * TILE_H;
  const Index d = take_coordinate(index, D);
  if constexpr (!CHANNELS_INNER) c = take_coordinate(index, C);

  float sums[TILE_H][TILE_W] = {};
  const Index first_t = first_tap_at<STRIDE_D, DILATION_D, T>(d, PAD_FRONT);
#pragma unroll 1
  for (int a = 0; a < HELD_D; ++a) {
    const HeldBy plane(d, first_t, a * TAP_STEP<STRIDE_D, DILATION_D, T>, T, PAD_FRONT, STRIDE_D, DILATION_D, Z);
    if (!plane.exists) continue;
#pragma unroll
    for (int i = 0; i < TILE_H; ++i) {
      const Index first_r = first_tap_at<STRIDE_H, DILATION_H, R>(h0 + i, PAD_TOP);
#pragma unroll STEPS_H
      for (int b = 0; b < HELD_H; ++b) {
        const HeldBy row(h0 + i, first_r, b * TAP_STEP<STRIDE_H, DILATION_H, R>, R, PAD_TOP, STRIDE_H, DILATION_H, P);
        const Index k = ((c * T + plane.tap) * R + row.tap) * S;
        const TX* const line = x + ColumnsOfX::at(index, k, plane.output, row.output, 0);
#pragma unroll STEPS_W
        for (int e = 0; e < HELD_W; ++e) {
#pragma unroll
          for (int j = 0; j < TILE_W; ++j) {
            const Index first_s = first_tap_at<STRIDE_W, DILATION_W, S>(w0 + j, PAD_LEFT);
            const HeldBy column(w0 + j, first_s, e * TAP_STEP<STRIDE_W, DILATION_W, S>, S, PAD_LEFT, STRIDE_W,
                                DILATION_W, Q);
            const Index offset = column.tap * Index(X_STRIDE_K) + column.output * Index(X_STRIDE_Q);
            const float term = to_float(load_readonly<1>(line + offset)[0]);
            sums[i][j] += row.exists && column.exists ? term : 0.0f;
          }
        }
      }
    }
  }

#pragma unroll
  for (int i = 0; i < TILE_H; ++i) {
    if (h0 + i >= H) break;
    const Index offset = ImagesOfY::at(index, c, d, h0 + i, w0);
#pragma unroll
    for (int j = 0; j < TILE_W; j += STORE) {
      if (w0 + j >= W) break;
      float run[STORE];
#pragma unroll
      for (int v = 0; v < STORE; ++v) run[v] = sums[i][j + v];
      store_run<false>(y, offset + j * Index(Y_STRIDE_W), run, static_cast<int>(c), {alpha, beta, user});
    }
  }
}
