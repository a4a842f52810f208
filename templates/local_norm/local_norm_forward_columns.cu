// y = x / s^beta with s the window's mean square, scaled, plus k, for a window along one axis that is not the
// innermost: a thread goes along the axis with what its windows reach in registers. Parameters: columns.cpp.
#include "lib/local_norm_columns.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    local_norm_forward_columns(const TX* __restrict__ x, const TMEANS* __restrict__ means, TY* __restrict__ y,
                               float alpha, float beta, UserArguments user, float lrn_alpha, float lrn_beta,
                               float lrn_k, long long) {
  const Column column;
  if (!column.has_elements()) return;
  Line<SEGMENT + REACH> line;
  load_line(x, means, column, column.first - BEHIND, line, Entered{user});
  Values results[SEGMENT];
  normalise(line, {lrn_alpha, lrn_beta, lrn_k}, results);
  finish_column<Y_RUN, Y_STEP, Y_AXIS_STRIDE>(y, column.offset<Y_OUTER_STRIDES, Y_STEP>(), column.first, results,
                                              {alpha, beta, user});
}
