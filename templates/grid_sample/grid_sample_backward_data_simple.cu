// dx[n,c,d,h,w] = the sum of dy over the outputs that the element is a part of, the plain way: one thread an element,
// which goes through all positions. The trusted kernel of grid_sample_backward_data: others are checked against it.
// Parameters: grid_sample_backward_data_simple.cpp.
#include "lib/grid_sample.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    grid_sample_backward_data_simple(const TSAMPLED* dy, const TGRID* grid, TIMAGE* dx, float alpha, float beta,
                                     UserArguments user, long long n) {
  const Index number = global_thread<THREADS, Index>();  // in logical order
  Index index = number;
  if (index >= images_of(n) * Index(C) * Index(D) * Index(H) * Index(W)) return;
  const Index column = take_coordinate(index, W);
  const Index row = take_coordinate(index, H);
  const Index plane = take_coordinate(index, D);
  const Index c = take_coordinate(index, C);
  const Index own = Image::at(0, 0, plane, row, column);
  float sum = 0.0f;
  for (Index place = 0; place < Index(PIXELS); ++place) {
    const GridPixel pixel(index * Index(PIXELS) + place);
    const GridSurroundings around(grid + pixel.offset_in_grid());
    const float gradient = to_float(dy[Sampled::at(pixel.image, c, pixel.z, pixel.p, pixel.q)]);
    around.for_each([&](Index, int i, int j, int k) {
      const bool is_own =
          around.planes.places[i] == plane && around.rows.places[j] == row && around.columns.places[k] == column;
      if (is_own) sum += around.weight(i, j, k) * gradient;
    });
  }
  store_element(dx + Image::at(index, c, 0, 0, 0) + own, number, sum, static_cast<int>(c), {alpha, beta, user});
}
