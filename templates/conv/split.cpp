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

int64_t workspace_bytes(const SplitTiling& tiling, const ConvProblem& conv) {
  return pieces(tiling, conv) * output_elements(conv) * conv.products() * 4;
}

int64_t blocks(const SplitTiling& tiling, const ConvProblem& conv) {
  return gemm_blocks(tiling, conv) * pieces(tiling, conv);
}

// Splits that cannot pay: parts that are too short, or a grid that already fills large devices many times.
bool split_is_worthwhile(const SplitTiling& tiling, const ConvProblem& conv, const Target&) {
  constexpr int64_t plenty_of_blocks = 4096;
  return gemm_chunks(tiling, conv) >= 2 * tiling.split_k && blocks(tiling, conv) <= plenty_of_blocks &&
         workspace_bytes(tiling, conv) <= (int64_t{1} << 30);
}

Program program(const std::string& name, const SplitTiling& tiling, const ConvProblem& conv, const Target& target,
                const Emitter& emit) {
  Prelude prelude = conv_prelude(conv);
  add_gemm_tiling(prelude, tiling, conv, target.arch);
  prelude.constant("SPLIT_K", pieces(tiling, conv)).constant("REDUCE_THREADS", reduce_threads);

  Launch sum = conv_launch(name, tiling.threads());
  sum.grid[0] = blocks_for(conv, conv.pixels_per_image(), tiling.block_m);
  sum.grid[1] = Count{channel_tiles(tiling, conv)};
  sum.grid[2] = Count{pieces(tiling, conv) * conv.products()};
  sum.arguments = {OperandArgument{"x"}, OperandArgument{"w"}, WorkspaceArgument{0}, UserArgument{}, Scalar::n};

  const int run = gemm_access(tiling, conv).y_run;
  Launch reduce = conv_launch(name + "_reduce", reduce_threads);
  reduce.grid[0] = blocks_for(conv, conv.k() * conv.pixels_per_image(), reduce_threads * run);
  reduce.grid[2] = Count{conv.products()};
  // The parts stand in the place of x and w.
  reduce.arguments.erase(reduce.arguments.begin());
  reduce.arguments.front() = WorkspaceArgument{0};

  Program result{{emit.source(prelude)}, {sum, reduce}};
  result.workspace_bytes = workspace_bytes(tiling, conv);
  return result;
}

Estimate predict(const SplitTiling& tiling, const ConvProblem& conv, const Target& target,
                 const DeviceFigures& device) {
  const double chunks = static_cast<double>(gemm_chunks(tiling, conv)) / static_cast<double>(pieces(tiling, conv));
  const double parts = static_cast<double>(workspace_bytes(tiling, conv));
  GridWork work;
  work.block = gemm_block_work(tiling, conv, target.arch, std::ceil(chunks));
  work.blocks = static_cast<double>(blocks(tiling, conv));
  work.dram_bytes = compulsory_bytes(conv);
  // Parts stay in L2 where they fit, which is some three times as fast as device memory.
  const double share = parts * 2 < static_cast<double>(device.l2_bytes) ? 0.3 : 1.0;
  work.extra_dram_bytes = parts * 2 * share;
  work.launches = 2;
  return grid_estimate(work, target.arch, device);
}

}  // namespace

Algorithm split_convolution(const std::string& name, const std::string& operation, std::vector<int64_t> splits) {
  return add_gemm_space(
             describe<SplitTiling, ConvParts>(name, operation, gemm_template(name))
                 .applies([](const ConvParts& parts, const Target&) { return parts_refusal(parts, no_refusal); }))
      .takes_prologue()
      .param("SPLIT_K", &SplitTiling::split_k, std::move(splits))
      .rule("splitting is worthwhile", for_main(split_is_worthwhile))
      .program([name](const SplitTiling& tiling, const ConvParts& parts, const Target& target, const Emitter& emit) {
        return program_of(parts, [&](const ConvProblem& conv) { return program(name, tiling, conv, target, emit); });
      })
      .estimate(
          [](const SplitTiling& tiling, const ConvParts& parts, const Target& target, const DeviceFigures& device) {
            return estimate_of(parts, [&](const ConvProblem& conv) { return predict(tiling, conv, target, device); });
          });
}

}  // namespace kiln::descriptor
