// The gradients of local_norm_forward: a block makes a tile. In shared memory it adds up the squares in the windows of
// all elements whose window has one of the tile's, makes of each sum what the element adds to the gradients of its
// window, and adds that up in turn. Any strides; fast where the innermost dimension of the tile is contiguous.
// Parameters: tile.cpp.
#include "lib/local_norm_tile.cuh"

// Makes from the sums of squares around the tile the terms of the gradients, in their place, and the share that dy has
// in the gradients of the tile's own elements.
template <class Centres>
__device__ __forceinline__ void make_terms(const Inputs<AsStored>& inputs, const TDY* dy, const Entered& enter,
                                           const Block& block, const LocalNormNumbers& numbers, Values* terms,
                                           Values* direct) {
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < Centres::COUNT; i += THREADS) {
    Cell cell = Centres::cell(i);
    const Cell elements = block.elements(cell, AHEAD);
    const bool inside = is_inside(elements);
    Values x = {}, gradient = {}, own = {};
    if (inside) {
      inputs.load_x(elements, x);
      as_floats(enter(load_neighbours<DY_RUN, DY_STEP>(dy + offset_of<DY_AXIS_STRIDES, DY_STEP>(elements))), gradient);
    }
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) {
      const float logarithm = numbers.logarithm(terms[i][j]);
      terms[i][j] = inside ? gradient_term(x[j], gradient[j], logarithm, numbers) : 0.0f;
      own[j] = gradient[j] * inverse_power(logarithm, numbers.beta);
    }
#pragma unroll
    for (int axis = 0; axis < AXES; ++axis) cell.at[axis] -= AHEAD;
    if (!is_within<AXIS_TILES>(cell.at)) continue;
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) direct[Tile::index(cell)][j] = own[j];
  }
  __syncthreads();
}

using MeansScales = Scales<DMEANS_ALPHA, DMEANS_BETA>;

extern "C" __global__ void __launch_bounds__(THREADS)
    local_norm_backward_tile(const TX* __restrict__ x, const TMEANS* __restrict__ means, const TDY* __restrict__ dy,
                             TDX* __restrict__ dx, TDMEANS* __restrict__ dmeans, float alpha, float beta,
                             UserArguments user, float lrn_alpha, float lrn_beta, float lrn_k, float dmeans_alpha,
                             float dmeans_beta, long long) {
  using Reached = Around<2>;
  using Centres = Around<1>;  // of the windows that have elements of the tile
  __shared__ __align__(16) Values squares[Reached::COUNT], sums[SUMMED<Reached>], direct[Tile::COUNT];
  const Block block;
  const Inputs<AsStored> inputs(x, means, block, {});
  const LocalNormNumbers numbers = {lrn_alpha, lrn_beta, lrn_k};
  load_squares<Reached>(inputs, block, REACH, squares);
  Values* const terms = sum_windows<Reached>(squares, sums);
  make_terms<Centres>(inputs, dy + row_offset<DY_OUTER_STRIDES>(block.outer), {user}, block, numbers, terms, direct);
  const Values* const windows = sum_windows<Centres>(terms, terms == squares ? sums : squares);

  const Index dx_first = row_offset<DX_OUTER_STRIDES>(block.outer);
  if constexpr (HAS_DMEANS) dmeans += row_offset<DMEANS_OUTER_STRIDES>(block.outer);
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < Tile::COUNT; i += THREADS) {
    const Cell elements = block.elements(Tile::cell(i), 0);
    if (!is_inside(elements)) continue;
    Values by_x, by_means;
    inputs.load_distances(elements, by_means);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) {
      const float through_sums = gradient_through_sums(by_means[j], windows[i][j], numbers);
      by_x[j] = direct[i][j] + through_sums;
      by_means[j] = -through_sums;
    }
    if constexpr (HAS_DMEANS) {
      store_neighbours<DMEANS_RUN, DMEANS_STEP>(dmeans + offset_of<DMEANS_AXIS_STRIDES, DMEANS_STEP>(elements),
                                                by_means, MeansScales{dmeans_alpha, dmeans_beta});
    }
    store_along<DX_RUN, DX_STEP>(dx, dx_first + offset_of<DX_AXIS_STRIDES, DX_STEP>(elements), by_x,
                                 {alpha, beta, user});
  }
}
