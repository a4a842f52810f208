// Positions of an affine map: a thread takes TAKEN neighbouring pixels of an image, whose positions it stores in
// accesses of RUN elements. With TAKEN > 1 the positions of an image lie side by side, and TAKEN divides their number.
// Parameters: affine_grid_pixels.cpp.
#include "lib/affine_grid.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    affine_grid_pixels(const TTHETA* theta, TGRID* grid, float alpha, float beta, UserArguments user, long long n) {
  const Index number = global_thread<THREADS, Index>() * TAKEN;
  if (number >= images_of(n) * Index(PIXELS)) return;
  const GridPixel first(number);
  const TTHETA* const matrix = theta + first.image * Index(THETA_STRIDE_N);
  float positions[TAKEN * AXES];
#pragma unroll
  for (int i = 0; i < TAKEN; ++i) {
    const GridFactors factors(GridPixel(number + i));
#pragma unroll
    for (int axis = 0; axis < AXES; ++axis) {
      positions[i * AXES + axis] = affine_position(matrix + axis * Index(THETA_STRIDE_I), factors);
    }
  }
  store_along<RUN, GRID_STRIDE_E>(grid, first.offset_in_grid(), positions, {alpha, beta, user});
}
