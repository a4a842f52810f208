// The gradients of local_norm_forward for a window along the innermost dimension: a thread takes neighbours along it,
// with what two windows reach in registers. Parameters: segments.cpp.
#include "lib/local_norm_segments.cuh"

using MeansScales = Scales<DMEANS_ALPHA, DMEANS_BETA>;

extern "C" __global__ void __launch_bounds__(THREADS)
    local_norm_backward_segments(const TX* __restrict__ x, const TMEANS* __restrict__ means, const TDY* __restrict__ dy,
                                 TDX* __restrict__ dx, TDMEANS* __restrict__ dmeans, float alpha, float beta,
                                 UserArguments user, float lrn_alpha, float lrn_beta, float lrn_k, float dmeans_alpha,
                                 float dmeans_beta, long long n) {
  const Segment segment;
  if (!segment.has_elements(n)) return;
  Line<SEGMENT + 2 * REACH> line;
  load_line<REACH>(x, means, segment, line, AsStored{});
  Values gradient[SEGMENT + REACH];
  load_segment<AHEAD, DY_RUN, DY_STEP>(dy + segment.offset<DY_OUTER_STRIDES, DY_STEP>(), segment.first, gradient,
                                       Entered{user});
  Values by_x[SEGMENT], by_means[SEGMENT];
  differentiate(line, gradient, segment.first, {lrn_alpha, lrn_beta, lrn_k}, by_x, by_means);
  float neighbours[SEGMENT];
  if constexpr (HAS_DMEANS) {
    as_neighbours(by_means, neighbours);
    store_neighbours<DMEANS_RUN, DMEANS_STEP>(dmeans + segment.offset<DMEANS_OUTER_STRIDES, DMEANS_STEP>(), neighbours,
                                              MeansScales{dmeans_alpha, dmeans_beta});
  }
  as_neighbours(by_x, neighbours);
  store_along<DX_RUN, DX_STEP>(dx, segment.offset<DX_OUTER_STRIDES, DX_STEP>(), neighbours, {alpha, beta, user});
}
