// Pixels of x as the depthwise kernels along the channels read them: a thread has TILE_P x TILE_Q outputs of VECTOR
// neighbouring channels, and loads the rows of x under their windows one by one. Lanes are neighbours along channels
// first.
//
// From the prelude, besides the problem: TILE_P, TILE_Q, MULTIPLIER, BLOCK_K, THREADS, and VECTOR, which divides K.
#include "lib/depthwise_tiles.cuh"
#include "lib/padded_vector.cuh"
#include "lib/user_code.cuh"

constexpr int LANES_K = BLOCK_K / VECTOR;  // threads side by side along channels

static_assert(BLOCK_K % VECTOR == 0 && THREADS % LANES_K == 0, "threads tile the channels");

// The channels of x that output channels k, k + 1, ... read, at one pixel, as a thread keeps them until it multiplies.
using Kept = typename UserKept<TX>::type;
using KeptPixel = Vector<Kept, VECTOR>;

// Zeros where there is no pixel.
__device__ __forceinline__ KeptPixel load_pixel(bool exists, const TX* pixel, int k, const UserArguments& user) {
  if constexpr (MULTIPLIER == 1) {
    KeptPixel kept = user_kept<true>(load_readonly_if<VECTOR>(exists, pixel + k * Index(X_STRIDE_C)), k, user);
    if (USER_PROLOGUE && !exists) kept = zeros<Kept, VECTOR>();
    return kept;
  }
  KeptPixel kept = zeros<Kept, VECTOR>();
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) {
    const int c = (k + i) / MULTIPLIER;
    if (exists) kept[i] = user_kept(load_readonly<1>(pixel + c * Index(X_STRIDE_C))[0], c, user);
  }
  return kept;
}

// The pixels of row `h` of x that the thread's windows meet, from column `left` on, which is at `first`.
__device__ __forceinline__ void load_row(const TX* first, Index h, Index left, int k, const UserArguments& user,
                                         KeptPixel (&pixels)[INPUT_COLUMNS]) {
  const bool row_exists = static_cast<UnsignedIndex>(h) < UnsignedIndex(H);
#pragma unroll
  for (int column = 0; column < INPUT_COLUMNS; ++column) {
    if (!meets<TILE_Q, STRIDE_W, DILATION_W, S>(column)) continue;
    const bool exists = row_exists && static_cast<UnsignedIndex>(left + column) < UnsignedIndex(W);
    pixels[column] = load_pixel(exists, first + column * Index(X_STRIDE_W), k, user);
  }
}

// Goes down the rows of x under a tile and TAP_ROWS rows of taps, from `top` on, which begins at `corner`: calls
// multiply(pixel, row, column) for the pixels that some tap of some output meets. The loads of a row start before the
// products of the row above.
template <int TAP_ROWS, class Multiply>
__device__ __forceinline__ void for_each_pixel(const TX* corner, Index top, Index left, int k,
                                               const UserArguments& user, Multiply multiply) {
  KeptPixel pixels[2][INPUT_COLUMNS];
#pragma unroll
  for (int row = -1; row < input_rows(TAP_ROWS); ++row) {
    const int next = row + 1;
    if (next < input_rows(TAP_ROWS) && meets<TILE_P, STRIDE_H, DILATION_H, TAP_ROWS>(next)) {
      load_row(corner + next * Index(X_STRIDE_H), top + next, left, k, user, pixels[next % 2]);
    }
    if (row < 0 || !meets<TILE_P, STRIDE_H, DILATION_H, TAP_ROWS>(row)) continue;
#pragma unroll
    for (int column = 0; column < INPUT_COLUMNS; ++column) {
      if (meets<TILE_Q, STRIDE_W, DILATION_W, S>(column)) multiply(pixels[row % 2][column], row, column);
    }
  }
}
