#include "conv_call.h"
#include "kiln/conv.h"
#include "kiln/generator/operations/conv_backward_bias.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_backward_filter.h"

namespace kiln {
namespace {

CallKey key_of(CallKind kind, const Tensor& a, const Tensor& b, const Tensor& c, const ConvBackwardOptions& options) {
  CallKey key(static_cast<int64_t>(kind));
  key.add(a);
  key.add(b);
  key.add(c);
  add_convolution(key, options);
  return key;
}

CallKey key_of(const Tensor& dy, const Tensor& db, const ConvBackwardBiasOptions& options) {
  CallKey key(static_cast<int64_t>(CallKind::conv_backward_bias));
  key.add(dy);
  key.add(db);
  key.add(flags_of(options));
  return key;
}

}  // namespace

void conv_backward_data(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx,
                        const ConvBackwardOptions& options, Stream stream) {
  refuse_overlap("conv_backward_data", dx, "dy", dy, "dx");
  refuse_overlap("conv_backward_data", dx, "w", w, "dx");
  const CallOperands operands{dy, w, dx};
  run_call(context, key_of(CallKind::conv_backward_data, dy, w, dx, options), operands.addresses(),
           values_of(options, dy), stream, [&] {
             ConvBackwardData data;
             static_cast<ConvPass&>(data) = pass_of(dy, options);
             data.dy = dy.spec();
             data.w = w.spec();
             data.dx = dx.spec();
             return data.request();
           });
}

void conv_backward_filter(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw,
                          const ConvBackwardOptions& options, Stream stream) {
  refuse_overlap("conv_backward_filter", dw, "x", x, "dw");
  refuse_overlap("conv_backward_filter", dw, "dy", dy, "dw");
  const CallOperands operands{x, dy, dw};
  run_call(context, key_of(CallKind::conv_backward_filter, x, dy, dw, options), operands.addresses(),
           values_of(options, x), stream, [&] {
             ConvBackwardFilter filter;
             static_cast<ConvPass&>(filter) = pass_of(x, options);
             filter.x = x.spec();
             filter.dy = dy.spec();
             filter.dw = dw.spec();
             return filter.request();
           });
}

void conv_backward_bias(Context& context, const Tensor& dy, const Tensor& db, const ConvBackwardBiasOptions& options,
                        Stream stream) {
  refuse_overlap("conv_backward_bias", db, "dy", dy, "db");
  const CallOperands operands{dy, db};
  run_call(context, key_of(dy, db, options), operands.addresses(), values_of(options, dy), stream, [&] {
    ConvBackwardBias bias;
    bias.dy = dy.spec();
    bias.db = db.spec();
    bias.blend = blend_of(options);
    bias.dynamic_batch = options.dynamic_batch;
    return bias.request();
  });
}

}  // namespace kiln
