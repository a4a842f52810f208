#include "kiln/loss.h"

#include "operation_call.h"

namespace kiln {
namespace {

// One loss a row and one for all are different operands: `each` and `all`, of which one is `tensor`.
template <class Call>
void say_loss(Call& call, std::string_view each, std::string_view all, const Tensor* tensor,
              const CrossEntropyOptions& options) {
  const bool is_each = options.reduction == LossReduction::none;
  call.operand(each, is_each ? tensor : nullptr);
  call.operand(all, is_each ? nullptr : tensor);
}

template <class Call>
void say_options(Call& call, const CrossEntropyOptions& options, const Tensor& x) {
  call.word("reduction", options.reduction);
  call.ints("ignore", {options.ignore});
  call.word("smoothing", options.smoothing != 0, "any", "none");
  say_common(call, options, x);
  call.number("smoothing", options.smoothing);
  call.user_code(options.epilogue);
}

// `dloss` is null where it is 1.
void backward(Context& context, const Tensor& x, const Tensor& targets, const Tensor* dloss, const Tensor& dx,
              const CrossEntropyOptions& options, Stream stream) {
  run_call<"cross_entropy_backward">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("targets", targets);
    call.operand("weights", options.weights);
    say_loss(call, "dlosses", "dloss", dloss, options);
    call.operand("dx", dx);
    say_options(call, options, x);
  });
}

}  // namespace

void cross_entropy_forward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& loss,
                           const CrossEntropyOptions& options, Stream stream) {
  run_call<"cross_entropy_forward">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("targets", targets);
    call.operand("weights", options.weights);
    say_loss(call, "losses", "loss", &loss, options);
    say_options(call, options, x);
  });
}

void cross_entropy_backward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& dloss,
                            const Tensor& dx, const CrossEntropyOptions& options, Stream stream) {
  backward(context, x, targets, &dloss, dx, options, stream);
}

void cross_entropy_backward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& dx,
                            const CrossEntropyOptions& options, Stream stream) {
  backward(context, x, targets, nullptr, dx, options, stream);
}

}  // namespace kiln
