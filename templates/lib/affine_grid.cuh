// Positions of affine maps: what kernels of affine_grid and of its gradient share.
// generator/operations/affine_grid.h has the formulas.
//
// From the prelude: TTHETA, TGRID; AXES, 2 or 3; THETA_STRIDE_N, _I and _J; what lib/grid.cuh takes. The matrices are
// theta or its gradient, the grid likewise.
#include "lib/grid.cuh"
#include "lib/types.cuh"

// Number `index` of `size` evenly spaced numbers from -1 to 1: rounded once, as the reference does it.
__device__ __forceinline__ float grid_base(Index index, Index size) {
  const Index steps = ENDS == GRID_EDGES ? size : size - 1;
  if (steps == 0) return 0.0f;
  return __fdiv_rn(static_cast<float>(2 * index + 1 - size), static_cast<float>(steps));
}

// Factors of the columns of a matrix at a pixel: its coordinates along w, h, and in 3-D d, and 1.
struct GridFactors {
  float factors[AXES + 1];

  __device__ __forceinline__ explicit GridFactors(const GridPixel& pixel) {
    factors[0] = grid_base(pixel.q, Index(Q)), factors[1] = grid_base(pixel.p, Index(P));
    if constexpr (AXES == 3) factors[2] = grid_base(pixel.z, Index(Z));
    factors[AXES] = 1.0f;
  }
  __device__ __forceinline__ float operator[](int i) const { return factors[i]; }
};

// A row of the matrix of an image times the factors.
__device__ __forceinline__ float affine_position(const TTHETA* row, const GridFactors& factors) {
  float sum = to_float(row[AXES * Index(THETA_STRIDE_J)]);
#pragma unroll
  for (int i = 0; i < AXES; ++i) sum += to_float(row[i * Index(THETA_STRIDE_J)]) * factors[i];
  return sum;
}
