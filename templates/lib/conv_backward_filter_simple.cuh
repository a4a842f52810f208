// Gradient of a convolution by its filter, a thread an element of dw: the definition written as loops.
//
// dw[region*K + k,c,t,r,s] = epilogue(alpha * (sum over n and the z,p,q of the region of dy[n,k,z,p,q] * x[n,
// g*C/groups + c, d, h, w]) + beta * dw), with g the group of k, d = z*STRIDE_D - PAD_FRONT + t*DILATION_D, h and w
// likewise, and x zero outside its extents. Where all outputs have the same filters there is one region. The taps of a
// mirrored filter are counted backwards. Any strides. With alpha of class zero nothing is summed.
//
// From the prelude: the problem, and THREADS.
#include "lib/images.cuh"
#include "lib/index.cuh"
#include "lib/regions.cuh"
#include "lib/store.cuh"

// The sum of one element.
__device__ __forceinline__ float gradient(const TX* x, const TDY* dy, Index images, const Region& region, Index k,
                                          Index c, Index t, Index r, Index s, const UserArguments& user) {
  const Index channel = k / K_PER_GROUP * C_PER_GROUP + c;
  float sum = 0.0f;
  for (Index image = 0; image < images; ++image) {
    for (Index z = region.z; z < region.z + region.planes; ++z) {
      const Index plane = z * STRIDE_D - PAD_FRONT + t * DILATION_D;
      if (plane < 0 || plane >= D) continue;
      for (Index p = region.p; p < region.p + region.rows; ++p) {
        const Index row = p * STRIDE_H - PAD_TOP + r * DILATION_H;
        if (row < 0 || row >= H) continue;
        for (Index q = region.q; q < region.q + region.columns; ++q) {
          const Index column = q * STRIDE_W - PAD_LEFT + s * DILATION_W;
          if (column < 0 || column >= W) continue;
          const Index x_at = image * Index(X_STRIDE_N) + channel * Index(X_STRIDE_C) + plane * Index(X_STRIDE_D) +
                             row * Index(X_STRIDE_H) + column * Index(X_STRIDE_W);
          const Index dy_at = image * Index(DY_STRIDE_N) + k * Index(DY_STRIDE_K) + z * Index(DY_STRIDE_Z) +
                              p * Index(DY_STRIDE_P) + q * Index(DY_STRIDE_Q);
          sum += user_entered(x[x_at], static_cast<int>(channel), user) * to_float(dy[dy_at]);
        }
      }
    }
  }
  return sum;
}

// The element of dw that is this thread's.
__device__ __forceinline__ void backward_filter_of_one(const TX* x, const TDY* dy, TDW* dw,
                                                       const OutputArguments& output, long long n) {
  Index element = global_thread<THREADS, Index>();  // in logical order
  if (element >= Index(REGIONS) * K * C_PER_GROUP * T * R * S) return;
  const Index s = take_coordinate(element, S);
  const Index r = take_coordinate(element, R);
  const Index t = take_coordinate(element, T);
  const Index c = take_coordinate(element, C_PER_GROUP);
  const Index filter = element;

  float sum = 0.0f;
  if constexpr (ALPHA != SCALE_ZERO) {
    sum = gradient(x, dy, images_of(n), Region(filter / K), filter % K, c, MIRRORED ? T - 1 - t : t,
                   MIRRORED ? R - 1 - r : r, MIRRORED ? S - 1 - s : s, output.user);
  }
  const Index at = filter_at<DW_STRIDE_REGION, DW_STRIDE_K>(filter) + c * Index(DW_STRIDE_C) + t * Index(DW_STRIDE_T) +
                   r * Index(DW_STRIDE_R) + s * Index(DW_STRIDE_S);
  store_result(dw, at, sum, 0, output);
}
