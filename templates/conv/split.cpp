#include "conv/split.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "conv/gemm_tiling.h"

namespace kiln::descriptor {
namespace {

struct SplitTiling : GemmTiling {
  int split_k;
};

constexpr int reduce_threads = 128;

int64_t output_elements(const ConvProblem& conv) {
  return conv.n() * conv.k() * conv.pixels_per_image();
}

// Pieces of one part's filter: every one has a chunk.
int64_t pieces(const SplitTiling& tiling, const ConvProblem& conv) {
  return std::min<int64_t>(tiling.split_k, gemm_chunks(tiling, conv));
}

int64_t part_bytes(const SplitTiling& tiling, const ConvProblem& conv) {
  return pieces(tiling, conv) * output_elements(conv) * conv.products() * 4;
}

int64_t workspace_bytes(const SplitTiling& tiling, const ConvParts& parts) {
  int64_t bytes = 0;
  for (const ConvPart& part : parts.list) bytes += part_bytes(tiling, part.conv);
  return bytes;
}

int64_t blocks(const SplitTiling& tiling, const ConvProblem& conv) {
  return gemm_blocks(tiling, conv) * pieces(tiling, conv);
}

// Splits that cannot pay: parts that are too short, or a grid that already fills large devices many times.
bool split_is_worthwhile(const SplitTiling& tiling, const ConvProblem& conv, const Target&) {
  constexpr int64_t plenty_of_blocks = 4096;
  return gemm_chunks(tiling, conv) >= 2 * tiling.split_k && blocks(tiling, conv) <= plenty_of_blocks;
}

std::array<Count, 3> sum_grid(const SplitTiling& tiling, const ConvParts& parts) {
  return grid_of(parts, [&](const ConvProblem& conv) {
    return std::array{blocks_for(conv, conv.pixels_per_image(), tiling.block_m), Count{channel_tiles(tiling, conv)},
                      Count{pieces(tiling, conv) * conv.products()}};
  });
}

std::array<Count, 3> reduce_grid(const SplitTiling& tiling, const ConvParts& parts) {
  return grid_of(parts, [&](const ConvProblem& conv) {
    const int run = gemm_access(tiling, conv).y_run;
    return std::array{blocks_for(conv, conv.k() * conv.pixels_per_image(), reduce_threads * run), Count{1},
                      Count{conv.products()}};
  });
}

bool parts_fit(const SplitTiling& tiling, const ConvParts& parts, const Target&) {
  constexpr int64_t most_workspace = int64_t{1} << 30;
  return !parts.refusal && workspace_bytes(tiling, parts) <= most_workspace &&
         grid_fits(sum_grid(tiling, parts), parts) && grid_fits(reduce_grid(tiling, parts), parts);
}

Program program(const std::string& name, const SplitTiling& tiling, const ConvParts& parts, const Target& target,
                const Emitter& emit) {
  const WorkspaceArgument all_parts{0, workspace_bytes(tiling, parts)};
  Launch sum = conv_launch(name, tiling.threads());
  sum.grid = sum_grid(tiling, parts);
  sum.arguments = {OperandArgument{"x"}, OperandArgument{"w"}, all_parts, UserArgument{}, Scalar::n};

  Launch reduce = conv_launch(name + "_reduce", reduce_threads);
  reduce.grid = reduce_grid(tiling, parts);
  // The parts stand in the place of x and w.
  reduce.arguments.erase(reduce.arguments.begin());
  reduce.arguments.front() = all_parts;

  int64_t first = 0;  // byte of the workspace
  return program_of(parts, emit, {sum, reduce}, [&](const ConvProblem& conv) {
    Prelude prelude = conv_prelude(conv);
    add_gemm_tiling(prelude, tiling, conv, min_blocks(tiling, parts, target.arch));
    prelude.constant("SPLIT_K", pieces(tiling, conv)).constant("REDUCE_THREADS", reduce_threads);
    prelude.constant("PARTS_FIRST", first / 4);
    first += part_bytes(tiling, conv);
    return prelude;
  });
}

// How long a thread of the second launch takes for its sums: it loads a few parts at a time (lib/conv_split.cuh), from
// L2 at best.
double reduce_seconds(const SplitTiling& tiling, const ConvParts& parts, const DeviceFigures& device) {
  constexpr double parts_at_once = 8, load_clocks = 600;
  int64_t most = 1;
  for (const ConvPart& part : parts.list) most = std::max(most, pieces(tiling, part.conv));
  return std::ceil(static_cast<double>(most) / parts_at_once) * load_clocks / device.clock_hz;
}

Estimate predict(const SplitTiling& tiling, const ConvParts& parts, const Target& target, const DeviceFigures& device) {
  GridWork work = work_of_parts(parts, [&](const ConvProblem& conv) {
    const double chunks = static_cast<double>(gemm_chunks(tiling, conv)) / static_cast<double>(pieces(tiling, conv));
    GridWork part;
    part.block = gemm_block_work(tiling, conv, target.arch, std::ceil(chunks));
    part.blocks = static_cast<double>(blocks(tiling, conv));
    part.dram_bytes = compulsory_bytes(conv);
    return part;
  });
  const auto bytes = static_cast<double>(workspace_bytes(tiling, parts));
  work.extra_dram_bytes = bytes * 2 * workspace_share(bytes, device);
  work.launches *= 2;
  Estimate estimate = grid_estimate(work, target.arch, device);
  const double reduce = reduce_seconds(tiling, parts, device);
  estimate.overhead += reduce;
  estimate.seconds += reduce;
  return estimate;
}

}  // namespace

Algorithm split_convolution(const std::string& name, const std::string& operation, std::vector<int64_t> splits,
                            std::optional<std::string> (*refusal)(const ConvProblem&)) {
  return add_gemm_space(
             describe<SplitTiling, ConvParts>(name, operation, gemm_template(name))
                 .applies([refusal](const ConvParts& parts, const Target&) { return parts_refusal(parts, refusal); }))
      .takes_prologue()
      .param("SPLIT_K", &SplitTiling::split_k, std::move(splits))
      .rule("splitting is worthwhile", for_main(split_is_worthwhile))
      .rule("the parts fit into a gigabyte and a grid", parts_fit)
      .program([name](const SplitTiling& tiling, const ConvParts& parts, const Target& target, const Emitter& emit) {
        return program(name, tiling, parts, target, emit);
      })
      .estimate(predict);
}

}  // namespace kiln::descriptor
