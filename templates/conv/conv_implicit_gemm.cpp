#include "conv/depthwise.h"
#include "conv/gemm_tiling.h"

namespace kiln {
namespace {

std::optional<std::string> refusal(const descriptor::ConvProblem& conv) {
  if (conv.pointwise) return "a 1x1 filter with unit stride and no padding: conv_1x1 does that";
  return descriptor::refusal_of_depthwise(conv);
}

}  // namespace

Algorithm conv_implicit_gemm() {
  return descriptor::gemm_convolution("conv_implicit_gemm", "conv_forward", refusal);
}

}  // namespace kiln
