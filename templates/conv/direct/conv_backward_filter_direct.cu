// Gradient of a convolution by its filter where groups have few channels: depthwise, above all. Any strides.
//
// A filter here is one channel of one k: its TAPS elements of dw. A block works on LANES filters, side by side as their
// channels are in memory (or one, along the pixels), and on its part of the windows of all images. A thread adds up
// a tile of TILE_T x TILE_R x TILE_S taps of one filter over the windows that are its own; then the block adds up its
// threads, and with SPLIT > 1 parts a second kernel adds those. Every order of addition is fixed.
// Parameters: conv_backward_filter_direct.cpp.
#include "lib/filter_parts.cuh"
#include "lib/reduce.cuh"

constexpr int PLACES = THREADS / LANES;
// Tiles of a filter, along its rows and its columns.
constexpr int TILES_R = ceil_div<int>(R, TILE_R), TILES_S = ceil_div<int>(S, TILE_S);
using UnsignedIndex = UnsignedOf<Index>::type;

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for conv_backward_filter_simple");
static_assert(LANES == 1 || LANES == 32, "a block's threads share a filter, or each warp has one a lane");

// The sum of `value` over the threads of a block that have the same filter; right in the first LANES threads.
__device__ __forceinline__ float add_places(float value, float* scratch) {
  if constexpr (LANES == 1) {
    return block_reduce<THREADS>(value, scratch, Sum());
  } else {
    scratch[threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x < LANES) {
#pragma unroll
      for (int place = 1; place < PLACES; ++place) value += scratch[place * LANES + threadIdx.x];
    }
    __syncthreads();
    return value;
  }
}

// The first tap of a tile.
struct FirstTap {
  int plane, row, column;

  __device__ __forceinline__ explicit FirstTap(int tile)
      : plane(tile / (TILES_S * TILES_R) * TILE_T),
        row(tile / TILES_S % TILES_R * TILE_R),
        column(tile % TILES_S * TILE_S) {}
};

// Adds what one window brings to a tile of taps. `x` and `dy` start with the filter's channels, `channel` of x.
__device__ __forceinline__ void add_window(const TX* x, int channel, const UserArguments& user, const TDY* dy,
                                           Index image, Index z, Index p, Index q, const FirstTap& first,
                                           float (&sums)[TILE_T][TILE_R][TILE_S]) {
  const float gradient = to_float(
      dy[image * Index(DY_STRIDE_N) + z * Index(DY_STRIDE_Z) + p * Index(DY_STRIDE_P) + q * Index(DY_STRIDE_Q)]);
  const Index front = z * STRIDE_D - PAD_FRONT + first.plane * DILATION_D;
  const Index top = p * STRIDE_H - PAD_TOP + first.row * DILATION_H;
  const Index left = q * STRIDE_W - PAD_LEFT + first.column * DILATION_W;
  const TX* const corner = x + image * Index(X_STRIDE_N);
#pragma unroll
  for (int t = 0; t < TILE_T; ++t) {
    const Index plane = front + Index(t) * DILATION_D;
#pragma unroll
    for (int r = 0; r < TILE_R; ++r) {
      const Index row = top + Index(r) * DILATION_H;
      const bool is_row =
          static_cast<UnsignedIndex>(plane) < UnsignedIndex(D) && static_cast<UnsignedIndex>(row) < UnsignedIndex(H);
      const Index line = plane * Index(X_STRIDE_D) + row * Index(X_STRIDE_H) + left * Index(X_STRIDE_W);
#pragma unroll
      for (int s = 0; s < TILE_S; ++s) {
        const Index step = Index(s) * DILATION_W;
        if (!is_row || static_cast<UnsignedIndex>(left + step) >= UnsignedIndex(W)) continue;
        sums[t][r][s] =
            fmaf(user_entered(corner[line + step * Index(X_STRIDE_W)], channel, user), gradient, sums[t][r][s]);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    conv_backward_filter_direct(const TX* __restrict__ x, const TDY* __restrict__ dy, TDW* dw,
                                float* __restrict__ parts, float alpha, float beta, UserArguments user, long long n) {
  __shared__ float scratch[THREADS];
  const Index filter = static_cast<Index>(blockIdx.x) * LANES + static_cast<int>(threadIdx.x) % LANES;
  const int part = static_cast<int>(blockIdx.y);
  const FirstTap first(static_cast<int>(blockIdx.z));
  const bool exists = filter < filters();
  const Index k = filter / C_PER_GROUP, c = filter % C_PER_GROUP;

  float sums[TILE_T][TILE_R][TILE_S] = {};
  if (exists) {
    const Index channel = k / K_PER_GROUP * C_PER_GROUP + c;
    const TDY* const gradients = dy + k * Index(DY_STRIDE_K);
    const Index windows = images_of(n) * (Index(Z) * P * Q);
#pragma unroll 1
    for (Index i = part * PLACES + static_cast<int>(threadIdx.x) / LANES; i < windows; i += SPLIT * PLACES) {
      Index image = i;
      const Index q = take_coordinate(image, Q);
      const Index p = take_coordinate(image, P);
      const Index z = take_coordinate(image, Z);
      add_window(x + channel * Index(X_STRIDE_C), static_cast<int>(channel), user, gradients, image, z, p, q, first,
                 sums);
    }
  }
#pragma unroll
  for (int t = 0; t < TILE_T; ++t) {
#pragma unroll
    for (int r = 0; r < TILE_R; ++r) {
#pragma unroll
      for (int s = 0; s < TILE_S; ++s) {
        const float sum = add_places(sums[t][r][s], scratch);
        const int plane = first.plane + t, row = first.row + r, column = first.column + s;
        if (threadIdx.x >= LANES || !exists || plane >= T || row >= R || column >= S) continue;
        leave_sum<false>(dw, parts, part, filter, (plane * R + row) * S + column, sum, {alpha, beta, user});
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)
    conv_backward_filter_direct_reduce(const float* __restrict__ parts, TDW* dw, float alpha, float beta,
                                       UserArguments user) {
  add_parts<false>(parts, dw, {alpha, beta, user});
}
