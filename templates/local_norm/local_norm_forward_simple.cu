// y = x / s^beta with s the window's mean square, scaled, plus k, the plain way: one thread an element, any axes and
// strides.
// The trusted kernel of local_norm_forward: the others are checked against it, so it is written to be obviously right.
#include "lib/local_norm_simple.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    local_norm_forward_simple(const TX* x, const TMEANS* means, TY* y, float alpha, float beta, UserArguments user,
                              float lrn_alpha, float lrn_beta, float lrn_k, long long n) {
  const Index element = global_thread<THREADS, Index>();
  if (element >= element_count(n)) return;
  const Coordinates place(element);
  const LocalNormNumbers numbers = {lrn_alpha, lrn_beta, lrn_k};
  const Entered enter = {user};
  const float value = to_float(enter(x[place.offset<X_STRIDES>()]));
  const float result = value * inverse_power(logarithm_at(x, means, place, numbers, enter), lrn_beta);
  store_result(y, place.offset<Y_STRIDES>(), result, 0, {alpha, beta, user});
}
