// y = the weighted sum of the elements of x around a position: a thread takes CHANNELS channels of a pixel, whose
// elements and weights it finds once; LANES threads side by side share a pixel. Parameters: grid_sample_pixels.cpp.
#include "lib/grid_sample.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    grid_sample_pixels(const TIMAGE* x, const TGRID* grid, TSAMPLED* y, float alpha, float beta, UserArguments user,
                       long long n) {
  const Index thread = global_thread<THREADS, Index>(), number = thread / LANES;
  if (number >= images_of(n) * Index(PIXELS)) return;
  const GridPixel pixel(number);
  const GridSurroundings around(grid + pixel.offset_in_grid());
  const Index first = static_cast<Index>(blockIdx.y) * (LANES * CHANNELS) + thread % LANES;
  const OutputArguments output = {alpha, beta, user};
  float values[CHANNELS];
#pragma unroll
  for (int i = 0; i < CHANNELS; ++i) values[i] = 0.0f;
  const TIMAGE* const own = x + Image::at(pixel.image, first, 0, 0, 0);
  around.for_each([&](Index offset, int plane, int row, int column) {
    const float weight = around.weight(plane, row, column);
#pragma unroll
    for (int i = 0; i < CHANNELS; ++i) {
      if (first + i * LANES < Index(C)) {
        values[i] += weight * to_float(own[offset + i * LANES * Index(IMAGE_STRIDE_C)]);
      }
    }
  });
#pragma unroll
  for (int i = 0; i < CHANNELS; ++i) {
    const Index c = first + i * LANES;
    if (c >= Index(C)) continue;
    store_result(y, Sampled::at(pixel.image, c, pixel.z, pixel.p, pixel.q), values[i], static_cast<int>(c), output);
  }
}
