// Gradient of a convolution by its filter where groups have few channels: depthwise, above all. Any strides.
//
// A filter here is one channel of one k: its TAPS elements of dw. A block works on LANES filters, side by side as their
// channels are in memory (or one, along the pixels), and on its part of the windows of all images. A thread adds up
// TAP_TILE taps of one filter over the windows that are its own; then the block adds up its threads, and with SPLIT > 1
// parts a second kernel adds those. Every order of addition is fixed. Parameters: conv_backward_filter_direct.cpp.
#include "lib/filter_parts.cuh"
#include "lib/reduce.cuh"

constexpr int PLACES = THREADS / LANES;
constexpr int TAP_TILES = ceil_div(TAPS, TAP_TILE);
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

// Adds what one window brings to the taps from first_tap on. `x` and `dy` start with the filter's channels, `channel`
// of x.
__device__ __forceinline__ void add_window(const TX* x, int channel, const UserArguments& user, const TDY* dy,
                                           Index image, Index z, Index p, Index q, int first_tap,
                                           float (&sums)[TAP_TILE]) {
  const float gradient = to_float(
      dy[image * Index(DY_STRIDE_N) + z * Index(DY_STRIDE_Z) + p * Index(DY_STRIDE_P) + q * Index(DY_STRIDE_Q)]);
  const Index front = z * STRIDE_D - PAD_FRONT, top = p * STRIDE_H - PAD_TOP, left = q * STRIDE_W - PAD_LEFT;
  const TX* const corner = x + image * Index(X_STRIDE_N);
#pragma unroll
  for (int i = 0; i < TAP_TILE; ++i) {
    const int tap = first_tap + i;
    const Index plane = front + Index(tap / (R * S)) * DILATION_D;
    const Index row = top + Index(tap / S % R) * DILATION_H;
    const Index column = left + Index(tap % S) * DILATION_W;
    const bool inside = tap < TAPS && static_cast<UnsignedIndex>(plane) < UnsignedIndex(D) &&
                        static_cast<UnsignedIndex>(row) < UnsignedIndex(H) &&
                        static_cast<UnsignedIndex>(column) < UnsignedIndex(W);
    if (!inside) continue;
    const Index offset = plane * Index(X_STRIDE_D) + row * Index(X_STRIDE_H) + column * Index(X_STRIDE_W);
    sums[i] = fmaf(user_entered(corner[offset], channel, user), gradient, sums[i]);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    conv_backward_filter_direct(const TX* __restrict__ x, const TDY* __restrict__ dy, TDW* dw,
                                float* __restrict__ parts, float alpha, float beta, UserArguments user, long long n) {
  __shared__ float scratch[THREADS];
  const Index filter = static_cast<Index>(blockIdx.x) * LANES + static_cast<int>(threadIdx.x) % LANES;
  const int part = static_cast<int>(blockIdx.y);
  const int first_tap = TAP_TILES == 1 ? 0 : static_cast<int>(blockIdx.z) * TAP_TILE;
  const bool exists = filter < filters();
  const Index k = filter / C_PER_GROUP, c = filter % C_PER_GROUP;

  float sums[TAP_TILE] = {};
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
      add_window(x + channel * Index(X_STRIDE_C), static_cast<int>(channel), user, gradients, image, z, p, q, first_tap,
                 sums);
    }
  }
#pragma unroll
  for (int i = 0; i < TAP_TILE; ++i) {
    const float sum = add_places(sums[i], scratch);
    if (threadIdx.x >= LANES || !exists || first_tap + i >= TAPS) continue;
    leave_sum<false>(dw, parts, part, filter, first_tap + i, sum, {alpha, beta, user});
  }
}

extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)
    conv_backward_filter_direct_reduce(const float* __restrict__ parts, TDW* dw, float alpha, float beta,
                                       UserArguments user) {
  add_parts<false>(parts, dw, {alpha, beta, user});
}
