#include "operations/tensor_op_words.h"

#include "kiln/base/error.h"

namespace kiln {

TensorOpMode tensor_op_mode_of(const Request& request) {
  for (const TensorOpMode mode : tensor_op_modes()) {
    if (to_string(mode) == request.word("mode")) return mode;
  }
  throw Error(ErrorCode::internal, "a tensor_op without a mode");
}

}  // namespace kiln
