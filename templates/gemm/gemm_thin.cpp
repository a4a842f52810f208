#include "gemm/thin_product.h"

namespace kiln {

Algorithm gemm_thin() {
  return descriptor::thin_product();
}

}  // namespace kiln
