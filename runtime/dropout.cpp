#include "kiln/dropout.h"

#include "operation_call.h"

namespace kiln {

void dropout_forward(Context& context, const Tensor& x, const Tensor& y, const DropoutOptions& options, Stream stream) {
  run_call<"dropout">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("y", y);
    say_common(call, options, x);
    call.number("p", options.p);
    call.integer("seed", options.seed);
    call.integer("offset", options.offset);
    call.user_code(options.epilogue);
  });
}

void dropout_backward(Context& context, const Tensor& dy, const Tensor& dx, const DropoutOptions& options,
                      Stream stream) {
  dropout_forward(context, dy, dx, options, stream);
}

}  // namespace kiln
