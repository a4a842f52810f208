#include "kiln/ctc_loss.h"

#include "operation_call.h"

namespace kiln {
namespace {

template <class Call, class Options>
void say_inputs(Call& call, const Tensor& x, const Tensor& targets, const Options& options) {
  call.operand("x", x);
  call.operand("targets", targets);
  call.operand("input_lengths", options.input_lengths);
  call.operand("target_lengths", options.target_lengths);
}

template <class Call, class Options>
void say_options(Call& call, const Options& options, const Tensor& x) {
  call.word("input", options.input);
  call.ints("blank", {options.blank});
  call.word("infinite", options.infinite);
  say_common(call, options, x);
  call.user_code(options.epilogue);
}

}  // namespace

void ctc_loss_forward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& loss,
                      const CtcLossOptions& options, Stream stream) {
  run_call<"ctc_loss_forward">(context, stream, [&](auto& call) {
    say_inputs(call, x, targets, options);
    call.operand("loss", loss);
    call.operand("prefixes", options.prefixes);
    say_options(call, options, x);
  });
}

void ctc_loss_backward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& prefixes,
                       const Tensor& dx, const CtcLossBackwardOptions& options, Stream stream) {
  run_call<"ctc_loss_backward">(context, stream, [&](auto& call) {
    say_inputs(call, x, targets, options);
    call.operand("dloss", options.dloss);
    call.operand("prefixes", prefixes);
    call.operand("dx", dx);
    say_options(call, options, x);
  });
}

}  // namespace kiln
