// y[n,c,z,p,q] = the weighted sum of the elements of x around its position, the plain way: one thread an output, any
// strides.
// The trusted kernel of resize: other kernels are checked against it, so it is written to be obviously right.
#include "lib/resize.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    resize_simple(const TX* __restrict__ x, TY* __restrict__ y, float alpha, float beta, UserArguments user,
                  long long n, float cubic) {
  const Index number = global_thread<THREADS, Index>();  // in logical order
  Index index = number;
  if (index >= images_of(n) * Index(C) * Z * P * Q) return;
  const Index q = take_coordinate(index, Q);
  const Index p = take_coordinate(index, P);
  const Index z = take_coordinate(index, Z);
  const Index c = take_coordinate(index, C);

  const Taps<TAPS_D> planes = planes_of(z, cubic);
  const Taps<TAPS_H> rows = rows_of(p, cubic);
  const Taps<TAPS_W> columns = columns_of(q, cubic);
  float value = 0.0f;
  for (int i = 0; i < TAPS_D; ++i) {
    for (int j = 0; j < TAPS_H; ++j) {
      for (int k = 0; k < TAPS_W; ++k) {
        const TX element = x[Input::at(index, c, planes.positions[i], rows.positions[j], columns.positions[k])];
        const float weight = planes.weights[i] * rows.weights[j] * columns.weights[k];
        value += weight * user_entered(element, static_cast<int>(c), user);
      }
    }
  }
  store_element(y + Output::at(index, c, z, p, q), number, value, static_cast<int>(c), {alpha, beta, user});
}
