#include "conv_call.h"
#include "kiln/conv.h"
#include "kiln/local_conv.h"

namespace kiln {
namespace {

template <OperationName operation, class Options>
void by_data(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx, const Options& options,
             Stream stream) {
  run_call<operation>(context, stream, [&](auto& call) {
    call.operand("dy", dy);
    call.operand("w", w);
    call.operand("dx", dx);
    say_staged(call, options.epilogue);
    say_convolution(call, options, dy);
  });
}

template <OperationName operation, class Options>
void by_filter(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw, const Options& options,
               Stream stream) {
  run_call<operation>(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("dy", dy);
    call.operand("dw", dw);
    say_convolution(call, options, x);
    call.user_code(options.epilogue);
  });
}

}  // namespace

void conv_backward_data(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx,
                        const ConvBackwardOptions& options, Stream stream) {
  by_data<"conv_backward_data">(context, dy, w, dx, options, stream);
}

void local_conv_backward_data(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx,
                              const LocalConvBackwardOptions& options, Stream stream) {
  by_data<"local_conv_backward_data">(context, dy, w, dx, options, stream);
}

void conv_backward_filter(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw,
                          const ConvBackwardOptions& options, Stream stream) {
  by_filter<"conv_backward_filter">(context, x, dy, dw, options, stream);
}

void local_conv_backward_filter(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw,
                                const LocalConvBackwardOptions& options, Stream stream) {
  by_filter<"local_conv_backward_filter">(context, x, dy, dw, options, stream);
}

void conv_backward_bias(Context& context, const Tensor& dy, const Tensor& db, const ConvBackwardBiasOptions& options,
                        Stream stream) {
  run_call<"conv_backward_bias">(context, stream, [&](auto& call) {
    call.operand("dy", dy);
    call.operand("db", db);
    say_common(call, options, dy);
    call.user_code(options.epilogue);
  });
}

}  // namespace kiln
