#include "conv_call.h"
#include "kiln/conv.h"
#include "kiln/generator/operations/conv_backward_bias.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_backward_filter.h"
#include "kiln/local_conv.h"

namespace kiln {
namespace {

template <class Options>
CallKey key_of(CallKind kind, const Tensor& a, const Tensor& b, const Tensor& c, const Options& options) {
  CallKey key(static_cast<int64_t>(kind));
  key.add(a);
  key.add(b);
  key.add(c);
  add_convolution(key, options);
  key.add(options.epilogue);
  return key;
}

CallKey key_of(const Tensor& dy, const Tensor& db, const ConvBackwardBiasOptions& options) {
  CallKey key(static_cast<int64_t>(CallKind::conv_backward_bias));
  key.add(dy);
  key.add(db);
  key.add(flags_of(options));
  key.add(options.epilogue);
  return key;
}

template <class Options>
void enqueue_data(CallKind kind, std::string_view operation, Context& context, const Tensor& dy, const Tensor& w,
                  const Tensor& dx, const Options& options, Stream stream) {
  refuse_overlap(operation, dx, "dy", dy, "dx");
  refuse_overlap(operation, dx, "w", w, "dx");
  CallOperands operands{dy, w, dx};
  operands.add_epilogue(operation, dx, options.epilogue, "dx");
  run_call(context, key_of(kind, dy, w, dx, options), operands.addresses(), staged_values_of(options, dy), stream, [&] {
    ConvBackwardData data;
    static_cast<ConvPass&>(data) = pass_of(dy, options);
    data.dy = dy.spec();
    data.w = w.spec();
    data.dx = dx.spec();
    set_stages(operation, options.epilogue, data);
    return with_user_code(data.request(), dx, options.epilogue);
  });
}

template <class Options>
void enqueue_filter(CallKind kind, std::string_view operation, Context& context, const Tensor& x, const Tensor& dy,
                    const Tensor& dw, const Options& options, Stream stream) {
  refuse_stages(operation, options.epilogue);
  refuse_overlap(operation, dw, "x", x, "dw");
  refuse_overlap(operation, dw, "dy", dy, "dw");
  CallOperands operands{x, dy, dw};
  operands.add_user_code(operation, dw, options.epilogue, "dw");
  run_call(context, key_of(kind, x, dy, dw, options), operands.addresses(), values_of(options, x), stream, [&] {
    ConvBackwardFilter filter;
    static_cast<ConvPass&>(filter) = pass_of(x, options);
    filter.x = x.spec();
    filter.dy = dy.spec();
    filter.dw = dw.spec();
    return with_user_code(filter.request(), dw, options.epilogue);
  });
}

}  // namespace

void conv_backward_data(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx,
                        const ConvBackwardOptions& options, Stream stream) {
  enqueue_data(CallKind::conv_backward_data, "conv_backward_data", context, dy, w, dx, options, stream);
}

void local_conv_backward_data(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx,
                              const LocalConvBackwardOptions& options, Stream stream) {
  enqueue_data(CallKind::local_conv_backward_data, "local_conv_backward_data", context, dy, w, dx, options, stream);
}

void conv_backward_filter(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw,
                          const ConvBackwardOptions& options, Stream stream) {
  enqueue_filter(CallKind::conv_backward_filter, "conv_backward_filter", context, x, dy, dw, options, stream);
}

void local_conv_backward_filter(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw,
                                const LocalConvBackwardOptions& options, Stream stream) {
  enqueue_filter(CallKind::local_conv_backward_filter, "local_conv_backward_filter", context, x, dy, dw, options,
                 stream);
}

void conv_backward_bias(Context& context, const Tensor& dy, const Tensor& db, const ConvBackwardBiasOptions& options,
                        Stream stream) {
  constexpr std::string_view operation = "conv_backward_bias";
  refuse_stages(operation, options.epilogue);
  refuse_overlap(operation, db, "dy", dy, "db");
  CallOperands operands{dy, db};
  operands.add_user_code(operation, db, options.epilogue, "db");
  run_call(context, key_of(dy, db, options), operands.addresses(), values_of(options, dy), stream, [&] {
    ConvBackwardBias bias;
    bias.dy = dy.spec();
    bias.db = db.spec();
    bias.blend = blend_of(options);
    bias.dynamic_batch = options.dynamic_batch;
    return with_user_code(bias.request(), db, options.epilogue);
  });
}

}  // namespace kiln
