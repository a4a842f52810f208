// The gradient of a bias by whole blocks: a block sums CHANNELS channels over its part of the pixels of all images, its
// threads are LANES_K channels (or runs of them) by PLACES pixels (or runs of them). With SPLIT > 1 parts, a second
// kernel adds them in order. Every order of addition is fixed. Any strides. RUN divides the channels, or the pixels of
// an image. Parameters: conv_backward_bias_split.cpp.
//
// parts: [SPLIT][K] f32.
#include "lib/bias_gradient.cuh"
#include "lib/vector.cuh"

constexpr int CHANNELS = LANES_K * (ALONG_K ? RUN : 1);
constexpr int SUMS = ALONG_K ? RUN : 1;  // of a thread
constexpr int PLACES = THREADS / LANES_K;
constexpr int PIXEL_RUN = ALONG_K ? 1 : RUN;

static_assert(THREADS % LANES_K == 0 && (PLACES & (PLACES - 1)) == 0, "places are halved");

// sums += the elements of one run.
__device__ __forceinline__ void add_run(const Vector<UserKept<TDY>::type, RUN>& run, float (&sums)[SUMS]) {
#pragma unroll
  for (int i = 0; i < RUN; ++i) sums[ALONG_K ? i : 0] += to_float(run[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    conv_backward_bias_split(const TDY* __restrict__ dy, TDB* db, float* __restrict__ parts, float alpha, float beta,
                             UserArguments user, long long n) {
  __shared__ float shared[PLACES][CHANNELS];
  const int lane = static_cast<int>(threadIdx.x) % LANES_K * SUMS, place = static_cast<int>(threadIdx.x) / LANES_K;
  const Index first_k = static_cast<Index>(blockIdx.x) * CHANNELS;
  const int part = static_cast<int>(blockIdx.y);

  float sums[SUMS] = {};
  if (first_k + lane < K) {
    const TDY* const channel = dy + (first_k + lane) * Index(DY_STRIDE_K);
    const Index runs = pixels_of(n) / PIXEL_RUN;
#pragma unroll 4
    for (Index i = part * PLACES + place; i < runs; i += SPLIT * PLACES) {
      const Vector<TDY, RUN> run = load_readonly<RUN>(channel + Gradient::of_pixel(i * PIXEL_RUN));
      add_run(user_kept<ALONG_K>(run, static_cast<int>(first_k) + lane, user), sums);
    }
  }
#pragma unroll
  for (int i = 0; i < SUMS; ++i) shared[place][lane + i] = sums[i];
#pragma unroll 1
  for (int half = PLACES / 2; half > 0; half /= 2) {
    __syncthreads();
    if (place >= half) continue;
#pragma unroll
    for (int i = 0; i < SUMS; ++i) shared[place][lane + i] += shared[place + half][lane + i];
  }
  if (place != 0) return;
#pragma unroll
  for (int i = 0; i < SUMS; ++i) {
    const Index k = first_k + lane + i;
    if (k >= K) break;
    if (SPLIT == 1) {
      finish_channel(db, k, shared[0][lane + i], {alpha, beta, user});
    } else {
      parts[part * Index(K) + k] = shared[0][lane + i];
    }
  }
}

// db from the parts; a thread a channel.
extern "C" __global__ void __launch_bounds__(THREADS)
    conv_backward_bias_split_reduce(const float* __restrict__ parts, TDB* db, float alpha, float beta,
                                    UserArguments user) {
  const Index k = global_thread<THREADS, Index>();
  if (k >= K) return;
  float sum = 0.0f;
#pragma unroll 4
  for (int part = 0; part < SPLIT; ++part) sum += parts[part * Index(K) + k];
  finish_channel(db, k, sum, {alpha, beta, user});
}
