// y[n, ((c*T + t)*R + r)*S + s, z, p, q] = the element of x at tap (t, r, s) of the window of (z, p, q), or 0, the
// plain way: one thread an element of y, any strides. The trusted kernel of im2col: other kernels are checked against
// it, so it is written to be obviously right.
#include "lib/columns.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    im2col_simple(const TX* __restrict__ x, TY* __restrict__ y, float alpha, float beta, UserArguments user,
                  long long n) {
  const Index number = global_thread<THREADS, Index>();  // in logical order
  Index index = number;
  if (index >= images_of(n) * Index(K) * Z * P * Q) return;
  const Index q = take_coordinate(index, Q);
  const Index p = take_coordinate(index, P);
  const Index z = take_coordinate(index, Z);
  const Index k = take_coordinate(index, K);
  Index c = k;
  const Index s = take_coordinate(c, S);
  const Index r = take_coordinate(c, R);
  const Index t = take_coordinate(c, T);

  const Index d = z * STRIDE_D - PAD_FRONT + t * DILATION_D;
  const Index h = p * STRIDE_H - PAD_TOP + r * DILATION_H;
  const Index w = q * STRIDE_W - PAD_LEFT + s * DILATION_W;
  const bool inside = d >= 0 && d < D && h >= 0 && h < H && w >= 0 && w < W;
  const float value = inside ? to_float(x[ImagesOfX::at(index, c, d, h, w)]) : 0.0f;
  store_element(y + ColumnsOfY::at(index, k, z, p, q), number, value, static_cast<int>(k), {alpha, beta, user});
}
