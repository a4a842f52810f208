#include "kiln/conv.h"

#include "conv_call.h"
#include "kiln/local_conv.h"

namespace kiln {
namespace {

template <OperationName operation, class Options>
void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& y, const Options& options,
             Stream stream) {
  run_call<operation>(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("w", w);
    call.operand("y", y);
    say_staged(call, options.epilogue);
    say_convolution(call, options, x);
  });
}

}  // namespace

void conv_forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& y, const ConvOptions& options,
                  Stream stream) {
  forward<"conv_forward">(context, x, w, y, options, stream);
}

void local_conv_forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& y,
                        const LocalConvOptions& options, Stream stream) {
  forward<"local_conv_forward">(context, x, w, y, options, stream);
}

}  // namespace kiln
