// dtheta[n,i,j] = the sum over the pixels of dgrid[n,z,p,q,i] times their coordinate j, or 1, the plain way: one thread
// an element. The trusted kernel of affine_grid_backward: others are checked against it. Parameters:
// affine_grid_backward_simple.cpp.
#include "lib/affine_grid.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    affine_grid_backward_simple(const TGRID* dgrid, TTHETA* dtheta, float alpha, float beta, UserArguments user,
                                long long n) {
  const Index number = global_thread<THREADS, Index>();  // in logical order
  Index image = number;
  const Index j = take_coordinate(image, Index(AXES + 1)), i = take_coordinate(image, Index(AXES));
  if (image >= images_of(n)) return;
  float sum = 0.0f;
  for (Index place = 0; place < Index(PIXELS); ++place) {
    const GridPixel pixel(image * Index(PIXELS) + place);
    const float coordinates[] = {grid_base(pixel.q, Index(Q)), grid_base(pixel.p, Index(P)),
                                 AXES == 3 ? grid_base(pixel.z, Index(Z)) : 1.0f, 1.0f};
    sum += to_float(dgrid[pixel.offset_in_grid() + i * Index(GRID_STRIDE_E)]) * coordinates[j];
  }
  store_element(dtheta + image * Index(THETA_STRIDE_N) + i * Index(THETA_STRIDE_I) + j * Index(THETA_STRIDE_J), number,
                sum, 0, {alpha, beta, user});
}
