#include "contraction/simt_product.h"
#include "conv/conv_contractions.h"

namespace kiln {
namespace {

std::optional<std::string> refusal(const descriptor::Contraction& contraction) {
  if (!contraction.addresses.pointwise) return "the filter is not 1x1 with unit stride and no padding";
  return std::nullopt;
}

}  // namespace

Algorithm conv_1x1() {
  return descriptor::tiled_contraction("conv/implicit_gemm/conv_1x1.cu", "conv_forward",
                                       descriptor::forward_contractions, refusal);
}

}  // namespace kiln
