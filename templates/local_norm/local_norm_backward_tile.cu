// The gradients of local_norm_forward: a block makes a tile. In shared memory it adds up the squares in the windows of
// all elements whose window has one of the tile's, makes of each sum what the element adds to the gradients of its
// window, and adds that up in turn. Any strides; fast where the innermost dimension of the tile is contiguous.
// Parameters: tile.cpp.
#include "lib/local_norm_tile.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    local_norm_backward_tile(const TX* __restrict__ x, const TMEANS* __restrict__ means, const TDY* __restrict__ dy,
                             TDX* __restrict__ dx, TDMEANS* __restrict__ dmeans, float alpha, float beta,
                             float lrn_alpha, float lrn_beta, float lrn_k, long long) {
  using Reached = Around<2>;
  using Centres = Around<1>;  // of the windows that have elements of the tile
  __shared__ float squares[Reached::COUNT], sums[SUMMED<Reached>], direct[Tile::COUNT];
  const Block block;
  const Inputs inputs(x, means, block);
  const LocalNormNumbers numbers = {lrn_alpha, lrn_beta, lrn_k};
  load_squares<Reached>(inputs, block, REACH, squares);
  float* const terms = sum_windows<Reached>(squares, sums);

  dy += block.outer_offset<DY_OUTER_STRIDES>();
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < Centres::COUNT; i += THREADS) {
    Cell cell = Centres::cell(i);
    const Cell element = block.element(cell, AHEAD);
    float term = 0.0f;
    if (is_inside(element)) {
      const float gradient = to_float(dy[offset_of<DY_AXIS_STRIDES, DY_FREE_STRIDE>(element)]);
      const float logarithm = numbers.logarithm(terms[i]);
      term = gradient_term(inputs.x_at(element), gradient, logarithm, numbers);
#pragma unroll
      for (int axis = 0; axis < AXES; ++axis) cell.at[axis] -= AHEAD;
      if (is_within<AXIS_TILES>(cell.at)) direct[Tile::index(cell)] = gradient * inverse_power(logarithm, lrn_beta);
    }
    terms[i] = term;
  }
  __syncthreads();
  const float* const windows = sum_windows<Centres>(terms, terms == squares ? sums : squares);

  dx += block.outer_offset<DX_OUTER_STRIDES>();
  if constexpr (HAS_DMEANS) dmeans += block.outer_offset<DMEANS_OUTER_STRIDES>();
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < Tile::COUNT; i += THREADS) {
    const Cell element = block.element(Tile::cell(i), 0);
    if (!is_inside(element)) continue;
    const float through_sums =
        gradient_through_sums(inputs.distance(inputs.x_at(element), element), windows[i], numbers);
    TDX* const target = dx + offset_of<DX_AXIS_STRIDES, DX_FREE_STRIDE>(element);
    const float old = BETA != SCALE_ZERO ? to_float(*target) : 0.0f;
    *target = from_float<TDX>(blended<ALPHA, BETA>(direct[i] + through_sums, alpha, old, beta));
    if constexpr (HAS_DMEANS) {
      dmeans[offset_of<DMEANS_AXIS_STRIDES, DMEANS_FREE_STRIDE>(element)] = from_float<TDMEANS>(-through_sums);
    }
  }
}
