// dx[n,c,d,h,w] = the weighted sum of the elements of dy that x[n,c,d,h,w] is a part of, the plain way: one thread an
// element, any strides.
// The trusted kernel of resize_backward: other kernels are checked against it, so it is written to be obviously right.
#include "lib/resize_gradient.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    resize_backward_simple(const TY* __restrict__ dy, TX* __restrict__ dx, float alpha, float beta, UserArguments user,
                           long long n, float cubic) {
  const Index number = global_thread<THREADS, Index>();  // in logical order
  Index index = number;
  if (index >= images_of(n) * Index(C) * D * H * W) return;
  const Index w = take_coordinate(index, W);
  const Index h = take_coordinate(index, H);
  const Index d = take_coordinate(index, D);
  const Index c = take_coordinate(index, C);

  const Outputs planes = planes_with(d), rows = rows_with(h), columns = columns_with(w);
  float value = 0.0f;
  for (Index z = planes.first; z < planes.last; ++z) {
    const Share plane = share_of(d, planes_of(z, cubic));
    if (!plane.exists) continue;
    float of_plane = 0.0f;
    for (Index p = rows.first; p < rows.last; ++p) {
      const Share row = share_of(h, rows_of(p, cubic));
      if (!row.exists) continue;
      float of_row = 0.0f;
      for (Index q = columns.first; q < columns.last; ++q) {
        const Share column = share_of(w, columns_of(q, cubic));
        if (!column.exists) continue;
        const TY element = dy[Incoming::at(index, c, z, p, q)];
        of_row += column.weight * user_entered(element, static_cast<int>(c), user);
      }
      of_plane += row.weight * of_row;
    }
    value += plane.weight * of_plane;
  }
  store_element(dx + Gradient::at(index, c, d, h, w), number, value, static_cast<int>(c), {alpha, beta, user});
}
