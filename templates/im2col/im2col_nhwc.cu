// im2col along the channels: a thread makes VECTOR neighbouring channels of PIXELS neighbouring pixels of y. Any
// strides; fast where channels stand side by side.
//
// Neighbouring threads take neighbouring channels of y, so that a warp stores whole lines; what they load stands in
// few. An element outside x is loaded from its edge, so that no load waits for a branch, and replaced by 0. VECTOR
// divides K. Parameters: im2col_nhwc.cpp.
#include "lib/columns.cuh"
#include "lib/store.cuh"

// The element of x nearest to a position, and whether it stands there.
__device__ __forceinline__ Index nearest_to(Index position, Index extent, bool& inside) {
  const Index nearest = smaller<Index>(larger<Index>(position, 0), extent - 1);
  inside = inside && position == nearest;
  return nearest;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    im2col_nhwc(const TX* __restrict__ x, TY* __restrict__ y, float alpha, float beta, UserArguments user,
                long long n) {
  Index index = global_thread<THREADS, Index>();
  if (index >= images_of(n) * Index(Z) * P * TILES * VECTORS) return;
  const Index k0 = take_coordinate(index, VECTORS) * VECTOR;
  const Index q0 = take_coordinate(index, TILES) * PIXELS;
  const Index p = take_coordinate(index, P);
  const Index z = take_coordinate(index, Z);

  float values[PIXELS][VECTOR];
#pragma unroll
  for (int v = 0; v < VECTOR; ++v) {
    Index c = k0 + v;
    const Index s = take_coordinate(c, S);
    const Index r = take_coordinate(c, R);
    const Index t = take_coordinate(c, T);
    bool row_inside = true;
    const Index d = nearest_to(z * STRIDE_D - PAD_FRONT + t * DILATION_D, D, row_inside);
    const Index h = nearest_to(p * STRIDE_H - PAD_TOP + r * DILATION_H, H, row_inside);
    const TX* const row = x + ImagesOfX::at(index, c, d, h, 0);
    const Index w0 = q0 * STRIDE_W - PAD_LEFT + s * DILATION_W;
#pragma unroll
    for (int i = 0; i < PIXELS; ++i) {
      bool inside = row_inside;
      const Index w = nearest_to(w0 + i * STRIDE_W, W, inside);
      const float value = to_float(load_readonly<1>(row + w * Index(X_STRIDE_W))[0]);
      values[i][v] = inside ? value : 0.0f;
    }
  }

  const Index offset = ColumnsOfY::at(index, k0, z, p, q0);
#pragma unroll
  for (int i = 0; i < PIXELS; ++i) {
    if (q0 + i >= Q) break;
    store_run<true>(y, offset + i * Index(Y_STRIDE_Q), values[i], static_cast<int>(k0), {alpha, beta, user});
  }
}
