#include "kiln/conv.h"

#include "conv_call.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/local_conv.h"

namespace kiln {
namespace {

template <class Options>
CallKey key_of(CallKind kind, const Tensor& x, const Tensor& w, const Tensor& y, const Options& options) {
  CallKey key(static_cast<int64_t>(kind));
  key.add(x);
  key.add(w);
  key.add(y);
  add_convolution(key, options);
  key.add(options.epilogue);
  return key;
}

template <class Options>
Request request_of(std::string_view operation, const Tensor& x, const Tensor& w, const Tensor& y,
                   const Options& options) {
  ConvForward conv;
  static_cast<ConvPass&>(conv) = pass_of(x, options);
  conv.x = x.spec();
  conv.w = w.spec();
  conv.y = y.spec();
  set_stages(operation, options.epilogue, conv);
  return with_user_code(conv.request(), y, options.epilogue);
}

template <class Options>
void enqueue(CallKind kind, std::string_view operation, Context& context, const Tensor& x, const Tensor& w,
             const Tensor& y, const Options& options, Stream stream) {
  refuse_overlap(operation, y, "x", x);
  refuse_overlap(operation, y, "w", w);
  CallOperands operands{x, w, y};
  operands.add_epilogue(operation, y, options.epilogue);
  run_call(context, key_of(kind, x, w, y, options), operands.addresses(), staged_values_of(options, x), stream,
           [&] { return request_of(operation, x, w, y, options); });
}

}  // namespace

void conv_forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& y, const ConvOptions& options,
                  Stream stream) {
  enqueue(CallKind::conv_forward, "conv_forward", context, x, w, y, options, stream);
}

void local_conv_forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& y,
                        const LocalConvOptions& options, Stream stream) {
  enqueue(CallKind::local_conv_forward, "local_conv_forward", context, x, w, y, options, stream);
}

}  // namespace kiln
