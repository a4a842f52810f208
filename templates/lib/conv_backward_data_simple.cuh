// Gradient of a convolution by its input, a thread an element of dx: what every tap took there comes back.
//
// dx[n,c,d,h,w] = epilogue(alpha * (sum over k of c's group and over t,r,s of dy[n,k,z,p,q] * w[region*K + k,c,t,r,s])
// + beta * dx), with z * STRIDE_D = d + PAD_FRONT - t * DILATION_D where such a z exists, p and q likewise, and region
// that of (z,p,q) (0 where all outputs have the same filters). A mirrored filter is read backwards. Any strides. With
// alpha of class zero nothing is summed.
//
// From the prelude: the problem, THREADS, and what lib/epilogue.cuh needs, whose y is dx.
#include "lib/epilogue.cuh"
#include "lib/images.cuh"
#include "lib/index.cuh"
#include "lib/regions.cuh"
#include "lib/window_outputs.cuh"

// The sum of one element.
__device__ __forceinline__ float gradient(const TDY* dy, const TW* w, Index image, Index channel, Index d, Index h,
                                          Index column, const UserArguments& user) {
  const Index group = channel / C_PER_GROUP, c = channel % C_PER_GROUP;
  // Only taps that a stride lets meet an output are looked at: one in STRIDE, mostly.
  const Index first_t = first_tap_at<STRIDE_D, DILATION_D, T>(d, PAD_FRONT);
  const Index first_r = first_tap_at<STRIDE_H, DILATION_H, R>(h, PAD_TOP);
  const Index first_s = first_tap_at<STRIDE_W, DILATION_W, S>(column, PAD_LEFT);
  float sum = 0.0f;
  for (Index k = group * K_PER_GROUP; k < (group + 1) * K_PER_GROUP; ++k) {
    for (Index t = first_t; t < T; t += TAP_STEP<STRIDE_D, DILATION_D, T>) {
      const Index z = output_of(d, t, PAD_FRONT, STRIDE_D, DILATION_D, Z);
      if (z < 0) continue;
      for (Index r = first_r; r < R; r += TAP_STEP<STRIDE_H, DILATION_H, R>) {
        const Index p = output_of(h, r, PAD_TOP, STRIDE_H, DILATION_H, P);
        if (p < 0) continue;
        for (Index s = first_s; s < S; s += TAP_STEP<STRIDE_W, DILATION_W, S>) {
          const Index q = output_of(column, s, PAD_LEFT, STRIDE_W, DILATION_W, Q);
          if (q < 0) continue;
          const Index filter_t = MIRRORED ? T - 1 - t : t;
          const Index filter_r = MIRRORED ? R - 1 - r : r;
          const Index filter_s = MIRRORED ? S - 1 - s : s;
          const Index dy_at = image * Index(DY_STRIDE_N) + k * Index(DY_STRIDE_K) + z * Index(DY_STRIDE_Z) +
                              p * Index(DY_STRIDE_P) + q * Index(DY_STRIDE_Q);
          const Index w_at = filter_at<W_STRIDE_REGION, W_STRIDE_K>(region_of(z, p, q) * K + k) +
                             c * Index(W_STRIDE_C) + filter_t * Index(W_STRIDE_T) + filter_r * Index(W_STRIDE_R) +
                             filter_s * Index(W_STRIDE_S);
          sum += user_entered(dy[dy_at], static_cast<int>(k), user) * to_float(w[w_at]);
        }
      }
    }
  }
  return sum;
}

// The element of dx that is this thread's.
__device__ __forceinline__ void backward_data_of_one(const TDY* dy, const TW* w, TY* dx,
                                                     const EpilogueArguments& arguments, long long n) {
  Index element = global_thread<THREADS, Index>();  // in logical order
  if (element >= images_of(n) * Index(C) * D * H * W) return;
  const Index column = take_coordinate(element, W);
  const Index h = take_coordinate(element, H);
  const Index d = take_coordinate(element, D);
  const Index channel = take_coordinate(element, C);
  const Index image = element;

  float sum = 0.0f;
  if constexpr (ALPHA != SCALE_ZERO) sum = gradient(dy, w, image, channel, d, h, column, arguments.user);
  const Index at = image * Index(DX_STRIDE_N) + channel * Index(DX_STRIDE_C) + d * Index(DX_STRIDE_D) +
                   h * Index(DX_STRIDE_H) + column * Index(DX_STRIDE_W);
  const Index residual = image * Index(RESIDUAL_STRIDE_N) + channel * Index(RESIDUAL_STRIDE_C) +
                         d * Index(RESIDUAL_STRIDE_D) + h * Index(RESIDUAL_STRIDE_H) +
                         column * Index(RESIDUAL_STRIDE_W);
  const float sums[] = {sum};
  finish_run<false>(dx, at, residual, sums, static_cast<int>(channel), arguments);
}
