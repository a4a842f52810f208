#include "tensor_ops.h"

#include <fmt/format.h>

#include "boundary.h"
#include "kiln/base/error.h"

namespace kiln::capi {

void tensor_op(Context& context, TensorOpMode mode, const Tensor& a, const std::optional<Tensor>& b,
               const std::optional<Tensor>& c, const Tensor& y, const TensorOpOptions& options, Stream stream) {
  const char* const function = "kiln_tensor_op";
  const int inputs = inputs_of(mode);
  if ((b && inputs < 2) || (c && inputs < 3)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} takes {} inputs, more are given", function, to_string(mode), inputs),
                "pass NULL for what the mode does not read");
  }
  if (inputs == 1) return kiln::tensor_op(context, mode, a, y, options, stream);
  require(b ? &*b : nullptr, function, "b");
  if (inputs == 2) return kiln::tensor_op(context, mode, a, *b, y, options, stream);
  require(c ? &*c : nullptr, function, "c");
  kiln::tensor_op(context, mode, a, *b, *c, y, options, stream);
}

}  // namespace kiln::capi
