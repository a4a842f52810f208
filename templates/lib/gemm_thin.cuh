// Products where M or N is a few: a matrix times a few vectors, bound by reading the matrix once. Any strides, any
// batch. The operand with the few rows or columns is called thin, the other one wide; its lines are the columns of b or
// the rows of a.
//
// ALONG_K: lanes run along K, VECTOR elements each, and SHARE warps of a block share a line. Otherwise lanes run along
// the lines, VECTOR lines each, and the warps of a block share K. Sums of warps are added in their order.
// SPLIT_K blocks share a line.
//
// From the prelude, besides lib/gemm_batch.cuh: THIN_IS_M, ALONG_K, THIN_VECTOR (whether the thin operand allows
// vectors along K), VECTOR, WARPS, SHARE, SPLIT_K.
#include "lib/gemm_batch.cuh"
#include "lib/reduce.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for gemm_simple");
static_assert(!DYNAMIC_N, "rows are a constant");
static_assert(WARPS % SHARE == 0 && (ALONG_K || SHARE == WARPS), "warps share lines");

constexpr int THREADS = 32 * WARPS;
constexpr int ROWS = THIN_IS_M ? W : K;  // of the thin operand
constexpr int LINES = THIN_IS_M ? K : W;
constexpr int LENGTH = C;  // of a sum: the K of the product
constexpr int BLOCK_LINES = ALONG_K ? WARPS / SHARE : 32 * VECTOR;
// Elements that the warps of a line take at a time, and those of a block: all but the last take whole steps.
constexpr int STEP = SHARE * (ALONG_K ? 32 * VECTOR : 1);
constexpr int BLOCK_LENGTH = ceil_div(ceil_div(LENGTH, STEP), SPLIT_K) * STEP;

constexpr long long THIN_ROW = THIN_IS_M ? X_STRIDE_W : W_STRIDE_K, THIN_K = THIN_IS_M ? X_STRIDE_C : W_STRIDE_C;
constexpr long long WIDE_LINE = THIN_IS_M ? W_STRIDE_K : X_STRIDE_W, WIDE_K = THIN_IS_M ? W_STRIDE_C : X_STRIDE_C;

// An element of the operand that IS_X says, of row or column `k`: x passes through the user's prologue.
template <bool IS_X, class T>
__device__ __forceinline__ float factor(T element, int k, const UserArguments& user) {
  if constexpr (IS_X) return user_entered(element, k, user);
  return to_float(element);
}

// sums[r] of one line, over the elements from `first` to `end`, VECTOR at a time and STEP apart.
template <class Thin, class Wide>
__device__ __forceinline__ void sum_along_k(const Thin* thin, const Wide* line, int first, int end,
                                            const UserArguments& user, float (&sums)[ROWS][1]) {
#pragma unroll 4
  for (int k = first; k < end; k += STEP) {
    const Vector<Wide, VECTOR> wide = load_readonly<VECTOR>(line + k * Index(WIDE_K));
    float factors[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) factors[i] = factor<!THIN_IS_M>(wide[i], k + i, user);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const Thin* const from = thin + (r * Index(THIN_ROW) + k * Index(THIN_K));
      Vector<Thin, VECTOR> row;
      if constexpr (THIN_VECTOR) row = load_readonly<VECTOR>(from);
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) {
        const Thin element = THIN_VECTOR ? row[i] : load_readonly<1>(from + i * Index(THIN_K))[0];
        sums[r][0] = fmaf(factor<THIN_IS_M>(element, k + i, user), factors[i], sums[r][0]);
      }
    }
  }
}

// sums[r][i] of VECTOR lines from `lines` on, over every STEP-th element from `first` to `end`.
template <class Thin, class Wide>
__device__ __forceinline__ void sum_along_lines(const Thin* thin, const Wide* lines, int first, int end,
                                                const UserArguments& user, float (&sums)[ROWS][VECTOR]) {
#pragma unroll 8
  for (int k = first; k < end; k += STEP) {
    const Vector<Wide, VECTOR> wide = load_readonly<VECTOR>(lines + k * Index(WIDE_K));
    float factors[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) factors[i] = factor<!THIN_IS_M>(wide[i], k, user);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const Thin element = load_readonly<1>(thin + (r * Index(THIN_ROW) + k * Index(THIN_K)))[0];
      const float row = factor<THIN_IS_M>(element, k, user);
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) sums[r][i] = fmaf(row, factors[i], sums[r][i]);
    }
  }
}

// Sums of a block's warps on their way into c: of line `line` of the block by the warps that have a part in it.
struct Parts {
  float values[ROWS][SHARE][BLOCK_LINES];
};

__device__ __forceinline__ void finish_sum(TY* c, int r, int line, float sum, const EpilogueArguments& arguments) {
  const float sums[1] = {sum};
  const Index m = THIN_IS_M ? r : line;
  finish_outputs<true>(c, OutputPixel(m), Index(THIN_IS_M ? line : r), sums, arguments);
}

// `finish(r, line, sum)`: takes the sum of an element.
template <class Thin, class Wide, class Finish>
__device__ __forceinline__ void multiply(const Thin* thin, const Wide* wide, const UserArguments& user, Finish finish) {
  __shared__ Parts parts;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int first_line = static_cast<int>(blockIdx.x) * BLOCK_LINES;
  const int share = warp % SHARE;
  const int start = static_cast<int>(blockIdx.y) * BLOCK_LENGTH, end = smaller(start + BLOCK_LENGTH, LENGTH);
  if constexpr (ALONG_K) {
    const int line = warp / SHARE;
    float sums[ROWS][1] = {};
    if (first_line + line < LINES) {
      sum_along_k(thin, wide + (first_line + line) * Index(WIDE_LINE), start + (share * 32 + lane) * VECTOR, end, user,
                  sums);
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const float sum = lanes_reduce<32>(sums[r][0], Sum());
      if (lane == 0) parts.values[r][share][line] = sum;
    }
  } else {
    float sums[ROWS][VECTOR] = {};
    const int line = lane * VECTOR;
    if (first_line + line < LINES) {
      sum_along_lines(thin, wide + (first_line + line) * Index(WIDE_LINE), start + share, end, user, sums);
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) parts.values[r][share][line + i] = sums[r][i];
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < ROWS * BLOCK_LINES; i += THREADS) {
    const int r = i / BLOCK_LINES, line = i % BLOCK_LINES;
    if (first_line + line >= LINES) continue;
    float sum = 0.0f;
#pragma unroll
    for (int s = 0; s < SHARE; ++s) sum += parts.values[r][s][line];
    finish(r, first_line + line, sum);
  }
}

template <class Finish>
__device__ __forceinline__ void multiply_product(const TX* a, const TW* b, int product, const UserArguments& user,
                                                 Finish finish) {
  const TX* const x = x_of_product(a, product);
  const TW* const w = w_of_product(b, product);
  if constexpr (THIN_IS_M) {
    multiply(x, w, user, finish);
  } else {
    multiply(w, x, user, finish);
  }
}
