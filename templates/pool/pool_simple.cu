// y[n,c,z,p,q] = max or average of x over a window, and where the maximum stands, the plain way: one thread an output,
// any strides.
// The trusted kernel of pooling: other kernels are checked against it, so it is written to be obviously right.
#include "lib/index.cuh"
#include "lib/pooling.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    pool_simple(const TX* __restrict__ x, TY* __restrict__ y, float alpha, float beta, UserArguments user, long long n,
                int* __restrict__ indices) {
  const Index outputs = (DYNAMIC_N ? static_cast<Index>(n) : N) * Index(C) * Z * P * Q;
  const Index number = global_thread<THREADS, Index>();  // in logical order
  Index index = number;
  if (index >= outputs) return;
  const Index q = take_coordinate(index, Q);
  const Index p = take_coordinate(index, P);
  const Index z = take_coordinate(index, Z);
  const Index c = take_coordinate(index, C);
  const Index image = index;

  const Index front = z * STRIDE_D - PAD_FRONT;
  const Index top = p * STRIDE_H - PAD_TOP;
  const Index left = q * STRIDE_W - PAD_LEFT;
  const TX* channel = x + image * Index(X_STRIDE_N) + c * Index(X_STRIDE_C);
  float value = pool_start<MODE>();
  int position = -1;    // of the maximum in its channel: the first of the largest, or the last NaN
  float inside = 0.0f;  // elements of the window in x
  float padded = 0.0f;  // elements of the window in x or its padding
  for (Index t = 0; t < T; ++t) {
    for (Index r = 0; r < R; ++r) {
      for (Index s = 0; s < S; ++s) {
        const Index d = front + t * DILATION_D;
        const Index h = top + r * DILATION_H;
        const Index w = left + s * DILATION_W;
        if (d < D + PAD_BACK && h < H + PAD_BOTTOM && w < W + PAD_RIGHT) padded += 1.0f;
        if (d < 0 || d >= D || h < 0 || h >= H || w < 0 || w >= W) continue;
        const TX element = channel[d * Index(X_STRIDE_D) + h * Index(X_STRIDE_H) + w * Index(X_STRIDE_W)];
        const float entered = user_entered(element, static_cast<int>(c), user);
        if (position < 0 || is_nan(entered) || entered > value) position = static_cast<int>((d * H + h) * W + w);
        value = pool_add<MODE>(value, entered);
        inside += 1.0f;
      }
    }
  }
  value = pool_finish<MODE>(value, MODE == POOL_AVG ? inside : padded);

  TY* target = y + image * Index(Y_STRIDE_N) + c * Index(Y_STRIDE_C) + z * Index(Y_STRIDE_Z) + p * Index(Y_STRIDE_P) +
               q * Index(Y_STRIDE_Q);
  store_element(target, number, value, static_cast<int>(c), {alpha, beta, user});
  if constexpr (HAS_INDICES) {
    indices[image * Index(INDICES_STRIDE_N) + c * Index(INDICES_STRIDE_C) + z * Index(INDICES_STRIDE_Z) +
            p * Index(INDICES_STRIDE_P) + q * Index(INDICES_STRIDE_Q)] = position;
  }
}
