// Convolution, one thread per output element: the definition written as loops.
//
// y[n,k,z,p,q] = epilogue(sum over c,t,r,s of x[n, g*C/groups + c, d, h, w] * w[region*K + k,c,t,r,s]), with g the
// group of k, region that of (z,p,q) (0 where all outputs have the same filters), d = z*STRIDE_D - PAD_FRONT +
// t*DILATION_D, h and w likewise, and x zero outside its extents. A mirrored filter is read backwards. Any strides.
// With alpha of class zero nothing is summed: the product counts as 0, NaN inputs or not.
//
// From the prelude: the problem, and THREADS.
#include "lib/epilogue.cuh"
#include "lib/regions.cuh"

static_assert(C_PER_GROUP * GROUPS == C && K_PER_GROUP * GROUPS == K, "groups divide the channels");

// The sum of one output element.
__device__ __forceinline__ float convolve(const TX* x, const TW* w, Index image, Index k, Index z, Index p, Index q,
                                          const UserArguments& user) {
  const Index first_channel = k / K_PER_GROUP * C_PER_GROUP;
  const Index filter = region_of(z, p, q) * K + k;
  float sum = 0.0f;
  for (Index c = 0; c < C_PER_GROUP; ++c) {
    for (Index t = 0; t < T; ++t) {
      const Index plane = z * STRIDE_D - PAD_FRONT + t * DILATION_D;
      if (plane < 0 || plane >= D) continue;
      for (Index r = 0; r < R; ++r) {
        const Index row = p * STRIDE_H - PAD_TOP + r * DILATION_H;
        if (row < 0 || row >= H) continue;
        for (Index s = 0; s < S; ++s) {
          const Index column = q * STRIDE_W - PAD_LEFT + s * DILATION_W;
          if (column < 0 || column >= W) continue;
          const Index filter_t = MIRRORED ? T - 1 - t : t;
          const Index filter_r = MIRRORED ? R - 1 - r : r;
          const Index filter_s = MIRRORED ? S - 1 - s : s;
          const Index x_at = image * Index(X_STRIDE_N) + (first_channel + c) * Index(X_STRIDE_C) +
                             plane * Index(X_STRIDE_D) + row * Index(X_STRIDE_H) + column * Index(X_STRIDE_W);
          const Index w_at = filter_at<W_STRIDE_REGION, W_STRIDE_K>(filter) + c * Index(W_STRIDE_C) +
                             filter_t * Index(W_STRIDE_T) + filter_r * Index(W_STRIDE_R) + filter_s * Index(W_STRIDE_S);
          const PrologueIndex at(static_cast<int>(first_channel + c), static_cast<int>(image));
          sum += user_entered(x[x_at], at, user) * to_float(w[w_at]);
        }
      }
    }
  }
  return sum;
}

// The element of y that is this thread's.
__device__ __forceinline__ void convolve_one(const TX* x, const TW* w, TY* y, const EpilogueArguments& arguments,
                                             long long n) {
  const Index number = global_thread<THREADS, Index>();  // in logical order
  Index element = number;
  if (element >= (DYNAMIC_N ? static_cast<Index>(n) : N) * Index(K) * Z * P * Q) return;
  const Index q = take_coordinate(element, Q);
  const Index p = take_coordinate(element, P);
  const Index z = take_coordinate(element, Z);
  const Index k = take_coordinate(element, K);
  const Index image = element;

  float sum = 0.0f;
  if constexpr (ALPHA != SCALE_ZERO) sum = convolve(x, w, image, k, z, p, q, arguments.user);

  const Index at = image * Index(Y_STRIDE_N) + k * Index(Y_STRIDE_K) + z * Index(Y_STRIDE_Z) + p * Index(Y_STRIDE_P) +
                   q * Index(Y_STRIDE_Q);
  float old = 0.0f, residual_value = 0.0f;
  if constexpr (READS_Y) old = to_float(y[at]);
  if constexpr (READS_RESIDUAL) {
    residual_value = to_float(
        arguments.residual[image * Index(RESIDUAL_STRIDE_N) + k * Index(RESIDUAL_STRIDE_K) +
                           z * Index(RESIDUAL_STRIDE_Z) + p * Index(RESIDUAL_STRIDE_P) + q * Index(RESIDUAL_STRIDE_Q)]);
  }
  UserValues user_values;
  load_user_element(arguments.user, number, user_values);
  const int channel = static_cast<int>(k);
  y[at] =
      from_float<TY>(finished(sum, old, channel, bias_of(arguments, channel), residual_value, user_values, arguments));
}
