// Gradient of grid_sample by the grid: LANES threads side by side go through the channels of a pixel, whose elements
// and slopes they find once. Parameters: grid_sample_backward_grid_pixels.cpp.
#include "lib/grid_sample.cuh"
#include "lib/reduce.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    grid_sample_backward_grid_pixels(const TSAMPLED* dy, const TIMAGE* x, const TGRID* grid, TDGRID* dgrid, float alpha,
                                     float beta, UserArguments user, long long n) {
  const Index thread = global_thread<THREADS, Index>(), pixels = images_of(n) * Index(PIXELS);
  const Index number = thread / LANES;
  const bool is_there = number < pixels;  // all lanes take part in the sums
  const GridPixel pixel(is_there ? number : 0);
  const GridSurroundings around(grid + pixel.offset_in_grid());
  const int lane = static_cast<int>(thread % LANES);
  float sums[AXES];
#pragma unroll
  for (int axis = 0; axis < AXES; ++axis) sums[axis] = 0.0f;
  for (Index c = lane; MODE != GRID_NEAREST && is_there && c < Index(C); c += LANES) {
    const float gradient = to_float(dy[Sampled::at(pixel.image, c, pixel.z, pixel.p, pixel.q)]);
    const TIMAGE* const channel = x + Image::at(pixel.image, c, 0, 0, 0);
    float derivatives[AXES];
    around.derive(channel, derivatives);
#pragma unroll
    for (int axis = 0; axis < AXES; ++axis) sums[axis] += gradient * derivatives[axis];
  }
#pragma unroll
  for (int axis = 0; axis < AXES; ++axis) sums[axis] = lanes_reduce<LANES>(sums[axis], Sum());
  if (!is_there || lane != 0) return;
  const Index offset = pixel.image * Index(DGRID_STRIDE_N) + pixel.z * Index(DGRID_STRIDE_Z) +
                       pixel.p * Index(DGRID_STRIDE_P) + pixel.q * Index(DGRID_STRIDE_Q);
  const OutputArguments output = {alpha, beta, user};
#pragma unroll
  for (int axis = 0; axis < AXES; ++axis) {
    store_result(dgrid, offset + axis * Index(DGRID_STRIDE_E), sums[axis], 0, output);
  }
}
