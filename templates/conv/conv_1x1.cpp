#include "conv/gemm_tiling.h"

namespace kiln {
namespace {

std::optional<std::string> refusal(const descriptor::ConvProblem& conv) {
  if (!conv.pointwise) return "the filter is not 1x1 with unit stride and no padding";
  return std::nullopt;
}

}  // namespace

Algorithm conv_1x1() {
  return descriptor::gemm_convolution("conv_1x1", "conv_forward", refusal);
}

}  // namespace kiln
