#include <algorithm>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "pool/pool_problem.h"

namespace kiln {
namespace pool_nchw_descriptor {
namespace {

using descriptor::PoolProblem;

struct Tile {
  int threads;
  int vector;          // elements of x a load
  int tile_p, tile_q;  // outputs a thread
};

// How the tile lies on x and y, as pool_nchw.cu computes it.
struct Cover {
  Cover(const Tile& tile, const PoolProblem& pool) {
    lead = (tile.vector - pool.columns.pad_begin % tile.vector) % tile.vector;
    const int64_t span =
        (tile.tile_q - 1) * pool.columns.stride + (pool.columns.window - 1) * pool.columns.dilation + 1;
    vectors = (lead + span + tile.vector - 1) / tile.vector;
    rows = (tile.tile_p - 1) * pool.rows.stride + (pool.rows.window - 1) * pool.rows.dilation + 1;
    row_step = tile.tile_p > 1 ? 1 : pool.rows.dilation;
    // Rows of a taller tile are known at compile time or the tile would not stay in registers.
    row_unroll = tile.tile_p > 1 ? rows : std::clamp<int64_t>(64 / (pool.columns.window * tile.tile_q), 1, 4);
    tiles_per_image = pool.c() * pool.planes.outputs * descriptor::ceil_div(pool.rows.outputs, tile.tile_p) *
                      descriptor::ceil_div(pool.columns.outputs, tile.tile_q);
    store = descriptor::widest_vector(pool.y, {descriptor::dimension::column}, tile.tile_q);
  }

  int64_t lead, vectors, rows, row_step, row_unroll, tiles_per_image;
  int store;
};

std::optional<std::string> refusal(const PoolProblem& pool, const Target&) {
  if (auto reason = descriptor::order_refusal(pool, descriptor::Inner::pixels)) return reason;
  if (!descriptor::coordinates_fit_int(pool)) return "window coordinates do not fit 32 bits";
  if ((pool.columns.window - 1) * pool.columns.dilation + 1 > 32) return "the window is wider than 32 columns";
  return std::nullopt;
}

bool aligned(const Tile& tile, const PoolProblem& pool, const Target&) {
  return descriptor::vector_fits(pool.x, {descriptor::dimension::column}, tile.vector);
}

bool tiles_start_alike(const Tile& tile, const PoolProblem& pool, const Target&) {
  return pool.columns.outputs <= tile.tile_q || tile.tile_q * pool.columns.stride % tile.vector == 0;
}

bool no_idle_outputs(const Tile& tile, const PoolProblem& pool, const Target&) {
  return tile.tile_p / 2 < pool.rows.outputs && tile.tile_q / 2 < pool.columns.outputs;
}

bool fits_registers(const Tile& tile, const PoolProblem& pool, const Target&) {
  const Cover cover(tile, pool);
  return cover.vectors * tile.vector + tile.tile_p * tile.tile_q <= 80 &&
         cover.row_unroll * (pool.columns.window * tile.tile_q + cover.vectors * tile.vector) <= 512;
}

// Outputs along an axis that a thread of an open kernel makes: several where windows overlap.
int open_tile(const WindowAxis& axis) {
  return axis.window > 2 * axis.stride ? 4 : axis.window > axis.stride ? 2 : 1;
}

bool has_open_kernel(const Tile& tile, const PoolProblem& pool, const Target& target) {
  Tile open = tile;
  open.tile_q = std::max(tile.vector, std::min(open_tile(pool.columns), 2));
  open.tile_p = open_tile(pool.rows);
  while (open.tile_p > 1 && !fits_registers(open, pool, target)) open.tile_p /= 2;
  return tile.threads == 128 && tile.vector <= 4 && tile.tile_q == open.tile_q && tile.tile_p == open.tile_p;
}

Program program(const Tile& tile, const PoolProblem& pool, const Target&, const Emitter& emit) {
  const Cover cover(tile, pool);
  Prelude prelude = descriptor::pool_prelude(pool, descriptor::FixedAxes::windows);
  prelude.constant("THREADS", tile.threads).constant("VECTOR", tile.vector).constant("STORE", cover.store);
  prelude.constant("TILE_P", tile.tile_p).constant("TILE_Q", tile.tile_q);
  prelude.constant("LEAD", cover.lead).constant("ROW_STEP", cover.row_step).constant("ROW_UNROLL", cover.row_unroll);

  Launch launch = descriptor::unary_launch("pool_nchw", tile.threads);
  launch.grid[0] = descriptor::blocks_for(cover.tiles_per_image, pool.n(), pool.dynamic_batch, tile.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Tile& tile, const PoolProblem& pool, const Target& target, const DeviceFigures& device) {
  const Cover cover(tile, pool);
  const double threads = static_cast<double>(cover.tiles_per_image * pool.n());
  const double rows_read = static_cast<double>(
      pool.planes.window * std::min(cover.rows, static_cast<int64_t>(tile.tile_p) * pool.rows.window));
  const auto vectors = static_cast<double>(cover.vectors);
  const double outputs = tile.tile_p * tile.tile_q;
  const double bytes = size_of(pool.x.dtype);
  descriptor::StreamingWork work;
  work.dram_bytes = descriptor::compulsory_bytes(pool);
  work.cache_bytes =
      threads *
      (rows_read * vectors * descriptor::lane_bytes_of_x(pool, tile.vector * bytes, tile.tile_p, tile.tile_q) +
       outputs / cover.store *
           descriptor::lane_bytes(cover.store * size_of(pool.y.dtype), tile.tile_q * size_of(pool.y.dtype)));
  const double loads = vectors * (6 + (bytes < 4 ? tile.vector : 0));
  const double adds = static_cast<double>(pool.columns.window) * tile.tile_q + static_cast<double>(pool.rows.window);
  work.threads = threads;
  work.instructions_per_thread = 40 + rows_read * (8 + loads + adds) + outputs * 8;
  work.blocks = threads / tile.threads;
  work.threads_per_block = tile.threads;
  work.registers_per_thread = 30 + vectors * tile.vector + outputs;
  work.bytes_in_flight_per_thread = vectors * tile.vector * bytes * std::min(rows_read, 3.0);
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace pool_nchw_descriptor

Algorithm pool_nchw() {
  using namespace pool_nchw_descriptor;
  return describe<Tile, PoolProblem>("pool_nchw", "pool_forward", "pool/pool_nchw.cu")
      .takes_prologue()
      .param("VECTOR", &Tile::vector, {4, 8, 2, 1})
      .param("TILE_Q", &Tile::tile_q, {4, 2, 8, 1})
      .param("TILE_P", &Tile::tile_p, {1, 2, 4})
      .param("THREADS", &Tile::threads, {128, 64, 256})
      .rule("W, alignment and VECTOR agree", aligned)
      .rule("every tile starts at the same place in a vector", tiles_start_alike)
      .pruning("less than half of the tile is idle", no_idle_outputs)
      .rule("a tile's rows fit registers", fits_registers)
      .opens(has_open_kernel)
      .applies(refusal)
      .adds([](const Tile&, const PoolProblem& pool, const Target&) {
        return descriptor::order_of_pool(pool, "rows of taps, times a factor");
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
