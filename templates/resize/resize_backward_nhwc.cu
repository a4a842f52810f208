// The gradient of resizing along the channels: a thread makes VECTOR channels of a pixel of dx. Any strides; fast where
// channels stand side by side.
//
// Neighbouring threads take neighbouring channels, so that a warp moves whole lines. VECTOR divides C. Parameters:
// resize_backward_nhwc.cpp.
#include "lib/resize_gradient.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    resize_backward_nhwc(const TY* __restrict__ dy, TX* __restrict__ dx, float alpha, float beta, UserArguments user,
                         long long n, float cubic) {
  Index index = global_thread<THREADS, Index>();
  if (index >= images_of(n) * Index(D) * H * W * (C / VECTOR)) return;
  const Index c = take_coordinate(index, C / VECTOR) * VECTOR;
  const Index w = take_coordinate(index, W);
  const Index h = take_coordinate(index, H);
  const Index d = take_coordinate(index, D);

  const Columns columns = columns_around(w, cubic);
  float values[VECTOR] = {};
  for_each_row(d, h, cubic, [&](Index z, Index p, float weight) {
    float sums[VECTOR] = {};
    for_each_column(columns, cubic, [&](Index q, const Share& share) {
      const Vector<TY, VECTOR> loaded = load_readonly<VECTOR>(dy + Incoming::at(index, c, z, p, q));
#pragma unroll
      for (int v = 0; v < VECTOR; ++v) {
        const float element = user_entered(loaded[v], static_cast<int>(c) + v, user);
        sums[v] += share.exists ? share.weight * element : 0.0f;
      }
    });
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) values[v] += weight * sums[v];
  });
  store_run<true>(dx, Gradient::at(index, c, d, h, w), values, static_cast<int>(c), {alpha, beta, user});
}
