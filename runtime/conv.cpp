#include "kiln/conv.h"

#include <fmt/format.h>

#include "kiln/base/error.h"
#include "kiln/generator/operations/conv_forward.h"
#include "operation_call.h"
#include "per_axis.h"

namespace kiln {
namespace {

CallKey key_of(const Tensor& x, const Tensor& w, const Tensor& y, const ConvOptions& options) {
  CallKey key(static_cast<int64_t>(CallKind::conv_forward));
  key.add(x);
  key.add(w);
  key.add(y);
  for (int64_t value : {options.pad.top, options.pad.left, options.pad.bottom, options.pad.right, options.stride.h,
                        options.stride.w, options.dilation.h, options.dilation.w, options.depth.pad_front,
                        options.depth.pad_back, options.depth.stride, options.depth.dilation, options.groups}) {
    key.add(value);
  }
  key.add(flags_of(options, int64_t{options.mirrored} | int64_t{options.arithmetic.tf32} << 1 |
                                int64_t{options.arithmetic.fast} << 2 |
                                int64_t{options.arithmetic.deterministic} << 3));
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
  conv.x = x.spec();
  conv.w = w.spec();
  conv.y = y.spec();
  if (options.epilogue.bias()) conv.bias = options.epilogue.bias()->spec();
  if (options.epilogue.residual()) conv.residual = options.epilogue.residual()->spec();
  conv.pad_begin = per_axis(x, options.depth.pad_front, options.pad.top, options.pad.left);
  conv.pad_end = per_axis(x, options.depth.pad_back, options.pad.bottom, options.pad.right);
  conv.stride = per_axis(x, options.depth.stride, options.stride.h, options.stride.w);
  conv.dilation = per_axis(x, options.depth.dilation, options.dilation.h, options.dilation.w);
  conv.groups = options.groups;
  conv.mirrored = options.mirrored;
  conv.arithmetic = options.arithmetic;
  conv.blend = blend_of(options);
  for (int i = 0; i < options.epilogue.count(); ++i) {
    const EpilogueStage stage = options.epilogue.stage(i);
    if (stage == EpilogueStage::bias) require_tensor(stage, options.epilogue.bias());
    if (stage == EpilogueStage::add) require_tensor(stage, options.epilogue.residual());
    conv.epilogue.push_back(stage);
  }
  conv.dynamic_batch = options.dynamic_batch;
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
