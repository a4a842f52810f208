#include "kiln/conv.h"

#include <fmt/format.h>

#include "conv_call.h"
#include "kiln/base/error.h"
#include "kiln/generator/operations/conv_forward.h"

namespace kiln {
namespace {

CallKey key_of(const Tensor& x, const Tensor& w, const Tensor& y, const ConvOptions& options) {
  CallKey key(static_cast<int64_t>(CallKind::conv_forward));
  key.add(x);
  key.add(w);
  key.add(y);
  add_convolution(key, options);
  key.add(options.epilogue);
  return key;
}

// A stage made by itself, Epilogue(EpilogueStage::bias), has no tensor.
void require_tensor(EpilogueStage stage, const std::optional<Tensor>& tensor) {
  if (tensor) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("conv_forward: the epilogue stage {} has no tensor", to_string(stage)),
              "write kiln::bias(values) or kiln::add(residual)");
}

Request request_of(const Tensor& x, const Tensor& w, const Tensor& y, const ConvOptions& options) {
  ConvForward conv;
  static_cast<ConvPass&>(conv) = pass_of(x, options);
  conv.x = x.spec();
  conv.w = w.spec();
  conv.y = y.spec();
  if (options.epilogue.bias()) conv.bias = options.epilogue.bias()->spec();
  if (options.epilogue.residual()) conv.residual = options.epilogue.residual()->spec();
  for (int i = 0; i < options.epilogue.count(); ++i) {
    const EpilogueStage stage = options.epilogue.stage(i);
    if (stage == EpilogueStage::bias) require_tensor(stage, options.epilogue.bias());
    if (stage == EpilogueStage::add) require_tensor(stage, options.epilogue.residual());
    conv.epilogue.push_back(stage);
  }
  return with_user_code(conv.request(), options.epilogue);
}

}  // namespace

void conv_forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& y, const ConvOptions& options,
                  Stream stream) {
  const Epilogue& epilogue = options.epilogue;
  refuse_overlap("conv_forward", y, "x", x);
  refuse_overlap("conv_forward", y, "w", w);
  CallOperands operands{x, w, y};
  if (epilogue.bias()) {
    refuse_overlap("conv_forward", y, "bias", *epilogue.bias());
    operands.add(*epilogue.bias());
  }
  if (epilogue.residual()) {
    refuse_partial_overlap("conv_forward", y, "residual", *epilogue.residual());
    operands.add(*epilogue.residual());
  }
  operands.add_user_code("conv_forward", y, epilogue);
  RunValues values = values_of(options, x);
  values.clip_lo = epilogue.clip_lo();
  values.clip_hi = epilogue.clip_hi();
  run_call(context, key_of(x, w, y, options), operands.addresses(), values, stream,
           [&] { return request_of(x, w, y, options); });
}

}  // namespace kiln
