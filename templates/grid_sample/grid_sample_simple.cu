// y[n,c,z,p,q] = the weighted sum of the elements of x around a position, the plain way: one thread an output, any
// strides. The trusted kernel of grid_sample: others are checked against it. Parameters: grid_sample_simple.cpp.
#include "lib/grid_sample.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    grid_sample_simple(const TIMAGE* x, const TGRID* grid, TSAMPLED* y, float alpha, float beta, UserArguments user,
                       long long n) {
  const Index number = global_thread<THREADS, Index>();  // in logical order
  Index index = number;
  if (index >= images_of(n) * Index(C) * Index(Z) * Index(P) * Index(Q)) return;
  const Index place = take_coordinate(index, PIXELS);
  const Index c = take_coordinate(index, C);
  const GridPixel pixel(index * Index(PIXELS) + place);
  const GridSurroundings around(grid + pixel.offset_in_grid());
  const TIMAGE* const channel = x + Image::at(pixel.image, c, 0, 0, 0);
  float value = 0.0f;
  around.for_each(
      [&](Index offset, int i, int j, int k) { value += around.weight(i, j, k) * to_float(channel[offset]); });
  store_element(y + Sampled::at(pixel.image, c, pixel.z, pixel.p, pixel.q), number, value, static_cast<int>(c),
                {alpha, beta, user});
}
