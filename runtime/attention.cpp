#include "kiln/attention.h"

#include "operation_call.h"

namespace kiln {
namespace {

template <class Call, class Options>
void say_attention(Call& call, const Options& options, const Tensor& batch) {
  call.ints("left", {options.left});
  call.ints("right", {options.right});
  call.word("align", options.align);
  call.word("dropout", options.dropout != 0, "any", "none");
  call.number("scale", options.scale);
  call.number("dropout", options.dropout);
  call.integer("seed", options.seed);
  call.integer("offset", options.offset);
  say_common(call, options, batch);
  call.user_code(options.epilogue);
}

}  // namespace

void attention_forward(Context& context, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& y,
                       const AttentionOptions& options, Stream stream) {
  run_call<"attention_forward">(context, stream, [&](auto& call) {
    call.operand("q", q);
    call.operand("k", k);
    call.operand("v", v);
    call.operand("bias", options.bias);
    call.operand("mask", options.mask);
    call.operand("lengths", options.lengths);
    call.operand("y", y);
    call.operand("lse", options.lse);
    say_attention(call, options, q);
  });
}

// NOLINTNEXTLINE(readability-function-size): each operand that the gradients need has a name
void attention_backward(Context& context, const Tensor& dy, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& y, const Tensor& lse, const Tensor& dq, const AttentionBackwardOptions& options,
                        Stream stream) {
  run_call<"attention_backward">(context, stream, [&](auto& call) {
    call.operand("dy", dy);
    call.operand("q", q);
    call.operand("k", k);
    call.operand("v", v);
    call.operand("y", y);
    call.operand("lse", lse);
    call.operand("bias", options.bias);
    call.operand("mask", options.mask);
    call.operand("lengths", options.lengths);
    call.operand("dq", dq);
    call.operand("dk", options.dk);
    call.operand("dv", options.dv);
    call.operand("dbias", options.dbias);
    say_attention(call, options, dy);
  });
}

}  // namespace kiln
