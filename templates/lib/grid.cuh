// Grids of positions: N,Z,P,Q,AXES, with Z 1 in 2-D. What kernels of grid_sample and affine_grid share.
//
// From the prelude: the extents, GRID_STRIDE_N, _Z, _P, _Q and _E, DYNAMIC_N, ENDS.
#include "lib/images.cuh"
#include "lib/index.cuh"

enum : int { GRID_EDGES, GRID_CENTRES };  // as GridEnds

// The place of a position.
struct GridPixel {
  Index q, p, z, image;  // in the order in which they are taken off an index

  // Pixel number `index`, through all images.
  __device__ __forceinline__ explicit GridPixel(Index index)
      : q(take_coordinate(index, Q)), p(take_coordinate(index, P)), z(take_coordinate(index, Z)), image(index) {}
  __device__ __forceinline__ Index offset_in_grid() const {
    return image * Index(GRID_STRIDE_N) + z * Index(GRID_STRIDE_Z) + p * Index(GRID_STRIDE_P) +
           q * Index(GRID_STRIDE_Q);
  }
};
