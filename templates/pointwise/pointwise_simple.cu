// y = f(a, b, c), element by element, the plain way: one thread an element, any strides, no vectors.
// The trusted kernel of element-wise operations: other kernels are checked against it, so it is written to be obviously
// right. Here the dimensions are those of the request, last first.
#include "lib/pointwise.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    pointwise_simple(const TA* a, const TB* b, const TC* c, TY* y, float alpha, float beta, UserArguments user,
                     float n0, float n1, float n2, float n3, unsigned long long i0, unsigned long long i1,
                     long long n) {
  const Index element = global_thread<THREADS, Index>();  // in logical order
  if (element >= element_count(n)) return;
  Place place = {};
  move_to<0>(element, place);
  const PointwiseArguments arguments = {a, b, c, y, alpha, beta, user, {{n0, n1, n2, n3}, {i0, i1}}};
  Inputs<1> inputs;
  inputs.load_from(arguments, place);

  TY* const target = y + place.offsets[RESULT];
  if constexpr (IS_COPY) {
    store_copy<1>(target, inputs.a);
    return;
  }
  store_element(target, element, inputs.result(0, arguments), 0, {alpha, beta, user});
}
