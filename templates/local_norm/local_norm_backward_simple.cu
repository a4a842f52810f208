// The gradients of local_norm_forward, the plain way: one thread an element, which sums the window of each element
// whose window it is in, any axes and strides. The trusted kernel of local_norm_backward: the others are checked
// against it, so it is written to be obviously right.
#include "lib/local_norm_simple.cuh"

using MeansScales = Scales<DMEANS_ALPHA, DMEANS_BETA>;

extern "C" __global__ void __launch_bounds__(THREADS)
    local_norm_backward_simple(const TX* x, const TMEANS* means, const TDY* dy, TDX* dx, TDMEANS* dmeans, float alpha,
                               float beta, UserArguments user, float lrn_alpha, float lrn_beta, float lrn_k,
                               float dmeans_alpha, float dmeans_beta, long long n) {
  const Index element = global_thread<THREADS, Index>();
  if (element >= element_count(n)) return;
  const Coordinates place(element);
  const LocalNormNumbers numbers = {lrn_alpha, lrn_beta, lrn_k};
  const Entered enter = {user};

  float terms = 0.0f;
  Coordinates other = place;
  for_each_in_window(other, AHEAD, BEHIND, [&] {  // windows of these have `place`
    terms += gradient_term(to_float(x[other.offset<X_STRIDES>()]), to_float(enter(dy[other.offset<DY_STRIDES>()])),
                           logarithm_at(x, means, other, numbers, AsStored{}), numbers);
  });
  const float through_sums = gradient_through_sums(distance_at(x, means, place, AsStored{}), terms, numbers);
  const float direct = to_float(enter(dy[place.offset<DY_STRIDES>()])) *
                       inverse_power(logarithm_at(x, means, place, numbers, AsStored{}), lrn_beta);

  if constexpr (HAS_DMEANS) {
    MeansScales{dmeans_alpha, dmeans_beta}.store(dmeans + place.offset<DMEANS_STRIDES>(), -through_sums);
  }
  store_result(dx, place.offset<DX_STRIDES>(), direct + through_sums, 0, {alpha, beta, user});
}
