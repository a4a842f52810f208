#include "kiln/conv.h"

#include <array>

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
  int64_t flags = int64_t{options.mirrored} | int64_t{options.arithmetic.tf32} << 1 |
                  int64_t{options.arithmetic.fast} << 2 | int64_t{options.arithmetic.deterministic} << 3 |
                  int64_t{options.dynamic_batch} << 4;
  flags |= static_cast<int64_t>(scale_of(options.alpha)) << 8 | static_cast<int64_t>(scale_of(options.beta)) << 12;
  for (int i = 0; i < options.epilogue.count(); ++i) {
    flags |= (static_cast<int64_t>(options.epilogue.stage(i)) + 1) << (16 + 4 * i);
  }
  key.add(flags);
  if (options.epilogue.bias()) key.add(*options.epilogue.bias());
  if (options.epilogue.residual()) key.add(*options.epilogue.residual());
  return key;
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
  conv.blend = {scale_of(options.alpha), scale_of(options.beta)};
  for (int i = 0; i < options.epilogue.count(); ++i) conv.epilogue.push_back(options.epilogue.stage(i));
  conv.dynamic_batch = options.dynamic_batch;
  return conv.request();
}

}  // namespace

void conv_forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& y, const ConvOptions& options,
                  Stream stream) {
  const Epilogue& epilogue = options.epilogue;
  refuse_overlap("conv_forward", y, "x", x);
  refuse_overlap("conv_forward", y, "w", w);
  std::array<Address, 5> operands = {x, w, y, nullptr, nullptr};
  size_t count = 3;
  if (epilogue.bias()) {
    refuse_overlap("conv_forward", y, "bias", *epilogue.bias());
    operands[count++] = *epilogue.bias();
  }
  if (epilogue.residual()) {
    if (!is_same_view(y, *epilogue.residual())) refuse_overlap("conv_forward", y, "residual", *epilogue.residual());
    operands[count++] = *epilogue.residual();
  }
  RunValues values = values_of(options, x);
  values.clip_lo = epilogue.clip_lo();
  values.clip_hi = epilogue.clip_hi();
  run_call(context, key_of(x, w, y, options), std::span(operands.data(), count), values, stream,
           [&] { return request_of(x, w, y, options); });
}

}  // namespace kiln
