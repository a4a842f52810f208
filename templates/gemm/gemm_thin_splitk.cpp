#include "gemm/thin_product.h"

namespace kiln {

Algorithm gemm_thin_splitk() {
  return descriptor::thin_product_splitk();
}

}  // namespace kiln
