// Parts shared by the gradients of a depthwise convolution by its filters: operands in memory, and tiles of outputs.
//
// From the prelude, besides the problem and what lib/filter_parts.cuh takes: TILE_P and TILE_Q.
#include "lib/depthwise_tiles.cuh"
#include "lib/filter_parts.cuh"
#include "lib/strided.cuh"

using Input = SpatialTensor<X_STRIDE_N, X_STRIDE_C, X_STRIDE_D, X_STRIDE_H, X_STRIDE_W, N, D, H, W>;
using Output = SpatialTensor<DY_STRIDE_N, DY_STRIDE_K, DY_STRIDE_Z, DY_STRIDE_P, DY_STRIDE_Q, N, Z, P, Q>;

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for conv_backward_filter_simple");

// The outputs of a tile that exist: the last tile of a column, or of a row, may have fewer than others.
struct Existing {
  bool rows, columns;

  __device__ __forceinline__ Existing(Index first_p, Index first_q)
      : rows(P % TILE_P == 0 || first_p + TILE_P <= P), columns(Q % TILE_Q == 0 || first_q + TILE_Q <= Q) {}
  __device__ __forceinline__ bool has(int p, int q) const {
    return (p < P % TILE_P || rows) && (q < Q % TILE_Q || columns);
  }
};

// The tiles of all images that a block works off: a part of them, of which PLACES go side by side.
template <int PLACES>
struct TilesOfPart {
  Index first, end;

  __device__ __forceinline__ TilesOfPart(int part, Index tiles) {
    const Index most = ceil_div(tiles, Index(SPLIT) * PLACES) * PLACES;
    first = part * most;
    end = smaller(tiles, first + most);
  }
};

// Where the windows of a tile begin in x, and the tile in dy.
struct TilePlace {
  Index image, z, first_p, first_q, front, top, left;

  __device__ __forceinline__ explicit TilePlace(Index tile) : image(tile) {
    first_q = take_coordinate(image, q_tiles()) * TILE_Q;
    first_p = take_coordinate(image, p_tiles()) * TILE_P;
    z = take_coordinate(image, Z);
    front = z * STRIDE_D - PAD_FRONT;
    top = first_p * STRIDE_H - PAD_TOP;
    left = first_q * STRIDE_W - PAD_LEFT;
  }
};
