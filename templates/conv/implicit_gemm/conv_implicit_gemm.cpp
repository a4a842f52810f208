#include "contraction/simt_product.h"
#include "conv/conv_contractions.h"
#include "conv/depthwise/depthwise.h"

namespace kiln {
namespace conv_implicit_gemm_descriptor {
namespace {

std::optional<std::string> refusal(const descriptor::Contraction& contraction) {
  if (contraction.addresses.pointwise) return "a 1x1 filter with unit stride and no padding: conv_1x1 does that";
  return descriptor::refusal_of_depthwise(contraction);
}

}  // namespace
}  // namespace conv_implicit_gemm_descriptor

Algorithm conv_implicit_gemm() {
  using namespace conv_implicit_gemm_descriptor;
  return descriptor::tiled_contraction("conv/implicit_gemm/conv_implicit_gemm.cu", "conv_forward",
                                       descriptor::forward_products, refusal);
}

}  // namespace kiln
