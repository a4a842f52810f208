#include "descriptor/row_blocks.h"

#include <algorithm>
#include <utility>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"

namespace kiln::descriptor {
namespace {

constexpr int most_merge_lanes = 32;
constexpr int64_t plenty_of_blocks = 8192;

int taken(const RowBlocks& blocks) {
  return blocks.across != 0 ? 1 : blocks.vector;
}

// Neighbours in memory that a block takes together: of a row, of rows side by side, or of rows whose runs are.
int64_t side_by_side(const RowBlocks& blocks, const RowLayout& layout) {
  if (blocks.across != 0) return columns(blocks);
  const int64_t taken_together = int64_t{blocks.lanes} * blocks.vector, run = layout.row.front().extent;
  if (layout.row.size() == 1 || taken_together < run) return taken_together;
  const bool runs_continue = !layout.outer.empty() && layout.outer.front().strides.front() == run;
  if (taken_together > run || !runs_continue) return run;
  return run * std::min<int64_t>(blocks.threads / blocks.lanes, layout.outer.front().extent);
}

// Threads that merge the parts of a row.
int merge_lanes(const RowBlocks& blocks) {
  return blocks.splits >= 64 ? most_merge_lanes : 1;
}

}  // namespace

RowLayout layout_of(const RowBlocks& blocks, const Rows& rows) {
  return blocks.across != 0 ? across_rows(rows) : along_rows(rows);
}

int64_t columns(const RowBlocks& blocks) {
  return int64_t{blocks.threads} / blocks.lanes * (blocks.across != 0 ? blocks.vector : 1);
}

int64_t steps(const RowBlocks& blocks, const Rows& rows) {
  return ceil_div(rows.length(), int64_t{blocks.lanes} * taken(blocks) * blocks.splits);
}

int64_t row_block_count(const RowBlocks& blocks, const Rows& rows) {
  if (blocks.across == 0) return ceil_div(rows.count(), columns(blocks));
  const int64_t inner = across_rows(rows).inner.extent;
  return rows.count() / inner * ceil_div(inner, columns(blocks));
}

std::optional<std::string> refuse_row_blocks(const Rows& rows, const Target&) {
  if (rows.length() == 0) return "rows must not be empty";
  return std::nullopt;
}

bool direction_suits(const RowBlocks& blocks, const Rows& rows, const Target&) {
  return !(blocks.across != 0 ? refuse_across_rows(rows) : refuse_along_rows(rows));
}

bool vectors_divide(const RowBlocks& blocks, const Rows& rows, const Target&) {
  return vector_divides(layout_of(blocks, rows), blocks.vector);
}

bool vectors_suit(const RowBlocks& blocks, const Rows& rows, const Target&) {
  return vector_pays(rows, layout_of(blocks, rows), blocks.vector);
}

bool lanes_fill_warps(const RowBlocks& blocks, const Rows&, const Target&) {
  if (blocks.across != 0) return blocks.lanes <= blocks.threads / 8;  // eight neighbours fill a sector
  return blocks.lanes <= 32 || blocks.lanes == blocks.threads;
}

bool threads_have_work(const RowBlocks& blocks, const Rows& rows, const Target&) {
  if (blocks.lanes > 1 && blocks.lanes / 2 * taken(blocks) >= rows.length()) return false;
  if (blocks.across == 0) return true;
  const int64_t groups = blocks.threads / blocks.lanes;
  return groups == 8 || groups / 2 * blocks.vector < across_rows(rows).inner.extent;
}

bool splitting_pays(const RowBlocks& blocks, const Rows& rows, const Target&) {
  if (blocks.splits == 1) return true;
  return steps(blocks, rows) >= 2 && row_block_count(blocks, rows) * blocks.splits <= plenty_of_blocks;
}

bool sums_fit(const RowBlocks& blocks, const Target& target, int words) {
  return blocks.across == 0 || blocks.threads * blocks.vector * words * 4 <= target.arch.shared_per_block_default;
}

std::optional<std::string> order_of_sums(std::string_view algorithm, const RowBlocks& blocks) {
  if (blocks.splits > 1) return std::nullopt;
  if (blocks.across != 0) return order_across_rows(algorithm, blocks.lanes);
  return order_along_rows(algorithm, blocks.lanes, blocks.vector);
}

bool has_open_row_blocks(const RowBlocks& blocks) {
  if (blocks.threads != 256 || (blocks.vector != 1 && blocks.vector != 4)) return false;
  // One kernel serves rows that are split and those that are not.
  if (blocks.splits > 1) return merge_lanes(blocks) > 1 && blocks.lanes == (blocks.across != 0 ? 32 : blocks.threads);
  return blocks.lanes == 32 || (blocks.across != 0 ? blocks.lanes == 1 : blocks.lanes == 4 || blocks.lanes == 256);
}

bool has_open_row_blocks(const RowBlocks& blocks, const Rows& rows, bool keep, int64_t most) {
  if (!has_open_row_blocks(blocks)) return false;
  if (!keep) return blocks.across != 0 || blocks.lanes == blocks.threads;
  return blocks.across == 0 && steps(blocks, rows) <= most;
}

Prelude row_blocks_prelude(const RowBlocks& blocks, const Rows& rows, const Emitter& emit) {
  const RowLayout layout = layout_of(blocks, rows);
  Prelude prelude = rows_prelude(rows, layout, blocks.vector, emit);
  add_row_dimensions(prelude, rows, layout, emit);
  if (blocks.across == 0) prelude.constant("INNER", 1);
  prelude.flag("ACROSS", blocks.across != 0).constant("LANES", blocks.lanes);
  prelude.constant("THREADS", blocks.threads).extent("SPLITS", blocks.splits);
  prelude.constant("MERGE_LANES", emit.open() ? most_merge_lanes : merge_lanes(blocks));
  return prelude;
}

Launch row_blocks_launch(const RowBlocks& blocks, const Rows& rows, std::string entry) {
  Launch launch = launch_of(std::move(entry), blocks.threads);
  if (blocks.across == 0) {
    launch.grid[0] = blocks_for_rows(rows, columns(blocks));
  } else {
    const int64_t inner = across_rows(rows).inner.extent, slices = ceil_div(inner, columns(blocks));
    launch.grid[0] = blocks_for_rows(rows, inner);  // one for each group of rows side by side
    launch.grid[0].fixed *= slices;
    launch.grid[0].per_n *= slices;
  }
  launch.grid[1] = Count{blocks.splits};
  return launch;
}

Launch merge_launch(const RowBlocks& blocks, const Rows& rows, std::string entry) {
  Launch launch = launch_of(std::move(entry), blocks.threads);
  launch.grid[0] = blocks_for_rows(rows, blocks.threads / merge_lanes(blocks));
  return launch;
}

int64_t part_bytes(const RowBlocks& blocks, const Rows& rows, int words) {
  return blocks.splits == 1 ? 0 : rows.count() * blocks.splits * words * 4;
}

Estimate row_blocks_estimate(const RowBlocks& blocks, const Rows& rows, const Target& target,
                             const DeviceFigures& device, const RowWork& work) {
  const RowLayout layout = layout_of(blocks, rows);
  // A block's piece of a line is at least a sector.
  const double least = 32 / static_cast<double>(side_by_side(blocks, layout));
  double bytes = 0, moved = 0;
  for (size_t i = 0; i < rows.operands.size(); ++i) {
    if (!rows.is_full(i)) continue;
    Rows one = rows;
    one.operands = {rows.operands.front(), rows.operands[i]};
    bytes += size_of(rows.operands[i].spec.dtype);
    moved += element_bytes(one, layout_of(blocks, one), blocks.vector, least).written;
  }
  const auto elements = static_cast<double>(rows.elements());
  const auto taken_by_thread = static_cast<double>(steps(blocks, rows));
  const double parts = static_cast<double>(part_bytes(blocks, rows, 1)) * work.shared_words;

  StreamingWork streaming;
  streaming.dram_bytes = work.dram_bytes + 2 * parts;
  streaming.cache_bytes = elements * work.passes * moved + 2 * parts;
  streaming.blocks = static_cast<double>(row_block_count(blocks, rows) * blocks.splits);
  streaming.threads = streaming.blocks * blocks.threads;
  streaming.threads_per_block = blocks.threads;
  streaming.instructions_per_thread =
      80 + 40 * work.shared_words + work.passes * taken_by_thread * (12 + work.instructions * blocks.vector);
  streaming.registers_per_thread = work.registers;
  streaming.shared_bytes_per_block = blocks.across != 0 ? 4 * work.shared_words * blocks.threads * blocks.vector : 0;
  streaming.bytes_in_flight_per_thread = std::min(taken_by_thread, 4.0) * blocks.vector * bytes;
  streaming.launches = work.launches;
  return streaming_estimate(streaming, target.arch, device);
}

}  // namespace kiln::descriptor
