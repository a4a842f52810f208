// Resizing along the channels: a thread makes VECTOR channels of an output. Any strides; fast where channels stand side
// by side.
//
// Neighbouring threads take neighbouring channels, so that a warp moves whole lines. VECTOR divides C. Parameters:
// resize_nhwc.cpp.
#include "lib/resize.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    resize_nhwc(const TX* __restrict__ x, TY* __restrict__ y, float alpha, float beta, UserArguments user, long long n,
                float cubic) {
  Index index = global_thread<THREADS, Index>();
  if (index >= images_of(n) * Index(Z) * P * Q * (C / VECTOR)) return;
  const Index c = take_coordinate(index, C / VECTOR) * VECTOR;
  const Index q = take_coordinate(index, Q);
  const Index p = take_coordinate(index, P);
  const Index z = take_coordinate(index, Z);

  const Taps<TAPS_D> planes = planes_of(z, cubic);
  const Taps<TAPS_H> rows = rows_of(p, cubic);
  const Taps<TAPS_W> columns = columns_of(q, cubic);
  float values[VECTOR] = {};
#pragma unroll
  for (int i = 0; i < TAPS_D; ++i) {
#pragma unroll
    for (int j = 0; j < TAPS_H; ++j) {
#pragma unroll
      for (int k = 0; k < TAPS_W; ++k) {
        const Index offset = Input::at(index, c, planes.positions[i], rows.positions[j], columns.positions[k]);
        const Vector<TX, VECTOR> loaded = load_readonly<VECTOR>(x + offset);
        const float weight = planes.weights[i] * rows.weights[j] * columns.weights[k];
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) values[v] += weight * user_entered(loaded[v], static_cast<int>(c) + v, user);
      }
    }
  }
  store_run<true>(y, Output::at(index, c, z, p, q), values, static_cast<int>(c), {alpha, beta, user});
}
