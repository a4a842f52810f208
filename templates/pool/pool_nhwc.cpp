#include <algorithm>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "pool/pool_problem.h"

namespace kiln {
namespace pool_nhwc_descriptor {
namespace {

using descriptor::PoolProblem;

struct Tile {
  int threads;
  int vector;  // channels a thread
  int tile_q;  // outputs of a row a thread
};

constexpr int64_t open_column_group = 3;  // most windows have three columns, or a few more

// How the tile lies on x, as pool_nhwc.cu computes it.
struct Cover {
  Cover(const Tile& tile, const PoolProblem& pool) {
    columns = (tile.tile_q - 1) * pool.columns.stride + (pool.columns.window - 1) * pool.columns.dilation + 1;
    column_step = tile.tile_q > 1 ? 1 : pool.columns.dilation;
    // Columns of a wider tile are known at compile time or the tile would not stay in registers.
    column_group = tile.tile_q > 1 ? columns : std::min<int64_t>(pool.columns.window, 8);
    row_unroll = std::clamp<int64_t>(16 / column_group, 1, pool.rows.window);
    tiles_per_image = pool.planes.outputs * pool.rows.outputs *
                      descriptor::ceil_div(pool.columns.outputs, tile.tile_q) * (pool.c() / tile.vector);
  }

  int64_t columns, column_step, column_group, row_unroll, tiles_per_image;
};

std::optional<std::string> refusal(const PoolProblem& pool, const Target&) {
  if (auto reason = descriptor::order_refusal(pool, descriptor::Inner::channels)) return reason;
  if (!descriptor::coordinates_fit_int(pool)) return "window coordinates do not fit 32 bits";
  return std::nullopt;
}

bool aligned(const Tile& tile, const PoolProblem& pool, const Target&) {
  return descriptor::vector_fits(pool.x, {descriptor::dimension::channel}, tile.vector) &&
         descriptor::vector_fits(pool.y, {descriptor::dimension::channel}, tile.vector);
}

bool no_idle_outputs(const Tile& tile, const PoolProblem& pool, const Target&) {
  return tile.tile_q / 2 < pool.columns.outputs;
}

bool fits_registers(const Tile& tile, const PoolProblem& pool, const Target&) {
  const Cover cover(tile, pool);
  return tile.tile_q == 1 || (tile.tile_q * tile.vector <= 32 && cover.columns * tile.vector <= 256);
}

bool has_open_kernel(const Tile& tile, const PoolProblem& pool, const Target&) {
  const int widest = 16 / size_of(pool.x.dtype);
  const bool is_open_width = tile.vector == 1 || tile.vector == 4 || tile.vector == std::min(widest, 8);
  return is_open_width && tile.tile_q == 1 && tile.threads == 128;
}

Program program(const Tile& tile, const PoolProblem& pool, const Target&, const Emitter& emit) {
  const Cover cover(tile, pool);
  Prelude prelude = descriptor::pool_prelude(pool);
  prelude.constant("THREADS", tile.threads).constant("VECTOR", tile.vector).constant("TILE_Q", tile.tile_q);
  prelude.constant("ROW_UNROLL", emit.open() ? 1 : cover.row_unroll).constant("COLUMN_STEP", cover.column_step);
  prelude.constant("COLUMN_GROUP", emit.open() ? open_column_group : cover.column_group);

  Launch launch = descriptor::unary_launch("pool_nhwc", tile.threads);
  launch.grid[0] = descriptor::blocks_for(cover.tiles_per_image, pool.n(), pool.dynamic_batch, tile.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Tile& tile, const PoolProblem& pool, const Target& target, const DeviceFigures& device) {
  const Cover cover(tile, pool);
  const double threads = static_cast<double>(cover.tiles_per_image * pool.n());
  // Columns that are loaded for a row of the tile, and the part of the window that is not padding.
  const auto window = static_cast<double>(pool.taps());
  const double inside = descriptor::mean_taps_inside(pool) / window;
  const auto columns = static_cast<double>(std::min(cover.columns, tile.tile_q * pool.columns.window));
  const double loads = inside * static_cast<double>(pool.planes.window * pool.rows.window) * columns;
  const double bytes = size_of(pool.x.dtype);
  const int64_t next = pool.c() == tile.vector
                           ? tile.tile_q * pool.columns.stride * pool.x.strides[descriptor::dimension::column]
                           : tile.vector * pool.x.strides[descriptor::dimension::channel];
  const double pitch = static_cast<double>(next) * bytes;

  descriptor::StreamingWork work;
  work.dram_bytes = descriptor::compulsory_bytes(pool);
  work.cache_bytes = threads * (loads * descriptor::lane_bytes(tile.vector * bytes, pitch) +
                                tile.tile_q * tile.vector * size_of(pool.y.dtype));
  work.threads = threads;
  work.instructions_per_thread = 40 + loads * (8 + (bytes < 4 ? tile.vector : 0)) +
                                 inside * window * tile.tile_q * tile.vector + tile.tile_q * tile.vector * 4;
  work.blocks = threads / tile.threads;
  work.threads_per_block = tile.threads;
  work.registers_per_thread = 32 + tile.tile_q * tile.vector * 2;
  work.bytes_in_flight_per_thread = tile.vector * bytes * std::min(std::max(loads, 1.0), 6.0);
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace pool_nhwc_descriptor

Algorithm pool_nhwc() {
  using namespace pool_nhwc_descriptor;
  return describe<Tile, PoolProblem>("pool_nhwc", "pool_forward", "pool/pool_nhwc.cu")
      .takes_prologue()
      .param("VECTOR", &Tile::vector, {8, 4, 2, 1})
      .param("TILE_Q", &Tile::tile_q, {1, 2, 4})
      .param("THREADS", &Tile::threads, {128, 64, 256})
      .rule("C, alignment and VECTOR agree", aligned)
      .pruning("less than half of the tile is idle", no_idle_outputs)
      .rule("the tile fits registers", fits_registers)
      .opens(has_open_kernel)
      .applies(refusal)
      .adds([](const Tile&, const PoolProblem& pool, const Target&) {
        return descriptor::order_of_pool(pool, "one tap after the other, times a factor");
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
