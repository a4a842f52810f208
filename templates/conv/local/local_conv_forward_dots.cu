// Local convolution of few pixels a region, as of a small batch: dot products of filters with windows, which read every
// filter once, in the order in which its elements stand in memory.
//
// A block makes PIXELS pixels of WARPS * WARP_FILTERS channels of one group and region, CHUNK elements of the filters
// at a time. Its threads gather the windows of the pixels into shared memory while their loads of the filters are under
// way; then every warp multiplies its own filters with the windows, and at the end its lanes add up in a fixed order.
//
// From the prelude, besides the problem: those five, and W_RUN, the elements that one access of w moves.
// Parameters: local_conv_forward_dots.cpp.
#include "lib/reduce.cuh"
#include "lib/windows.cuh"

constexpr int THREADS = WARPS * 32;
constexpr int BLOCK_FILTERS = WARPS * WARP_FILTERS;
constexpr int FILTER_TILES = ceil_div(K_PER_GROUP, BLOCK_FILTERS);  // of one group
constexpr int RUNS = CHUNK / (32 * W_RUN);                          // that a lane has of a chunk of one filter

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for local_conv_forward_simple");
static_assert(REGIONS_OF_PIXELS, "blocks are those of one region");
static_assert(CHUNK % (32 * W_RUN) == 0, "lanes tile a chunk");
static_assert((CHANNELS_INNER ? C_PER_GROUP : FILTER_ELEMENTS) % W_RUN == 0, "an access stays in its filter");
static_assert(WARP_FILTERS * PIXELS <= 32, "a lane finishes at most one sum");

using Windows = float[PIXELS][CHUNK];

// A warp's filters, a chunk at a time, in registers.
class WarpFilters {
 public:
  __device__ __forceinline__ WarpFilters(const TW* w, const Region& region, int group, int first_k) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int f = 0; f < WARP_FILTERS; ++f) {
      exists_[f] = first_k + f < K_PER_GROUP;
      filters_[f] = w + (filters_of(region) + first_filter_element(Index(group) * K_PER_GROUP + first_k + f));
    }
    first_ = lane * W_RUN;
  }

  // Starts loading the chunk that begins with element `first`.
  __device__ __forceinline__ void fetch(int first) {
#pragma unroll
    for (int r = 0; r < RUNS; ++r) {
      const int element = first + first_ + r * (32 * W_RUN);
      const Index offset = filter_offset(element);
#pragma unroll
      for (int f = 0; f < WARP_FILTERS; ++f) {
        values_[r][f] =
            exists_[f] && element < FILTER_ELEMENTS ? load_readonly<W_RUN>(filters_[f] + offset) : zeros<TW, W_RUN>();
      }
    }
  }

  __device__ __forceinline__ void multiply(const Windows& windows, float (&sums)[WARP_FILTERS][PIXELS]) const {
#pragma unroll
    for (int r = 0; r < RUNS; ++r) {
#pragma unroll
      for (int m = 0; m < PIXELS; ++m) {
        const Vector<float, W_RUN> run = load<W_RUN>(&windows[m][first_ + r * (32 * W_RUN)]);
#pragma unroll
        for (int f = 0; f < WARP_FILTERS; ++f) {
#pragma unroll
          for (int i = 0; i < W_RUN; ++i) sums[f][m] = fmaf(to_float(values_[r][f][i]), run[i], sums[f][m]);
        }
      }
    }
  }

 private:
  const TW* filters_[WARP_FILTERS];
  bool exists_[WARP_FILTERS];
  int first_;  // element of this lane in a chunk
  Vector<TW, W_RUN> values_[RUNS][WARP_FILTERS];
};

// Fills `windows` with what lies under the filters' elements from `first` on, 0 outside x.
__device__ __forceinline__ void gather(Windows& windows, const TX* x, const Window (&pixels)[PIXELS], int group,
                                       int first, const UserArguments& user) {
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < CHUNK; i += THREADS) {
    int c = first + i;
    const bool exists = c < FILTER_ELEMENTS;
    int number = c;
    if constexpr (CHANNELS_INNER) c = take_coordinate(number, C_PER_GROUP);
    const int s = take_coordinate(number, S);
    const int r = take_coordinate(number, R);
    const int t = take_coordinate(number, T);
    if constexpr (!CHANNELS_INNER) c = number;
    const Tap tap(t, r, s);
    const Index distance = c * Index(X_STRIDE_C) + tap.offset();
#pragma unroll
    for (int m = 0; m < PIXELS; ++m) {
      const bool inside = exists && pixels[m].holds(tap);
      windows[m][i] = inside ? user_entered(x[pixels[m].offset + distance], group * C_PER_GROUP + c, user) : 0.0f;
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    local_conv_forward_dots(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias,
                            const TResidual* residual, float alpha, float beta, float clip_lo, float clip_hi,
                            UserArguments user, long long n) {
  __shared__ alignas(16) Windows windows;
  const Region region(static_cast<Index>(blockIdx.z));
  const int group = static_cast<int>(blockIdx.y) / FILTER_TILES;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int first_k = static_cast<int>(blockIdx.y) % FILTER_TILES * BLOCK_FILTERS + warp * WARP_FILTERS;
  const Index first_pixel = static_cast<Index>(blockIdx.x) * PIXELS;
  const Index count = images_of(n) * PIXELS_PER_IMAGE;

  Window pixels[PIXELS];
#pragma unroll
  for (int m = 0; m < PIXELS; ++m) {
    const Index pixel = first_pixel + m;
    pixels[m].place(region, group, pixel, pixel < count && has_pixel(region, pixel));
  }
  WarpFilters filters(w, region, group, first_k);
  float sums[WARP_FILTERS][PIXELS] = {};
#pragma unroll 1
  for (int first = 0; first < FILTER_ELEMENTS; first += CHUNK) {
    filters.fetch(first);
    gather(windows, x, pixels, group, first, user);
    __syncthreads();
    filters.multiply(windows, sums);
    __syncthreads();
  }

  float result[1];
#pragma unroll
  for (int f = 0; f < WARP_FILTERS; ++f) {
#pragma unroll
    for (int m = 0; m < PIXELS; ++m) {
      const float sum = lanes_reduce<32>(sums[f][m], Sum());
      if (lane == f * PIXELS + m) result[0] = sum;
    }
  }
  const int in_group = first_k + lane / PIXELS;
  const Index pixel = first_pixel + lane % PIXELS;
  if (lane >= WARP_FILTERS * PIXELS || in_group >= K_PER_GROUP) return;
  if (pixel >= count || !has_pixel(region, pixel)) return;
  OutputPixel place(pixel);
  place.move_into(region);
  finish_outputs<false>(y, place, Index(group) * K_PER_GROUP + in_group, result,
                        {bias, residual, alpha, beta, clip_lo, clip_hi, user});
}
