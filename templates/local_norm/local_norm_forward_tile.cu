// y = x / s^beta with s the window's mean square, scaled, plus k: a block makes a tile. It reads the squares of the
// tile and of what windows reach around it into shared memory and adds them up along one axis after the other. Any
// strides; fast where the innermost dimension of the tile is contiguous. Parameters: tile.cpp.
#include "lib/local_norm_tile.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    local_norm_forward_tile(const TX* __restrict__ x, const TMEANS* __restrict__ means, TY* __restrict__ y, float alpha,
                            float beta, UserArguments user, float lrn_alpha, float lrn_beta, float lrn_k, long long) {
  using Reached = Around<1>;
  __shared__ __align__(16) Values squares[Reached::COUNT], sums[SUMMED<Reached>];
  const Block block;
  const Inputs<Entered> inputs(x, means, block, {user});
  const LocalNormNumbers numbers = {lrn_alpha, lrn_beta, lrn_k};
  load_squares<Reached>(inputs, block, BEHIND, squares);
  const Values* const windows = sum_windows<Reached>(squares, sums);

  const Index y_first = row_offset<Y_OUTER_STRIDES>(block.outer);
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < Tile::COUNT; i += THREADS) {
    const Cell elements = block.elements(Tile::cell(i), 0);
    if (!is_inside(elements)) continue;
    Values values;
    inputs.load_x(elements, values);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) values[j] *= inverse_power(numbers.logarithm(windows[i][j]), lrn_beta);
    store_along<Y_RUN, Y_STEP>(y, y_first + offset_of<Y_AXIS_STRIDES, Y_STEP>(elements), values, {alpha, beta, user});
  }
}
