#include "kiln/templates/catalogue.h"

#include <utility>

// The one list of algorithms, a line each; the descriptor of pool_simple is pool/pool_simple.cpp. The order is that of
// reports and has no other meaning.
// clang-format off
#define KILN_ALGORITHMS(algorithm) \
  algorithm(conv_simple) \
  algorithm(conv_direct) \
  algorithm(conv_depthwise_nchw) \
  algorithm(conv_depthwise_nhwc) \
  algorithm(conv_1x1) \
  algorithm(conv_implicit_gemm) \
  algorithm(conv_implicit_gemm_splitk) \
  algorithm(pool_simple) \
  algorithm(pool_nchw) \
  algorithm(pool_nhwc) \
  algorithm(pool_global_nchw) \
  algorithm(pool_global_nhwc) \
  algorithm(softmax_simple) \
  algorithm(softmax_warp) \
  algorithm(softmax_block) \
  algorithm(softmax_online) \
  algorithm(softmax_split) \
  algorithm(softmax_strided)
// clang-format on

namespace kiln {

#define KILN_DECLARE(name) Algorithm name();
KILN_ALGORITHMS(KILN_DECLARE)
#undef KILN_DECLARE

Catalogue make_catalogue(SourceLibrary library) {
#define KILN_CALL(name) name(),
  return Catalogue(std::move(library), {KILN_ALGORITHMS(KILN_CALL)});
#undef KILN_CALL
}

}  // namespace kiln
