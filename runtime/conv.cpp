#include "kiln/conv.h"

#include <fmt/format.h>

#include "conv_call.h"
#include "kiln/base/error.h"
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

// A stage made by itself, Epilogue(EpilogueStage::bias), has no tensor.
void require_tensor(std::string_view operation, EpilogueStage stage, const std::optional<Tensor>& tensor) {
  if (tensor) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: the epilogue stage {} has no tensor", operation, to_string(stage)),
              "write kiln::bias(values) or kiln::add(residual)");
}

template <class Options>
Request request_of(std::string_view operation, const Tensor& x, const Tensor& w, const Tensor& y,
                   const Options& options) {
  ConvForward conv;
  static_cast<ConvPass&>(conv) = pass_of(x, options);
  conv.x = x.spec();
  conv.w = w.spec();
  conv.y = y.spec();
  if (options.epilogue.bias()) conv.bias = options.epilogue.bias()->spec();
  if (options.epilogue.residual()) conv.residual = options.epilogue.residual()->spec();
  for (int i = 0; i < options.epilogue.count(); ++i) {
    const EpilogueStage stage = options.epilogue.stage(i);
    if (stage == EpilogueStage::bias) require_tensor(operation, stage, options.epilogue.bias());
    if (stage == EpilogueStage::add) require_tensor(operation, stage, options.epilogue.residual());
    conv.epilogue.push_back(stage);
  }
  return with_user_code(conv.request(), options.epilogue);
}

template <class Options>
void enqueue(CallKind kind, std::string_view operation, Context& context, const Tensor& x, const Tensor& w,
             const Tensor& y, const Options& options, Stream stream) {
  const Epilogue& epilogue = options.epilogue;
  refuse_overlap(operation, y, "x", x);
  refuse_overlap(operation, y, "w", w);
  CallOperands operands{x, w, y};
  if (epilogue.bias()) {
    refuse_overlap(operation, y, "bias", *epilogue.bias());
    operands.add(*epilogue.bias());
  }
  if (epilogue.residual()) {
    refuse_partial_overlap(operation, y, "residual", *epilogue.residual());
    operands.add(*epilogue.residual());
  }
  operands.add_user_code(operation, y, epilogue);
  RunValues values = values_of(options, x);
  values.clip_lo = epilogue.clip_lo();
  values.clip_hi = epilogue.clip_hi();
  run_call(context, key_of(kind, x, w, y, options), operands.addresses(), values, stream,
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
