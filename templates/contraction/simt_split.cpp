#include "contraction/simt_split.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "contraction/simt_tiling.h"

namespace kiln::descriptor {
namespace {

struct SplitTiling : SimtTiling {
  int split_k;
};

constexpr int reduce_threads = 128;

int64_t elements_per_n(const Contraction& contraction) {
  return contraction.rows_per_n() * contraction.columns() * contraction.groups();
}

// Pieces of one part's depth: every one has a chunk.
int64_t pieces(const SplitTiling& tiling, const Contraction& contraction) {
  return std::min<int64_t>(tiling.split_k, contraction.chunks(tiling.block_k));
}

int64_t part_bytes(const SplitTiling& tiling, const Contraction& contraction) {
  return pieces(tiling, contraction) * contraction.n() * elements_per_n(contraction) * contraction.products() * 4;
}

int64_t workspace_bytes(const SplitTiling& tiling, const Contractions& parts) {
  int64_t bytes = 0;
  for (const Contraction& part : parts.list) bytes += part_bytes(tiling, part);
  return bytes;
}

int64_t blocks(const SplitTiling& tiling, const Contraction& contraction) {
  return simt_blocks(tiling, contraction) * pieces(tiling, contraction);
}

// Splits that cannot pay: parts that are too short, or a grid that already fills large devices many times.
bool split_is_worthwhile(const SplitTiling& tiling, const Contraction& contraction, const Target&) {
  constexpr int64_t plenty_of_blocks = 4096;
  return contraction.chunks(tiling.block_k) >= 2 * tiling.split_k && blocks(tiling, contraction) <= plenty_of_blocks;
}

std::array<Count, 3> sum_grid(const SplitTiling& tiling, const Contractions& parts) {
  return grid_of(parts, [&](const Contraction& contraction) {
    return std::array{blocks_for(contraction, contraction.rows_per_n(), tiling.block_m),
                      Count{contraction.column_tiles(tiling.block_n)},
                      Count{pieces(tiling, contraction) * contraction.products()}};
  });
}

std::array<Count, 3> reduce_grid(const SplitTiling& tiling, const Contractions& parts) {
  return grid_of(parts, [&](const Contraction& contraction) {
    const int run = simt_access(tiling, contraction).c_run;
    return std::array{blocks_for(contraction, elements_per_n(contraction), reduce_threads * run), Count{1},
                      Count{contraction.products()}};
  });
}

bool parts_fit(const SplitTiling& tiling, const Contractions& parts, const Target&) {
  constexpr int64_t most_workspace = int64_t{1} << 30;
  return !parts.refusal && workspace_bytes(tiling, parts) <= most_workspace &&
         grid_fits(sum_grid(tiling, parts), parts) && grid_fits(reduce_grid(tiling, parts), parts);
}

Program program(const std::string& name, const SplitTiling& tiling, const Contractions& parts, const Target& target,
                const Emitter& emit) {
  const WorkspaceArgument all_parts{0, workspace_bytes(tiling, parts)};
  Launch sum = sums_launch(name, tiling.threads(), {OperandArgument{"a"}, OperandArgument{"b"}, all_parts});
  sum.grid = sum_grid(tiling, parts);
  sum.dynamic_shared_bytes = shared_bytes(tiling, parts);
  Launch reduce = contraction_launch(name + "_reduce", reduce_threads, {all_parts, OperandArgument{"c"}});
  reduce.grid = reduce_grid(tiling, parts);

  int64_t first = 0;  // byte of the workspace
  return program_of(parts, emit, {sum, reduce}, [&](const Contraction& contraction) {
    Prelude prelude = contraction_prelude(contraction);
    add_simt_tiling(prelude, tiling, contraction, min_blocks(tiling, parts, target.arch));
    prelude.constant("SPLIT_K", pieces(tiling, contraction)).constant("REDUCE_THREADS", reduce_threads);
    prelude.constant("PARTS_FIRST", first / 4);
    first += part_bytes(tiling, contraction);
    return prelude;
  });
}

// How long a thread of the second launch takes for its sums: it loads a few parts at a time (lib/conv_split.cuh), from
// L2 at best, and stores.
double reduce_seconds(const SplitTiling& tiling, const Contractions& parts, const DeviceFigures& device) {
  constexpr double parts_at_once = 8, load_clocks = 400;
  int64_t most = 1;
  for (const Contraction& part : parts.list) most = std::max(most, pieces(tiling, part));
  const double loads = std::ceil(static_cast<double>(most) / parts_at_once);
  return (1 + loads) * load_clocks / device.clock_hz;
}

Estimate predict(const SplitTiling& tiling, const Contractions& parts, const Target& target,
                 const DeviceFigures& device) {
  GridWork work = work_of_parts(parts, [&](const Contraction& contraction) {
    const double chunks =
        static_cast<double>(contraction.chunks(tiling.block_k)) / static_cast<double>(pieces(tiling, contraction));
    GridWork part;
    part.block = simt_block_work(tiling, contraction, target.arch, std::ceil(chunks));
    part.blocks = static_cast<double>(blocks(tiling, contraction));
    part.dram_bytes = compulsory_bytes(contraction);
    return part;
  });
  const auto bytes = static_cast<double>(workspace_bytes(tiling, parts));
  work.dram_bytes += bytes * workspace_share(bytes, device);
  work.extra_dram_bytes = bytes * workspace_share(bytes, device);
  work.launches *= 2;
  Estimate estimate = grid_estimate(work, target.arch, device);
  const double reduce = reduce_seconds(tiling, parts, device);
  estimate.overhead += reduce;
  estimate.seconds += reduce;
  return estimate;
}

}  // namespace

Algorithm split_contraction(const std::string& template_path, const std::string& operation, ContractionMaker make,
                            std::vector<int64_t> splits, ContractionRefusal refusal) {
  const std::string name = kernel_of(template_path);
  return add_simt_space(
             describe<SplitTiling>(name, operation, template_path, make)
                 .applies([refusal](const Contractions& parts, const Target&) { return refusal_of(parts, refusal); }))
      .takes_prologue()
      .param("SPLIT_K", &SplitTiling::split_k, std::move(splits))
      .pruning("splitting is worthwhile", for_main(split_is_worthwhile))
      .rule("the parts fit into a gigabyte and a grid", parts_fit)
      .program([name](const SplitTiling& tiling, const Contractions& parts, const Target& target, const Emitter& emit) {
        return program(name, tiling, parts, target, emit);
      })
      .estimate(predict);
}

}  // namespace kiln::descriptor
