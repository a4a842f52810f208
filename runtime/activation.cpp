#include "kiln/activation.h"

#include "operation_call.h"

namespace kiln {
namespace {

template <class Call>
void say_function(Call& call, const ActivationOptions& options, const Tensor& images) {
  call.word("mode", options.mode);
  say_common(call, options, images);
  say_activation_numbers(call, options);
  call.user_code(options.epilogue);
}

// Takes `x` or `y`; the other is null.
void backward(Context& context, const Tensor* x, const Tensor* y, const Tensor& dy, const Tensor& dx,
              const ActivationOptions& options, Stream stream) {
  run_call<"activation_backward">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("y", y);
    call.operand("dy", dy);
    call.operand("dx", dx);
    say_function(call, options, dy);
  });
}

}  // namespace

void activation_forward(Context& context, const Tensor& x, const Tensor& y, const ActivationOptions& options,
                        Stream stream) {
  run_call<"activation_forward">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("y", y);
    say_function(call, options, x);
  });
}

void activation_backward(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dx,
                         const ActivationOptions& options, Stream stream) {
  backward(context, &x, nullptr, dy, dx, options, stream);
}

void activation_backward_from_y(Context& context, const Tensor& y, const Tensor& dy, const Tensor& dx,
                                const ActivationOptions& options, Stream stream) {
  backward(context, nullptr, &y, dy, dx, options, stream);
}

}  // namespace kiln
