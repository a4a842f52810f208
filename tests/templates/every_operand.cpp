#include "every_operand.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"

namespace kiln::testing_support {
namespace {

const Expressions& expressions() {
  static const Expressions known = {
      {"gated", Expression("acc * gate", {"gate"})},
      {"channels", Expression("--- prologue\nx * z[c]\n---\nacc * gate + shift[k]", {"gate", "shift", "z"})},
      {"columns", Expression("--- prologue\nx * z[c]\n---\nacc * gate + shift[n]", {"gate", "shift", "z"})},
      {"planes", Expression("--- prologue\nx * z[c]\n---\nacc * gate + shift[c]", {"gate", "shift", "z"})}};
  return known;
}

constexpr const char* convolutions[] = {
    "conv_forward x=f16:2x16x6x8:nhwc w=f16:16x16x3x3:nhwc pad=1 epilogue=bias+add",
    "conv_forward x=f16:2x16x6x8 w=f16:16x16x3x3 pad=1 epilogue=bias+add",
    "conv_forward x=f16:1x96x3x3:nhwc w=f16:16x96x3x3:nhwc epilogue=bias+add",
    "conv_forward x=f16:2x16x4x8 w=f16:16x16x1x1 epilogue=bias+add beta=any",
    "conv_forward x=f16:2x16x4x8:nhwc w=f16:16x16x1x1:nhwc epilogue=bias+add",
    "conv_forward x=f16:2x16x4x8:nhwc w=f16:16x16x1x1:nhwc epilogue=user:channels "
    "epilogue.gate=f16:2x16x4x8:576,1,144,18 "
    "epilogue.shift=f16:16 prologue.z=f16:16",
    "conv_forward x=f16:2x8x6x8 w=f16:8x1x3x3 groups=8 pad=1 epilogue=bias+add",
    "conv_forward x=f16:2x8x6x8:nhwc w=f16:8x1x3x3:nhwc groups=8 pad=1 epilogue=bias+add",
    "conv_forward x=f32:1x8x6x8 w=f32:8x8x3x3 pad=1 fast epilogue=bias+add",
    "conv_forward x=f32:1x8x6x8:nhwc w=f32:8x8x3x3:nhwc pad=1 fast epilogue=bias+add",
    "conv_backward_data dy=f16:2x16x6x8:nhwc w=f16:16x16x3x3:nhwc pad=1 epilogue=bias+add",
    "conv_backward_data dy=f16:2x16x6x8 w=f16:16x16x3x3 pad=1 epilogue=bias+add",
    "conv_backward_data dy=f16:1x96x3x3:nhwc w=f16:96x16x3x3:nhwc pad=1 epilogue=bias+add",
    "conv_backward_data dy=f16:2x8x6x8 w=f16:8x1x3x3 groups=8 pad=1 epilogue=bias+add",
    "conv_backward_data dy=f16:2x8x6x8:nhwc w=f16:8x1x3x3:nhwc groups=8 pad=1 epilogue=bias+add",
    "conv_backward_data dy=f32:1x8x6x8 w=f32:8x8x3x3 pad=1 fast epilogue=bias+add",
    "conv_backward_filter x=f16:2x8x6x8 dy=f16:2x16x6x8 dw=f16:16x8x3x3 pad=1",
    "conv_backward_filter x=f16:2x8x6x8:nhwc dy=f16:2x16x6x8:nhwc dw=f16:16x8x3x3:nhwc pad=1",
    "conv_backward_filter x=f16:2x8x6x8 dy=f16:2x8x6x8 dw=f16:8x1x3x3 groups=8 pad=1",
    "conv_backward_filter x=f16:2x8x16x16 dy=f16:2x8x16x16 dw=f16:8x8x3x3 pad=1",
    "conv_backward_bias dy=f16:4x16x6x8",
    "conv_backward_bias dy=f16:4x16x6x8:nhwc",
    "local_conv_forward x=f16:2x8x4x8 w=f16:32x8x3x3 pad=1 grid=1,2 epilogue=bias+add",
    "local_conv_forward x=f16:2x8x4x8:nhwc w=f16:32x8x3x3:nhwc pad=1 grid=2 epilogue=bias+add",
    "local_conv_forward x=f16:8x16x2x4 w=f16:64x16x3x3 pad=1 epilogue=bias+add",
    "local_conv_backward_data dy=f16:2x8x4x8:nhwc w=f16:32x8x3x3:nhwc pad=1 grid=2 epilogue=bias+add",
    "local_conv_backward_data dy=f16:2x8x4x8 w=f16:32x8x3x3 pad=1 grid=2 epilogue=bias+add",
    "local_conv_backward_filter x=f16:2x8x4x8 dy=f16:2x8x4x8 dw=f16:32x8x3x3 pad=1 grid=2",
    "local_conv_backward_filter x=f16:2x8x4x8:nhwc dy=f16:2x8x4x8:nhwc dw=f16:32x8x3x3:nhwc pad=1 grid=2",
};

constexpr const char* products_and_windows[] = {
    "gemm a=f16:32x32 b=f16:32x16 epilogue=bias+add",
    "gemm a=f16:32x32:1,32 b=f16:32x16:1,32 epilogue=bias+add",
    "gemm a=f16:1x64 b=f16:64x32 epilogue=bias+add",
    "gemm a=f16:1x64 b=f16:64x32:1,64 epilogue=bias+add",
    "gemm a=f16:32x32 b=f16:32x16 epilogue=user:columns epilogue.gate=f16:32x16:24,1 epilogue.shift=f16:16 "
    "prologue.z=f16:32",
    "pool_forward x=f16:2x8x6x16 window=2 stride=2 indices=i32:2x8x3x8",
    "pool_forward x=f16:2x8x6x16:nhwc window=2 stride=2 indices=i32:2x8x3x8:nhwc",
    "pool_forward x=f16:2x8x6x16 window=2 stride=2",
    "pool_forward x=f16:2x8x6x16:nhwc mode=avg window=2 stride=2 epilogue=user:planes "
    "epilogue.gate=f16:2x8x3x8:288,1,96,12 epilogue.shift=f16:8 prologue.z=f16:8",
    "pool_forward x=f16:2x8x6x16 mode=avg window=global",
    "pool_forward x=f16:2x8x6x16:nhwc mode=avg window=global",
    "pool_backward dy=f16:2x8x3x8 x=f16:2x8x6x16 window=2 stride=2",
    "pool_backward dy=f16:2x8x3x8:nhwc x=f16:2x8x6x16:nhwc window=2 stride=2",
    "pool_backward dy=f16:2x8x3x8 indices=i32:2x8x3x8 dx=f16:2x8x6x16 window=2 stride=2",
    "pool_backward dy=f16:2x8x3x8:nhwc indices=i32:2x8x3x8:nhwc dx=f16:2x8x6x16:nhwc window=2 stride=2",
    "local_norm_forward x=f16:2x16x4x8 means=f16:2x16x4x8",
    "local_norm_forward x=f16:2x16x4x8:nhwc means=f16:2x16x4x8:nhwc",
    "local_norm_forward x=f16:2x4x8x16 means=f16:2x4x8x16 axes=2,3",
    "local_norm_backward x=f16:2x16x4x8 means=f16:2x16x4x8 dy=f16:2x16x4x8 dmeans=f16:2x16x4x8",
    "local_norm_backward x=f16:2x16x4x8:nhwc means=f16:2x16x4x8:nhwc dy=f16:2x16x4x8:nhwc dmeans=f16:2x16x4x8:nhwc",
    "local_norm_backward x=f16:2x4x8x16 means=f16:2x4x8x16 dy=f16:2x4x8x16 dmeans=f16:2x4x8x16 axes=2,3",
};

constexpr const char* rows_and_elements[] = {
    "softmax_forward x=f16:8x64",
    "softmax_forward x=f16:8x64 epilogue=user:gated epilogue.gate=f16:8x64:72,1",
    "softmax_forward x=f16:1x8192",
    "softmax_forward x=f16:2x32x4x8 axis=1",
    "softmax_backward y=f16:8x64 dy=f16:8x64",
    "softmax_backward y=f16:2x32x4x8 dy=f16:2x32x4x8 axis=1",
    "cross_entropy_forward x=f16:16x64 weights=f32:64 smoothing=any",
    "cross_entropy_forward x=f16:2x16x4x8 weights=f32:16 reduction=none",
    "cross_entropy_backward x=f16:16x64 weights=f32:64 dloss=f32:1 smoothing=any",
    "cross_entropy_backward x=f16:2x16x4x8 weights=f32:16 dlosses=f32:2x4x8 reduction=none",
    "activation_forward x=f16:8x64 mode=gelu",
    "activation_forward x=f16:8x64 mode=gelu epilogue=user:gated epilogue.gate=f16:8x64:72,1",
    "activation_forward x=f16:2x32x4x8 y=f16:2x32x4x8:nhwc mode=gelu beta=any",
    "activation_backward x=f16:8x64 dy=f16:8x64 mode=gelu",
    "activation_backward y=f16:8x64 dy=f16:8x64 mode=tanh beta=any",
    "activation_backward x=f16:2x32x4x8 dy=f16:2x32x4x8:nhwc mode=gelu",
    "tensor_transform x=f16:8x64 y=f32:8x64 alpha=any",
    "tensor_transform x=f16:2x32x4x8 y=f16:2x32x4x8:nhwc",
    "tensor_set y=f16:8x64",
    "tensor_op a=f16:8x64 b=f16:8x64 c=f16:8x64 mode=select",
    "tensor_op a=f16:2x32x4x8 b=f16:2x32x4x8:nhwc mode=add",
    "dropout x=f16:8x64",
    "reduce x=f16:8x64 indices=i32:8x1 axes=1 mode=max",
    "reduce x=f16:64x16 indices=i32:1x16 axes=0 mode=max",
    ("norm_forward x=f16:8x64 w=f16:1x64 b=f16:1x64 mean=f32:8x1 inv_deviation=f32:8x1 running_mean=f32:8x1 "
     "running_variance=f32:8x1 residual=f16:8x64 epilogue=add"),
    ("norm_forward x=f16:16x8x2x8:nhwc w=f16:1x8x1x1 b=f16:1x8x1x1 mean=f32:1x8x1x1 inv_deviation=f32:1x8x1x1 "
     "running_mean=f32:1x8x1x1 running_variance=f32:1x8x1x1 axes=0,2,3 epilogue=add"),
    "norm_forward x=f16:8x64 epilogue=user:gated epilogue.gate=f16:8x64:72,1",
    "norm_inference x=f16:4x8x2x8 w=f16:1x8x1x1 b=f16:1x8x1x1 epilogue=add",
    "norm_inference x=f16:4x8x2x8:nhwc w=f16:1x8x1x1 b=f16:1x8x1x1 epilogue=add",
    ("norm_backward dy=f16:8x64 w=f16:1x64 b=f16:1x64 residual=f16:8x64 dw=f16:1x64 db=f16:1x64 dresidual=f16:8x64 "
     "activation=softplus"),
    "norm_backward dy=f16:8x64 w=f16:1x64 y=f16:8x64 dw=f16:1x64 db=f16:1x64 dresidual=f16:8x64",
    "norm_backward dy=f16:16x8x2x8:nhwc w=f16:1x8x1x1 y=f16:16x8x2x8:nhwc dw=f16:1x8x1x1 db=f16:1x8x1x1 axes=0,2,3",
};

std::vector<Request> parsed() {
  std::vector<Request> all;
  for (const char* line : convolutions) all.push_back(Request::parse(line, expressions()));
  for (const char* line : products_and_windows) all.push_back(Request::parse(line, expressions()));
  for (const char* line : rows_and_elements) all.push_back(Request::parse(line, expressions()));
  return all;
}

// Dimensions of more than one element, innermost first.
std::vector<size_t> inside_out(const TensorSpec& spec) {
  std::vector<size_t> order;
  for (size_t i = 0; i < spec.extents.size(); ++i) {
    if (spec.extents[i] > 1) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return spec.strides[a] < spec.strides[b]; });
  return order;
}

}  // namespace

const std::vector<Request>& requests_with_every_operand() {
  static const std::vector<Request> all = parsed();
  return all;
}

TensorSpec with_odd_strides(TensorSpec spec) {
  int64_t reach = 0;  // of an element of the dimensions inside
  for (const size_t i : inside_out(spec)) {
    if (reach > 0) spec.strides[i] = (reach + 1) | 1;
    reach += spec.strides[i] * (spec.extents[i] - 1);
  }
  return spec;
}

TensorSpec with_opposite_order(TensorSpec spec) {
  std::vector<size_t> order = inside_out(spec);
  std::reverse(order.begin(), order.end());
  int64_t stride = 1;
  for (const size_t i : order) {
    spec.strides[i] = stride;
    stride *= spec.extents[i];
  }
  return spec;
}

std::optional<TensorSpec> with_wide_strides(TensorSpec spec) {
  const std::vector<size_t> order = inside_out(spec);
  if (order.empty()) return std::nullopt;
  const size_t outermost = order.back();
  spec.strides[outermost] = (int64_t{1} << 31) / (spec.extents[outermost] - 1) + 1;
  return spec;
}

std::optional<Request> with_operand(Request request, const std::string& name, const TensorSpec& spec) {
  const auto found = std::find_if(request.operands.begin(), request.operands.end(),
                                  [&](const Operand& operand) { return operand.name == name; });
  found->spec = spec;
  try {
    return finished(std::move(request));
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace kiln::testing_support
