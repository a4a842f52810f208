// Regions of outputs that have filters of their own: a grid of GRID_Z x GRID_P x GRID_Q over OUTPUTS_Z x OUTPUTS_P x
// OUTPUTS_Q outputs. Along an axis output p lies in region p * GRID_P / OUTPUTS_P; regions are counted with the last
// axis fastest. The grid of an ordinary convolution is 1 x 1 x 1, over one output, and costs nothing.
#include "lib/index.cuh"

constexpr Index REGIONS = Index(GRID_Z) * GRID_P * GRID_Q;
constexpr bool UNEVEN_REGIONS = OUTPUTS_Z % GRID_Z != 0 || OUTPUTS_P % GRID_P != 0 || OUTPUTS_Q % GRID_Q != 0;

// The region along one axis that `output` lies in.
template <long long GRID, long long OUTPUTS>
__device__ __forceinline__ Index region_along(Index output) {
  if constexpr (GRID == 1) return 0;
  if constexpr (OUTPUTS % GRID == 0) return output / Index(OUTPUTS / GRID);
  return static_cast<Index>(static_cast<long long>(output) * GRID / OUTPUTS);
}

// Its first output; that of region number GRID is OUTPUTS.
template <long long GRID, long long OUTPUTS>
__device__ __forceinline__ Index first_output_of(Index region) {
  if constexpr (OUTPUTS % GRID == 0) return region * Index(OUTPUTS / GRID);
  return static_cast<Index>((region * OUTPUTS + GRID - 1) / GRID);
}

// The number of the region that an output lies in.
__device__ __forceinline__ Index region_of(Index z, Index p, Index q) {
  return (region_along<GRID_Z, OUTPUTS_Z>(z) * GRID_P + region_along<GRID_P, OUTPUTS_P>(p)) * GRID_Q +
         region_along<GRID_Q, OUTPUTS_Q>(q);
}

// Offset of filter number `filter`, a region's K before those of the next region, which begin STRIDE_REGION behind.
template <const auto& STRIDE_REGION, const auto& STRIDE_K>
__device__ __forceinline__ Index filter_at(Index filter) {
  if constexpr (REGIONS == 1) return filter * Index(STRIDE_K);
  if (STRIDE_REGION == K * STRIDE_K) return filter * Index(STRIDE_K);
  return filter / K * Index(STRIDE_REGION) + filter % K * Index(STRIDE_K);
}

// One region: its first output, and how many it has along each axis.
struct Region {
  Index number;
  Index z, p, q;
  Index planes, rows, columns;

  __device__ __forceinline__ explicit Region(Index region) : number(region) {
    const Index column = take_coordinate(region, GRID_Q);
    const Index row = take_coordinate(region, GRID_P);
    z = first_output_of<GRID_Z, OUTPUTS_Z>(region);
    p = first_output_of<GRID_P, OUTPUTS_P>(row);
    q = first_output_of<GRID_Q, OUTPUTS_Q>(column);
    planes = first_output_of<GRID_Z, OUTPUTS_Z>(region + 1) - z;
    rows = first_output_of<GRID_P, OUTPUTS_P>(row + 1) - p;
    columns = first_output_of<GRID_Q, OUTPUTS_Q>(column + 1) - q;
  }
};
