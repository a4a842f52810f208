// The Product of lib/conv_tile.cuh on tensor cores whose operands come through registers, from any layout: the loaders
// and the pipeline are those of the f32 lanes, the tile and the sums those of lib/tensor_tile.cuh.
#include "lib/register_pipeline.cuh"
#include "lib/tensor_tile.cuh"

struct TensorLanes {
  template <int COLUMNS, class Loader>
  using Tile = TensorTile<FactorOf<typename Loader::Kept>, COLUMNS, Loader::DOWN>;
  template <class TileA, class TileB>
  using Tiles = StagesOfTiles<TileA, TileB>;
  using Position = TensorPosition;
  using Sums = TensorSums;

  template <class TileA, class TileB, class LoaderA, class LoaderB>
  __device__ __forceinline__ static void add_chunks(Tiles<TileA, TileB>& tiles, const LoaderA& a, const LoaderB& b,
                                                    int first, int last, const Position& position, Sums& sums) {
    RegisterPipeline::for_each_chunk(tiles, a, b, first, last, [&](const TileA& tile_a, const TileB& tile_b) {
      sums.add_product(tile_a, tile_b, position);
    });
  }
};
