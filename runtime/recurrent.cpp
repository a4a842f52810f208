#include "kiln/recurrent.h"

#include "operation_call.h"

namespace kiln {
namespace {

template <class Call, class Options>
void say_recurrent(Call& call, const Options& options, const Tensor& batch) {
  call.word("cell", options.cell);
  call.word("direction", options.direction);
  call.word("reset", options.reset);
  call.word("order", options.order);
  say_common(call, options, batch);
  call.user_code(options.epilogue);
}

}  // namespace

void recurrent_forward(Context& context, const Tensor& gates, const Tensor& r, const Tensor& y,
                       const RecurrentOptions& options, Stream stream) {
  run_call<"recurrent_forward">(context, stream, [&](auto& call) {
    call.operand("gates", gates);
    call.operand("r", r);
    call.operand("r_bias", options.r_bias);
    call.operand("peepholes", options.peepholes);
    call.operand("h0", options.h0);
    call.operand("c0", options.c0);
    call.operand("lengths", options.lengths);
    call.operand("y", y);
    call.operand("hn", options.hn);
    call.operand("cn", options.cn);
    call.operand("saved", options.saved);
    say_recurrent(call, options, gates);
  });
}

void recurrent_backward(Context& context, const Tensor& dy, const Tensor& r, const Tensor& saved, const Tensor& dgates,
                        const RecurrentBackwardOptions& options, Stream stream) {
  run_call<"recurrent_backward">(context, stream, [&](auto& call) {
    call.operand("dy", dy);
    call.operand("r", r);
    call.operand("saved", saved);
    call.operand("y", options.y);
    call.operand("peepholes", options.peepholes);
    call.operand("h0", options.h0);
    call.operand("c0", options.c0);
    call.operand("lengths", options.lengths);
    call.operand("dhn", options.dhn);
    call.operand("dcn", options.dcn);
    call.operand("dgates", dgates);
    call.operand("dproducts", options.dproducts);
    call.operand("dh0", options.dh0);
    call.operand("dc0", options.dc0);
    say_recurrent(call, options, dy);
  });
}

}  // namespace kiln
