// Convolution of few channels by large windows, on f32 lanes: depthwise, above all. Any layout; neighbouring columns of
// outputs and of taps meet neighbouring columns of x.
//
// A block computes BLOCK_P x BLOCK_Q outputs of one channel of one image. For each channel and plane of a filter it
// stages the part of x under its windows, and the taps, in shared memory as f32. A thread has TILE_P rows of RUN
// columns of outputs. It goes along a row of taps RUN at a time: each element of x that it loads serves RUN taps and
// outputs.
//
//   taps of a row       0 1 2 3 | 4 5 6 7 | ...       a step: 4 taps, 4 columns of outputs, 7 elements of x, of which
//   x of a thread   0 1 2 3 4 5 6 7 8 9 ...           4 are new and 4 were loaded in the step before
//
// From the prelude, besides the problem: LANES_Q, LANES_P, THREADS, TILE_P, and Y_RUN, which divides RUN and Q
// (conv/depthwise/depthwise_windows.cpp).
#include "lib/block_memory.cuh"
#include "lib/conv_operands.cuh"

constexpr int RUN = 4;
constexpr int BLOCK_Q = LANES_Q * RUN, BLOCK_P = LANES_P * TILE_P;
constexpr int PATCH_ROWS = (BLOCK_P - 1) * STRIDE_H + (R - 1) * DILATION_H + 1;
constexpr int TAP_PITCH = ceil_div<int>(S, RUN) * RUN;
constexpr int PATCH_PITCH = BLOCK_Q + TAP_PITCH;

static_assert(STRIDE_W == 1 && (DILATION_W == 1 || S == 1), "neighbouring outputs and taps meet neighbours in x");
static_assert(RUN % Y_RUN == 0, "a store stays in a thread's run");

__device__ __forceinline__ Index q_blocks() {
  return ceil_div<Index>(Q, BLOCK_Q);
}
__device__ __forceinline__ Index p_blocks() {
  return ceil_div<Index>(P, BLOCK_P);
}

struct BlockMemory {
  alignas(16) float patch[PATCH_ROWS][PATCH_PITCH];
  alignas(16) float taps[R][TAP_PITCH];

  // The plane of x at `plane`, of channel `channel`, from row `top` and column `left` on; zero outside the image.
  __device__ __forceinline__ void fill_patch(const TX* plane, Index top, Index left, int channel,
                                             const UserArguments& user) {
    for (int i = static_cast<int>(threadIdx.x); i < PATCH_ROWS * PATCH_PITCH; i += THREADS) {
      const int row = i / PATCH_PITCH, column = i % PATCH_PITCH;
      const Index h = top + row, w = left + column;
      const bool inside =
          static_cast<UnsignedIndex>(h) < UnsignedIndex(H) && static_cast<UnsignedIndex>(w) < UnsignedIndex(W);
      patch[row][column] =
          inside ? user_entered(plane[h * Index(X_STRIDE_H) + w * Index(X_STRIDE_W)], channel, user) : 0.0f;
    }
  }

  // A plane of taps in the order in which x meets them; zero behind each row.
  __device__ __forceinline__ void fill_taps(const TW* plane) {
    for (int i = static_cast<int>(threadIdx.x); i < R * TAP_PITCH; i += THREADS) {
      const int r = i / TAP_PITCH, s = i % TAP_PITCH;
      const int row = MIRRORED ? R - 1 - r : r, column = MIRRORED ? S - 1 - s : s;
      taps[r][s] = s < S ? to_float(plane[row * Index(W_STRIDE_R) + column * Index(W_STRIDE_S)]) : 0.0f;
    }
  }
};

// sums += the products of COUNT taps with the elements of x that lie under them in RUN neighbouring windows.
template <int COUNT>
__device__ __forceinline__ void multiply(const Vector<float, RUN>& taps, const Vector<float, RUN>& x,
                                         const Vector<float, RUN>& next, float (&sums)[RUN]) {
#pragma unroll
  for (int s = 0; s < COUNT; ++s) {
#pragma unroll
    for (int q = 0; q < RUN; ++q) sums[q] = fmaf(q + s < RUN ? x[q + s] : next[q + s - RUN], taps[s], sums[q]);
  }
}

// sums += the products of all that is staged.
__device__ __forceinline__ void multiply_plane(const BlockMemory& memory, int first_row, int first_column,
                                               float (&sums)[TILE_P][RUN]) {
  constexpr int WHOLE = S / RUN * RUN, REST = S - WHOLE;
#pragma unroll 1
  for (int r = 0; r < R; ++r) {
    const float* rows[TILE_P];
    Vector<float, RUN> x[TILE_P];
#pragma unroll
    for (int p = 0; p < TILE_P; ++p) {
      rows[p] = &memory.patch[(first_row + p) * STRIDE_H + r * DILATION_H][first_column];
      x[p] = load<RUN>(rows[p]);
    }
#pragma unroll 4
    for (int s = 0; s < WHOLE; s += RUN) {
      const Vector<float, RUN> taps = load<RUN>(&memory.taps[r][s]);
#pragma unroll
      for (int p = 0; p < TILE_P; ++p) {
        const Vector<float, RUN> next = load<RUN>(rows[p] + s + RUN);
        multiply<RUN>(taps, x[p], next, sums[p]);
        x[p] = next;
      }
    }
    if constexpr (REST > 0) {
      const Vector<float, RUN> taps = load<RUN>(&memory.taps[r][WHOLE]);
#pragma unroll
      for (int p = 0; p < TILE_P; ++p) {
        multiply<REST>(taps, x[p], load<RUN>(rows[p] + WHOLE + RUN), sums[p]);
      }
    }
  }
}

__device__ __forceinline__ void convolve_windows(const TX* x, const TW* w, TY* y, const EpilogueArguments& arguments) {
  BlockMemory& memory = block_memory<BlockMemory>();
  Index image = static_cast<Index>(blockIdx.x);
  const Index block_q = take_coordinate(image, q_blocks()) * BLOCK_Q;
  const Index block_p = take_coordinate(image, p_blocks()) * BLOCK_P;
  const Index z = take_coordinate(image, Z);
  const Index k = take_coordinate(image, K);
  const int first_column = static_cast<int>(threadIdx.x) % LANES_Q * RUN;
  const int first_row = static_cast<int>(threadIdx.x) / LANES_Q * TILE_P;

  const Index group = k / K_PER_GROUP;
  const TX* const channels = x + group * Index(X_STRIDE_G);
  const int first = static_cast<int>(IMAGES_ARE_CHANNELS ? group * N + image : group * C_PER_GROUP);
  const TW* const filter = w + first_filter_element(k);
  const Index front = z * STRIDE_D - PAD_FRONT, top = block_p * STRIDE_H - PAD_TOP, left = block_q - PAD_LEFT;
  float sums[TILE_P][RUN] = {};
#pragma unroll 1
  for (Index c = 0; c < (MULTIPLIES ? C_PER_GROUP : 0); ++c) {
#pragma unroll 1
    for (int t = 0; t < T; ++t) {
      const Index d = front + Index(t) * DILATION_D;
      if (static_cast<UnsignedIndex>(d) >= UnsignedIndex(D)) continue;
      __syncthreads();
      memory.fill_patch(channels + Input::at(image, c, d, 0, 0), top, left, channel_at(first, static_cast<int>(c)),
                        arguments.user);
      memory.fill_taps(filter + (c * Index(W_STRIDE_C) + Index(MIRRORED ? T - 1 - t : t) * Index(W_STRIDE_T)));
      __syncthreads();
      multiply_plane(memory, first_row, first_column, sums);
    }
  }

#pragma unroll
  for (int p = 0; p < TILE_P; ++p) {
    if (block_p + first_row + p >= P) break;
#pragma unroll
    for (int q = 0; q < RUN; q += Y_RUN) {
      if (block_q + first_column + q >= Q) break;
      float run[Y_RUN];
#pragma unroll
      for (int i = 0; i < Y_RUN; ++i) run[i] = sums[p][q + i];
      finish_outputs<false>(y, OutputPixel(image, z, block_p + first_row + p, block_q + first_column + q), k, run,
                            arguments);
    }
  }
}
