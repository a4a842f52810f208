// Gradient of grid_sample by x: outputs add their parts to the elements around their positions, as integers, so that
// the order does not count (lib/exact_sum.cuh). A thread takes CHANNELS channels of a pixel, LANES threads side by side
// share one. Parameters: grid_sample_backward_data_exact.cpp.
#include "lib/exact_sum.cuh"
#include "lib/grid_sample.cuh"
#include "lib/store.cuh"

// Calls use(element, term) for each part of the outputs of this thread, with the number of the element in logical
// order.
template <class Use>
__device__ __forceinline__ void for_each_term(const TSAMPLED* dy, const TGRID* grid, long long n, const Use& use) {
  const Index thread = global_thread<THREADS, Index>(), number = thread / LANES;
  if (number >= images_of(n) * Index(PIXELS)) return;
  const GridPixel pixel(number);
  const GridSurroundings around(grid + pixel.offset_in_grid());
  const Index first = static_cast<Index>(blockIdx.y) * (LANES * CHANNELS) + thread % LANES;
#pragma unroll 1
  for (int i = 0; i < CHANNELS; ++i) {
    const Index c = first + i * LANES;
    if (c >= Index(C)) return;
    const float gradient = to_float(dy[Sampled::at(pixel.image, c, pixel.z, pixel.p, pixel.q)]);
    const long long channel = (static_cast<long long>(pixel.image) * Index(C) + c) * Index(D);
    around.for_each([&](Index, int plane, int row, int column) {
      const long long element =
          ((channel + around.planes.places[plane]) * Index(H) + around.rows.places[row]) * Index(W) +
          around.columns.places[column];
      use(element, around.weight(plane, row, column) * gradient);
    });
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    grid_sample_backward_data_exact_largest(const TSAMPLED* dy, const TGRID* grid, TIMAGE* dx, int* largest,
                                            unsigned long long* sums, float alpha, float beta, UserArguments user,
                                            long long n) {
  for_each_term(dy, grid, n,
                [&](long long element, float term) { note_largest(largest + element, largest_of_term(term)); });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    grid_sample_backward_data_exact_sums(const TSAMPLED* dy, const TGRID* grid, TIMAGE* dx, int* largest,
                                         unsigned long long* sums, float alpha, float beta, UserArguments user,
                                         long long n) {
  for_each_term(dy, grid, n, [&](long long element, float term) {
    add_units(sums + element, units_of_term(largest[element], term));
  });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    grid_sample_backward_data_exact(const TSAMPLED* dy, const TGRID* grid, TIMAGE* dx, int* largest,
                                    unsigned long long* sums, float alpha, float beta, UserArguments user,
                                    long long n) {
  const Index number = global_thread<THREADS, Index>();  // in logical order
  Index index = number;
  if (index >= images_of(n) * Index(C) * Index(D) * Index(H) * Index(W)) return;
  const Index column = take_coordinate(index, W);
  const Index row = take_coordinate(index, H);
  const Index plane = take_coordinate(index, D);
  const Index c = take_coordinate(index, C);
  store_result(dx, Image::at(index, c, plane, row, column), value_of_sum(sums[number], largest[number]),
               static_cast<int>(c), OutputArguments{alpha, beta, user});
}
