// The gradient of resizing along the rows: a thread makes an element of dx in CHANNELS channels. Any strides; fast
// where columns stand side by side.
//
// Neighbouring threads take neighbouring columns, so that a warp stores whole lines and loads from neighbouring places
// of a row. What an element is a part of is the same in all channels, and looked up once. Parameters:
// resize_backward_nchw.cpp.
#include "lib/resize_gradient.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    resize_backward_nchw(const TY* __restrict__ dy, TX* __restrict__ dx, float alpha, float beta, UserArguments user,
                         long long n, float cubic) {
  const Index groups = ceil_div<int>(C, CHANNELS);
  Index index = global_thread<THREADS, Index>();
  if (index >= images_of(n) * groups * D * H * W) return;
  const Index w = take_coordinate(index, W);
  const Index h = take_coordinate(index, H);
  const Index d = take_coordinate(index, D);
  const Index c0 = take_coordinate(index, groups) * CHANNELS;

  const Columns columns = columns_around(w, cubic);
  float values[CHANNELS] = {};
  for_each_row(d, h, cubic, [&](Index z, Index p, float weight) {
    float sums[CHANNELS] = {};
    for_each_column(columns, cubic, [&](Index q, const Share& share) {
#pragma unroll
      for (int i = 0; i < CHANNELS; ++i) {
        const Index c = smaller<Index>(c0 + i, C - 1);
        const float element = user_entered(dy[Incoming::at(index, c, z, p, q)], static_cast<int>(c), user);
        sums[i] += share.exists ? share.weight * element : 0.0f;
      }
    });
#pragma unroll
    for (int i = 0; i < CHANNELS; ++i) values[i] += weight * sums[i];
  });

#pragma unroll
  for (int i = 0; i < CHANNELS; ++i) {
    if (c0 + i >= C) break;
    store_result(dx, Gradient::at(index, c0 + i, d, h, w), values[i], static_cast<int>(c0) + i, {alpha, beta, user});
  }
}
