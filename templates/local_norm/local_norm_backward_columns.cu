// The gradients of local_norm_forward for a window along one axis that is not the innermost: a thread goes along the
// axis with what two windows reach in registers. Parameters: columns.cpp.
#include "lib/local_norm_columns.cuh"

using MeansScales = Scales<DMEANS_ALPHA, DMEANS_BETA>;

extern "C" __global__ void __launch_bounds__(THREADS)
    local_norm_backward_columns(const TX* __restrict__ x, const TMEANS* __restrict__ means, const TDY* __restrict__ dy,
                                TDX* __restrict__ dx, TDMEANS* __restrict__ dmeans, float alpha, float beta,
                                UserArguments user, float lrn_alpha, float lrn_beta, float lrn_k, float dmeans_alpha,
                                float dmeans_beta, long long) {
  const Column column;
  if (!column.has_elements()) return;
  Line<SEGMENT + 2 * REACH> line;
  load_line(x, means, column, column.first - REACH, line, AsStored{});
  Values gradient[SEGMENT + REACH];
  load_column<DY_RUN, DY_STEP, DY_AXIS_STRIDE>(dy + column.offset<DY_OUTER_STRIDES, DY_STEP>(), column.first - AHEAD,
                                               gradient, Entered{user});
  Values by_x[SEGMENT], by_means[SEGMENT];
  differentiate(line, gradient, column.first, {lrn_alpha, lrn_beta, lrn_k}, by_x, by_means);
  if constexpr (HAS_DMEANS) {
    dmeans += column.offset<DMEANS_OUTER_STRIDES, DMEANS_STEP>();
    blend_column<DMEANS_RUN, DMEANS_STEP, DMEANS_AXIS_STRIDE>(dmeans, column.first, by_means,
                                                              MeansScales{dmeans_alpha, dmeans_beta});
    store_column<DMEANS_RUN, DMEANS_STEP, DMEANS_AXIS_STRIDE>(dmeans, column.first, by_means);
  }
  finish_column<DX_RUN, DX_STEP, DX_AXIS_STRIDE>(dx, column.offset<DX_OUTER_STRIDES, DX_STEP>(), column.first, by_x,
                                                 {alpha, beta, user});
}
