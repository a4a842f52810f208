#include "kiln/softmax.h"

#include "operation_call.h"

namespace kiln {
namespace {

template <class Call>
void say_options(Call& call, const SoftmaxOptions& options, const Tensor& images) {
  call.ints("axis", {options.axis});
  call.word("mode", options.mode);
  say_common(call, options, images);
  call.user_code(options.epilogue);
}

}  // namespace

void softmax_forward(Context& context, const Tensor& x, const Tensor& y, const SoftmaxOptions& options, Stream stream) {
  run_call<"softmax_forward">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("y", y);
    say_options(call, options, x);
  });
}

void softmax_backward(Context& context, const Tensor& y, const Tensor& dy, const Tensor& dx,
                      const SoftmaxOptions& options, Stream stream) {
  run_call<"softmax_backward">(context, stream, [&](auto& call) {
    call.operand("y", y);
    call.operand("dy", dy);
    call.operand("dx", dx);
    say_options(call, options, dy);
  });
}

}  // namespace kiln
