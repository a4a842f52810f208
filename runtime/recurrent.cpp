#include "kiln/recurrent.h"

#include "operation_call.h"

namespace kiln {

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
    call.word("cell", options.cell);
    call.word("direction", options.direction);
    call.word("reset", options.reset);
    call.word("order", options.order);
    say_common(call, options, gates);
    call.user_code(options.epilogue);
  });
}

}  // namespace kiln
