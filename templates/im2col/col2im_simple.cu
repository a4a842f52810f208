// y[n,c,d,h,w] = the sum of the elements of x that windows hold of it, the plain way: one thread an element, any
// strides. The trusted kernel of col2im: other kernels are checked against it, so it is written to be obviously right.
#include "lib/column_sums.cuh"
#include "lib/store.cuh"
#include "lib/window_outputs.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    col2im_simple(const TX* __restrict__ x, TY* __restrict__ y, float alpha, float beta, UserArguments user,
                  long long n) {
  const Index number = global_thread<THREADS, Index>();  // in logical order
  Index index = number;
  if (index >= images_of(n) * Index(C) * D * H * W) return;
  const Index w = take_coordinate(index, W);
  const Index h = take_coordinate(index, H);
  const Index d = take_coordinate(index, D);
  const Index c = take_coordinate(index, C);

  float sum = 0.0f;
  for (Index t = 0; t < T; ++t) {
    const Index z = output_of(d, t, PAD_FRONT, STRIDE_D, DILATION_D, Z);
    for (Index r = 0; r < R; ++r) {
      const Index p = output_of(h, r, PAD_TOP, STRIDE_H, DILATION_H, P);
      for (Index s = 0; s < S; ++s) {
        const Index q = output_of(w, s, PAD_LEFT, STRIDE_W, DILATION_W, Q);
        if (z < 0 || p < 0 || q < 0) continue;
        const Index k = ((c * T + t) * R + r) * S + s;
        sum += to_float(x[ColumnsOfX::at(index, k, z, p, q)]);
      }
    }
  }
  store_element(y + ImagesOfY::at(index, c, d, h, w), number, sum, static_cast<int>(c), {alpha, beta, user});
}
