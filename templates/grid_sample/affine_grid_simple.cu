// grid[n,z,p,q,i] = row i of the matrix of an image times the coordinates of a pixel, the plain way: one thread an
// element, any strides. The trusted kernel of affine_grid: others are checked against it. Parameters:
// affine_grid_simple.cpp.
#include "lib/affine_grid.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    affine_grid_simple(const TTHETA* theta, TGRID* grid, float alpha, float beta, UserArguments user, long long n) {
  const Index number = global_thread<THREADS, Index>();  // in logical order
  Index index = number;
  const Index axis = take_coordinate(index, Index(AXES));  // w, h, d
  if (index >= images_of(n) * Index(PIXELS)) return;
  const GridPixel pixel(index);
  const TTHETA* const row = theta + pixel.image * Index(THETA_STRIDE_N) + axis * Index(THETA_STRIDE_I);
  store_element(grid + pixel.offset_in_grid() + axis * Index(GRID_STRIDE_E), number,
                affine_position(row, GridFactors(pixel)), 0, {alpha, beta, user});
}
