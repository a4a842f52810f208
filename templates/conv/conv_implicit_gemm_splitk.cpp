#include <cmath>

#include "conv/gemm_tiling.h"

namespace kiln {
namespace {

using descriptor::ConvProblem;

struct SplitTiling : descriptor::GemmTiling {
  int split_k;
};

constexpr int reduce_threads = 128;

int64_t output_elements(const ConvProblem& conv) {
  return conv.n() * conv.k() * conv.pixels_per_image();
}

int64_t workspace_bytes(const SplitTiling& tiling, const ConvProblem& conv) {
  return tiling.split_k * output_elements(conv) * 4;
}

int64_t blocks(const SplitTiling& tiling, const ConvProblem& conv) {
  return descriptor::channel_tiles(tiling, conv) * descriptor::pixel_tiles(tiling, conv) * tiling.split_k;
}

// Splits that cannot pay: parts that are too short, or a grid that already fills large devices many times.
bool split_is_worthwhile(const SplitTiling& tiling, const ConvProblem& conv, const Target&) {
  constexpr int64_t plenty_of_blocks = 4096;
  return descriptor::gemm_chunks(tiling, conv) >= 2 * tiling.split_k && blocks(tiling, conv) <= plenty_of_blocks &&
         workspace_bytes(tiling, conv) <= (int64_t{1} << 30);
}

Program program(const SplitTiling& tiling, const ConvProblem& conv, const Target& target, const Emitter& emit) {
  Prelude prelude = descriptor::conv_prelude(conv);
  descriptor::add_gemm_tiling(prelude, tiling, conv, target.arch);
  prelude.constant("SPLIT_K", tiling.split_k).constant("REDUCE_THREADS", reduce_threads);

  Launch sum = descriptor::conv_launch("conv_implicit_gemm_splitk", tiling.threads());
  sum.grid[0] = descriptor::blocks_for(conv, conv.pixels_per_image(), tiling.block_m);
  sum.grid[1] = Count{descriptor::channel_tiles(tiling, conv)};
  sum.grid[2] = Count{tiling.split_k};
  sum.arguments = {OperandArgument{"x"}, OperandArgument{"w"}, WorkspaceArgument{0}, UserArgument{}, Scalar::n};

  const int run = descriptor::gemm_access(tiling, conv).y_run;
  Launch reduce = descriptor::conv_launch("conv_implicit_gemm_splitk_reduce", reduce_threads);
  reduce.grid[0] = descriptor::blocks_for(conv, conv.k() * conv.pixels_per_image(), reduce_threads * run);
  // The parts stand in the place of x and w.
  reduce.arguments.erase(reduce.arguments.begin());
  reduce.arguments.front() = WorkspaceArgument{0};

  Program result{{emit.source(prelude)}, {sum, reduce}};
  result.workspace_bytes = workspace_bytes(tiling, conv);
  return result;
}

Estimate predict(const SplitTiling& tiling, const ConvProblem& conv, const Target& target,
                 const DeviceFigures& device) {
  const double chunks = static_cast<double>(descriptor::gemm_chunks(tiling, conv)) / tiling.split_k;
  const double parts = static_cast<double>(workspace_bytes(tiling, conv));
  descriptor::GridWork work;
  work.block = descriptor::gemm_block_work(tiling, conv, target.arch, std::ceil(chunks));
  work.blocks = static_cast<double>(blocks(tiling, conv));
  work.dram_bytes = descriptor::compulsory_bytes(conv);
  // Parts stay in L2 where they fit, which is some three times as fast as device memory.
  const double share = parts * 2 < static_cast<double>(device.l2_bytes) ? 0.3 : 1.0;
  work.extra_dram_bytes = parts * 2 * share;
  work.launches = 2;
  return descriptor::grid_estimate(work, target.arch, device);
}

}  // namespace

Algorithm conv_implicit_gemm_splitk() {
  return descriptor::add_gemm_space(
             describe<SplitTiling, ConvProblem>("conv_implicit_gemm_splitk", "conv_forward",
                                                "conv/conv_implicit_gemm_splitk.cu")
                 .applies([](const ConvProblem& conv, const Target&) { return descriptor::product_refusal(conv); }))
      .takes_prologue()
      .param("SPLIT_K", &SplitTiling::split_k, {4, 2, 8, 16, 32})
      .rule("splitting is worthwhile", split_is_worthwhile)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
