#include "conv/gemm_tiling.h"

namespace kiln {
namespace {

using descriptor::GemmTiling;

std::optional<std::string> refusal(const Request& request, const Target&) {
  const ConvForward conv = ConvForward::of(request);
  if (!descriptor::is_pointwise(conv)) return "the filter is not 1x1 with unit stride and no padding";
  return descriptor::packed_refusal(conv);
}

Program program(const GemmTiling& tiling, const Request& request, const Target& target, const Emitter& emit) {
  const ConvForward conv = ConvForward::of(request);
  Prelude prelude = descriptor::conv_prelude(conv);
  descriptor::add_gemm_tiling(prelude, tiling, conv, target.arch);

  Launch launch;
  launch.entry = "conv_1x1";
  launch.grid[0] = descriptor::blocks_for(conv, conv.p() * conv.q(), tiling.block_m);
  launch.grid[1] = Count{descriptor::channel_tiles(tiling, conv)};
  launch.block[0] = static_cast<unsigned>(tiling.threads());
  launch.arguments = descriptor::conv_arguments();
  return Program{{emit.source(prelude)}, {launch}};
}

Estimate predict(const GemmTiling& tiling, const Request& request, const Target& target, const DeviceFigures& device) {
  const ConvForward conv = ConvForward::of(request);
  descriptor::GridWork work;
  work.block = descriptor::gemm_block_work(tiling, conv, target.arch,
                                           static_cast<double>(descriptor::gemm_chunks(tiling, conv)));
  work.blocks = static_cast<double>(descriptor::channel_tiles(tiling, conv) * descriptor::pixel_tiles(tiling, conv));
  work.dram_bytes = descriptor::compulsory_bytes(conv);
  return descriptor::grid_estimate(work, target.arch, device);
}

}  // namespace

Algorithm conv_1x1() {
  return descriptor::add_gemm_space(
             describe<GemmTiling>("conv_1x1", "conv_forward", "conv/conv_1x1.cu").applies(refusal))
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
