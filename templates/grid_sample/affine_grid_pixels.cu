// Positions of an affine map: a thread takes TAKEN neighbouring pixels of an image, and stores their positions in
// accesses of RUN elements. With RUN > 1 the positions of an image lie side by side, and TAKEN divides their number.
// Parameters: affine_grid_pixels.cpp.
#include "lib/affine_grid.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    affine_grid_pixels(const TTHETA* theta, TGRID* grid, float alpha, float beta, UserArguments user, long long n) {
  const Index first = global_thread<THREADS, Index>() * TAKEN, pixels = grid_images(n) * Index(PIXELS);
  if (first >= pixels) return;
  const OutputArguments output = {alpha, beta, user};
  float positions[TAKEN * AXES];
  Index offsets[TAKEN];
#pragma unroll
  for (int i = 0; i < TAKEN; ++i) {
    const GridPixel pixel(first + i);
    const bool is_there = RUN > 1 || first + i < pixels;
    offsets[i] = is_there ? pixel.offset_in_grid() : Index(-1);
    const TTHETA* const matrix = theta + (is_there ? pixel.image : Index(0)) * Index(THETA_STRIDE_N);
    const GridFactors factors(pixel);
#pragma unroll
    for (int axis = 0; axis < AXES; ++axis) {
      positions[i * AXES + axis] = affine_position(matrix + axis * Index(THETA_STRIDE_I), factors);
    }
  }
  if constexpr (RUN > 1) return store_along<RUN, GRID_STRIDE_E>(grid, offsets[0], positions, output);
#pragma unroll
  for (int i = 0; i < TAKEN * AXES; ++i) {
    if (offsets[i / AXES] < 0) return;
    store_result(grid, offsets[i / AXES] + i % AXES * Index(GRID_STRIDE_E), positions[i], 0, output);
  }
}
