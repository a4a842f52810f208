// dgrid[n,z,p,q,i] = the sum over the channels of dy times the derivative of y by coordinate i, the plain way: one
// thread an element. The trusted kernel of grid_sample_backward_grid: others are checked against it. Parameters:
// grid_sample_backward_grid_simple.cpp.
#include "lib/grid_sample.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    grid_sample_backward_grid_simple(const TSAMPLED* dy, const TIMAGE* x, const TGRID* grid, TDGRID* dgrid, float alpha,
                                     float beta, UserArguments user, long long n) {
  const Index number = global_thread<THREADS, Index>();  // in logical order
  Index index = number;
  const Index axis = take_coordinate(index, Index(AXES));  // w, h, d
  if (index >= images_of(n) * Index(PIXELS)) return;
  const GridPixel pixel(index);
  const GridSurroundings around(grid + pixel.offset_in_grid());
  float sum = 0.0f;
  for (Index c = 0; MODE != GRID_NEAREST && c < Index(C); ++c) {
    const float gradient = to_float(dy[Sampled::at(pixel.image, c, pixel.z, pixel.p, pixel.q)]);
    const TIMAGE* const channel = x + Image::at(pixel.image, c, 0, 0, 0);
    float derivatives[AXES];
    around.derive(channel, derivatives);
    sum += gradient * derivatives[axis];
  }
  const Index offset = pixel.image * Index(DGRID_STRIDE_N) + pixel.z * Index(DGRID_STRIDE_Z) +
                       pixel.p * Index(DGRID_STRIDE_P) + pixel.q * Index(DGRID_STRIDE_Q) + axis * Index(DGRID_STRIDE_E);
  store_element(dgrid + offset, number, sum, 0, {alpha, beta, user});
}
