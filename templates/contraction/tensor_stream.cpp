#include "contraction/tensor_stream.h"

#include <algorithm>
#include <cmath>

#include "contraction/tensor_estimate.h"
#include "descriptor/numbers.h"

namespace kiln::descriptor {
namespace {

constexpr int64_t fewest_chunks = 6;  // of a block that pays
constexpr int of_slot = 4;            // sums of a slot that a thread of the second launch adds

int64_t tiles(const SharedTiling& tiling, const Contraction& contraction) {
  return contraction.multiplies() ? tiles_of(tiling.block_m, tiling.block_n, contraction) : 0;
}
int64_t chunks(const SharedTiling& tiling, const Contraction& contraction) {
  return tiles(tiling, contraction) * contraction.chunks(tiling.block_k);
}

template <class Of>
int64_t of_all(const SharedTiling& tiling, const Contractions& parts, Of of) {
  int64_t sum = 0;
  for (const Contraction& part : parts.list) sum += of(tiling, part);
  return sum;
}

// Blocks that meet a tile, about.
double blocks_of_tile(const SharedTiling& tiling, const Contractions& parts) {
  return 1 + tiling.blocks / std::max(1.0, static_cast<double>(of_all(tiling, parts, tiles)));
}
int teams(const SharedTiling& tiling, const Contractions& parts) {
  return teams_for(blocks_of_tile(tiling, parts));
}
// Meetings of a block and a tile, at most: as many as there are slots.
int64_t meetings(const SharedTiling& tiling, const Contractions& parts) {
  return tiling.blocks + of_all(tiling, parts, tiles);
}
int64_t workspace_bytes(const SharedTiling& tiling, const Contractions& parts) {
  return meetings(tiling, parts) * tiling.block_m * tiling.block_n * 4;
}

// Bytes from device memory. Blocks that read the same of an operand do so at different times, and find what L2 has
// kept.
double read_bytes(const SharedTiling& tiling, const Contraction& contraction, const DeviceFigures& device) {
  const double a = contraction.a_bytes(), b = contraction.b_bytes();
  const double compulsory = compulsory_bytes(contraction);
  if (2 * (a + b) <= static_cast<double>(device.l2_bytes)) return compulsory;
  const auto groups = static_cast<double>(contraction.groups());
  return compulsory + a * (static_cast<double>(contraction.column_tiles(tiling.block_n)) / groups - 1) +
         b * (static_cast<double>(contraction.row_tiles(tiling.block_m)) - 1);
}

}  // namespace

bool TensorStream::is_worthwhile(const SharedTiling& tiling, const Contractions& parts) {
  return !parts.refusal && of_all(tiling, parts, tiles) < tiling.blocks &&
         of_all(tiling, parts, chunks) >= fewest_chunks * tiling.blocks;
}

bool TensorStream::parts_fit(const SharedTiling& tiling, const Contractions& parts) const {
  constexpr int64_t most_workspace = int64_t{1} << 30, most_chunks = int64_t{1} << 30;
  return !parts.refusal && launches_of(parts) == 1 && of_all(tiling, parts, chunks) <= most_chunks &&
         workspace_bytes(tiling, parts) <= most_workspace && grid_fits(reduce_grid(tiling, parts), parts);
}

std::array<Count, 3> TensorStream::reduce_grid(const SharedTiling& tiling, const Contractions& parts) const {
  return grid_of(parts, [&](const Contraction& contraction) {
    const int team = reduce_threads / teams(tiling, parts);
    const int64_t shares = int64_t{tiling.block_m} * tiling.block_n / (of_slot * team);
    return std::array{blocks_for(contraction, contraction.rows_per_n(), tiling.block_m),
                      Count{contraction.column_tiles(tiling.block_n) * shares}, Count{contraction.products()}};
  });
}

Program TensorStream::program(const SharedTiling& tiling, const Contractions& parts, const Target& target,
                              const Emitter& emit) const {
  const WorkspaceArgument slots{0, workspace_bytes(tiling, parts)};
  Launch sum = sums_launch(name_, tiling.threads(), {OperandArgument{"a"}, OperandArgument{"b"}, slots});
  sum.dynamic_shared_bytes = shared_bytes(tiling, parts);
  Launch reduce = contraction_launch(name_ + "_reduce", reduce_threads, {slots, OperandArgument{"c"}});
  reduce.grid = reduce_grid(tiling, parts);

  const int blocks = tensor_min_blocks(tiling, parts, bring_, target.arch);
  Program program = program_of(parts, emit, {sum, reduce}, [&](const Contraction& contraction) {
    Prelude prelude = contraction_prelude(contraction);
    add_tensor_tiling(prelude, tiling, contraction, bring_, blocks);
    prelude.constant("SPLIT_K", 1).constant("REDUCE_THREADS", reduce_threads).constant("PARTS_FIRST", 0);
    add_outputs_of_parts(prelude, contraction);
    prelude.constant("BLOCKS", tiling.blocks).constant("TEAMS", teams(tiling, parts));
    prelude.constant("ADDED", std::min(tensor_access(contraction, bring_).c_run, of_slot));
    return prelude;
  });
  Launch& sums = std::get<Launch>(program.steps[parts.packed.size()]);  // behind those that pack
  sums.grid = {Count{tiling.blocks}, Count{1}, Count{1}};               // any serves any class
  return program;
}

Estimate TensorStream::predict(const SharedTiling& tiling, const Contractions& parts, const Target& target,
                               const DeviceFigures& given) const {
  const DeviceFigures device = with_rate_of_l2(given, target.arch);
  const auto all_chunks = std::max(1.0, static_cast<double>(of_all(tiling, parts, chunks)));
  const double blocks = tiling.blocks, share = std::ceil(all_chunks / blocks);
  GridWork work = work_of_parts(parts, [&](const Contraction& contraction) {
    GridWork part;
    part.blocks = blocks * static_cast<double>(chunks(tiling, contraction)) / all_chunks;
    part.block = tensor_block_work(tiling, contraction, bring_, target.arch, device, share, blocks, Results::parts);
    part.dram_bytes = read_bytes(tiling, contraction, device);
    return part;
  });
  // Where the tile changes, a block begins anew.
  if (std::fmod(static_cast<double>(parts.main().chunks(tiling.block_k)), share) != 0) {
    work.block.latency_clocks += work.block.stall_clocks;
    work.block.stall_clocks *= 2;
  }
  const auto bytes = static_cast<double>(workspace_bytes(tiling, parts));
  work.dram_bytes += bytes * workspace_share(bytes, device);
  work.extra_dram_bytes += bytes * workspace_share(bytes, device);
  work.launches += static_cast<int>(launches_of(parts));
  Estimate estimate = tensor_estimate(work, target.arch, device);
  const double reduce = added_parts_seconds(blocks_of_tile(tiling, parts) / teams(tiling, parts), device);
  estimate.overhead += reduce;
  estimate.seconds += reduce;
  return estimate;
}

}  // namespace kiln::descriptor
