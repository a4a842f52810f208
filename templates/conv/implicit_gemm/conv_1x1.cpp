#include "contraction/simt_product.h"
#include "conv/conv_contractions.h"

namespace kiln {
namespace conv_1x1_descriptor {
namespace {

std::optional<std::string> refusal(const descriptor::Contraction& contraction) {
  if (!contraction.addresses.pointwise) return "the filter is not 1x1 with unit stride and no padding";
  return std::nullopt;
}

}  // namespace
}  // namespace conv_1x1_descriptor

Algorithm conv_1x1() {
  using namespace conv_1x1_descriptor;
  return descriptor::tiled_contraction("conv/implicit_gemm/conv_1x1.cu", "conv_forward", descriptor::forward_products,
                                       refusal);
}

}  // namespace kiln
