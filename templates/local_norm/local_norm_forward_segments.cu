// y = x / s^beta with s the window's mean square, scaled, plus k, for a window along the innermost dimension: a thread
// takes neighbours along it, with what their windows reach in registers. Parameters: segments.cpp.
#include "lib/local_norm_segments.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    local_norm_forward_segments(const TX* __restrict__ x, const TMEANS* __restrict__ means, TY* __restrict__ y,
                                float alpha, float beta, UserArguments user, float lrn_alpha, float lrn_beta,
                                float lrn_k, long long n) {
  const Segment segment;
  if (!segment.has_elements(n)) return;
  Line<SEGMENT + REACH> line;
  load_line<BEHIND>(x, means, segment, line, Entered{user});
  Values results[SEGMENT];
  normalise(line, {lrn_alpha, lrn_beta, lrn_k}, results);
  float neighbours[SEGMENT];
  as_neighbours(results, neighbours);
  store_along<Y_RUN, Y_STEP>(y, segment.offset<Y_OUTER_STRIDES, Y_STEP>(), neighbours, {alpha, beta, user});
}
