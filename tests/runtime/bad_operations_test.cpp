// For every option of every operation call: what is wrong with it, and what the error says. Faults of a tensor alone
// stand in bad_operands_test.cpp.
#include <cmath>

#include "bad_arguments.h"
#include "kiln/activation.h"
#include "kiln/attention.h"
#include "kiln/conv.h"
#include "kiln/dropout.h"
#include "kiln/gather.h"
#include "kiln/gemm.h"
#include "kiln/local_norm.h"
#include "kiln/norm.h"
#include "kiln/pool.h"
#include "kiln/resize.h"
#include "kiln/softmax.h"
#include "kiln/tensor_ops.h"

namespace kiln::bad_operations_test {
namespace {

// Values that no mode has; the second differs from mode 0 in bits above the lowest byte alone.
template <class Mode>
constexpr std::array<Mode, 3> no_modes = {static_cast<Mode>(99), static_cast<Mode>(256), static_cast<Mode>(-1)};

template <class Mode>
std::string unknown(const std::string& attribute, Mode mode) {
  return attribute + "=" + std::to_string(static_cast<int>(mode)) + " is unknown";
}

TEST_F(BadArguments, OfConvForward) {
  Context context(options());
  const Tensor x = at(0, {1, 4, 8, 8}), w = at(4096, {4, 4, 3, 3}), y = at(8192, {1, 4, 6, 6});
  const auto with = [&](const ConvOptions& options) {
    return [&, options] { conv_forward(context, x, w, y, options); };
  };
  const auto call = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
    return [&context, a, b, c] { conv_forward(context, a, b, c); };
  };
  expect_refused({
      {"w: other channels", call(x, at(4096, {4, 3, 3, 3}), y), "w has 3 channels per filter, expected 4"},
      {"w: larger than the input", call(x, at(16384, {4, 4, 11, 11}), y), "the filter does not fit"},
      {"x: no channels", call(at(0, {1, 0, 8, 8}), at(4096, {4, 0, 3, 3}), y), "x has no channels"},
      {"y: other extents", call(x, w, at(8192, {1, 4, 6, 5})), "y has extents 1x4x6x5, expected 1x4x6x6"},
      {"y: another batch", call(x, w, at(8192, {2, 4, 6, 6})), "y has extents 2x4x6x6, expected 1x4x6x6"},
      {"stride: 0", with({.stride = {0, 1}}), "the stride of h is 0"},
      {"stride: negative", with({.stride = {1, -1}}), "the stride of w is -1"},
      {"stride: huge", with({.stride = {huge, 1}}), "the stride of h is 1099511627776"},
      {"dilation: 0", with({.dilation = {0, 1}}), "the dilation of h is 0"},
      {"dilation: negative", with({.dilation = {1, -2}}), "the dilation of w is -2"},
      {"dilation: huge", with({.dilation = {huge, 1}}), "the dilation of h is 1099511627776"},
      {"pad: negative", with({.pad = {-1, 0}}), "the padding in front of h is -1"},
      {"pad: huge", with({.pad = {huge, 0}}), "it must lie between"},
      {"groups: 0", with({.groups = 0}), "groups=0 does not divide the 4 channels of x"},
      {"groups: negative", with({.groups = -2}), "groups=-2 does not divide the 4 channels of x"},
      {"groups: no divisor", with({.groups = 3}), "groups=3 does not divide the 4 channels of x"},
  });
}

TEST_F(BadArguments, OfEpiloguesOfConvForward) {
  Context context(options());
  const Tensor x = at(0, {1, 4, 8, 8}), w = at(4096, {4, 4, 3, 3}), y = at(8192, {1, 4, 6, 6});
  const auto with = [&](const Epilogue& epilogue) {
    return [&, epilogue] { conv_forward(context, x, w, y, {.epilogue = epilogue}); };
  };
  const Tensor no_bias(nullptr, f32, {4}, contiguous), no_residual(nullptr, f32, {1, 4, 6, 6}, nchw);
  expect_refused({
      {"bias: other extents", with(bias(at(32768, {5}))), "bias has extents 5, expected 4"},
      {"bias: null", with(bias(no_bias)), "bias is a null pointer"},
      {"bias: two dimensions", with(bias(at(32768, {1, 4}))), "bias has extents 1x4, expected 4"},
      {"bias: between elements", with(bias(at(32770, {4}))), "bias has alignment 2"},
      {"bias: over y", with(bias(at(8192, {4}))), "the memory of y and bias overlaps"},
      {"bias: no values", with(Epilogue(EpilogueStage::bias)), "the epilogue stage bias has no tensor"},
      {"residual: other extents", with(add(at(32768, {1, 4, 6, 5}))), "residual has extents 1x4x6x5"},
      {"residual: null", with(add(no_residual)), "residual is a null pointer"},
      {"residual: a dimension less", with(add(at(32768, {1, 4, 6}))), "residual has extents 1x4x6"},
      {"residual: between elements", with(add(at(32769, {1, 4, 6, 6}))), "residual has alignment 1"},
      {"residual: y with another dtype", with(add(at(8192, {1, 4, 6, 6}, f16))), "of y and residual overlaps"},
      {"residual: over a part of y", with(add(at(8196, {1, 4, 6, 6}))), "the memory of y and residual overlaps"},
      {"residual: no values", with(Epilogue(EpilogueStage::add)), "the epilogue stage add has no tensor"},
      {"a stage that there is not", with(Epilogue(static_cast<EpilogueStage>(99))), "there is no epilogue stage 99"},
  });
}

TEST_F(BadArguments, OfDropout) {
  Context context(options());
  const Tensor x = at(0, {3, 5}), y = at(4096, {3, 5});
  const auto with = [&](float p) { return [&, p] { dropout_forward(context, x, y, {.p = p}); }; };
  expect_refused({{"p: negative", with(-0.5f), "p is -0.5"},
                  {"p: more than all", with(1.5f), "p is 1.5"},
                  {"p: NaN", with(std::nanf("")), "p is nan"}});
}

TEST_F(BadArguments, OfEpiloguesOfGemm) {
  Context context(options());
  const Tensor a = at(0, {3, 5}), b = at(4096, {5, 4}), c = at(8192, {3, 4});
  const auto with = [&](const GemmOptions& options) { return [&, options] { gemm(context, a, b, c, options); }; };
  const Tensor null(nullptr, f32, {4}, contiguous);
  const Expression code("acc + t", {"t"}), entering("--- prologue\nx + t", {"t"});
  expect_refused({
      {"bias: other extents", with({.epilogue = bias(at(32768, {3}))}), "bias has extents 3, expected 4"},
      {"bias: null", with({.epilogue = bias(null)}), "bias is a null pointer"},
      {"bias: over c", with({.epilogue = bias(at(8192, {4}))}), "the memory of c and bias overlaps"},
      {"bias: no values", with({.epilogue = Epilogue(EpilogueStage::bias)}), "the epilogue stage bias has no tensor"},
      {"residual: other extents", with({.epilogue = add(at(32768, {4, 3}))}), "residual has extents 4x3, expected 3x4"},
      {"residual: over a part of c", with({.epilogue = add(at(8196, {3, 4}))}), "of c and residual overlaps"},
      {"user code: other extents", with({.epilogue = expression(code, {{"t", at(32768, {3})}})}),
       "t has other extents than c"},
      {"prologue: other extents", with({.epilogue = expression(entering, {{"t", at(32768, {4})}})}),
       "prologue.t has other extents than the channels of a"},
      {"prologue: over c", with({.epilogue = expression(entering, {{"t", at(8196, {5})}})}), "of c and t overlaps"},
      {"user code: over c", with({.epilogue = expression(code, {{"t", at(8196, {3, 4})}})}),
       "memory of c and t overlaps"},
      {"dynamic_batch: of a batch",
       [&] {
         gemm(context, at(0, {1, 3, 5}), at(4096, {1, 5, 4}), at(8192, {1, 3, 4}), {.dynamic_batch = true});
       },
       "the batch can only be dynamic where there are no batch dimensions"},
  });
}

TEST_F(BadArguments, OfUserCodeInEveryOperationThatTakesIt) {
  Context context(options());
  const Tensor x = at(0, {1, 4, 8, 8}), w = at(4096, {4, 4, 1, 1}), y = at(8192, {1, 4, 8, 8});
  const Expression code("acc + t", {"t"});
  const Tensor null(nullptr, f32, {1, 4, 8, 8}, nchw);
  const auto table = [&](const std::string& name, const auto& call, const std::string& result = "y") {
    const auto with = [&](const Tensor& t) { return [&, t] { call(expression(code, {{"t", t}})); }; };
    expect_refused({
        {name + ": a tensor of other extents", with(at(16384, {1, 4, 8, 7})), "t has other extents than " + result},
        {name + ": null", with(null), "t is a null pointer"},
        {name + ": between elements", with(at(16386, {1, 4, 8, 8})), "t has alignment 2"},
        {name + ": a dimension less", with(at(16384, {4, 8, 8})), "t has other extents than " + result},
        {name + ": other images", with(at(16384, {2, 4, 8, 8})), "t has other extents than " + result + ": 2 along"},
        {name + ": over y", with(at(8196, {1, 4, 8, 8})), "the memory of " + result + " and t overlaps"},
    });
  };
  table("conv_forward", [&](const Epilogue& e) { conv_forward(context, x, w, y, {.epilogue = e}); });
  table("pool_forward", [&](const Epilogue& e) { pool_forward(context, x, y, {.window = {1, 1}, .epilogue = e}); });
  table("softmax_forward", [&](const Epilogue& e) { softmax_forward(context, x, y, {.epilogue = e}); });
  table("activation_forward", [&](const Epilogue& e) { activation_forward(context, x, y, {.epilogue = e}); });
  const Tensor of_rows = at(28672, {1, 4, 8, 1});
  table("norm_forward", [&](const Epilogue& e) { norm_forward(context, {3}, x, y, {.epilogue = e}); });
  table(
      "norm_affine",
      [&](const Epilogue& e) {
        norm_affine(context, {3}, x, y, at(28672, {1, 4, 8, 8}), {.epilogue = e});
      },
      "scale");
  table("norm_inference",
        [&](const Epilogue& e) { norm_inference(context, {3}, x, of_rows, of_rows, y, {.epilogue = e}); });
  const auto norm_gradient = [&](const Epilogue& e) {
    norm_backward(context, {3}, x, x, of_rows, y, {.mean = of_rows, .epilogue = e});
  };
  table("norm_backward", norm_gradient, "dx");
  table("resize", [&](const Epilogue& e) { resize(context, x, y, {.epilogue = e}); });
  table(
      "resize_backward", [&](const Epilogue& e) { resize_backward(context, x, y, {.epilogue = e}); }, "dx");
  table("gather", [&](const Epilogue& e) {
    gather(context, x, at(28672, {1, 1, 1, 1}, i32), at(8192, {1, 4, 8, 8}), {.epilogue = e});
  });
  const Tensor keys = at(28672, {1, 4, 3, 8});
  table("attention_forward", [&](const Epilogue& e) { attention_forward(context, x, keys, keys, y, {.epilogue = e}); });
  table("lrn_forward", [&](const Epilogue& e) { lrn_forward(context, x, y, {.epilogue = e}); });
  table(
      "lcn_backward", [&](const Epilogue& e) { lcn_backward(context, x, x, y, {.epilogue = e}); }, "dx");
}

TEST_F(BadArguments, OfTheThirdAxis) {
  Context context(options());
  const Tensor x = at(0, {1, 2, 4, 4, 4}), w = at(4096, {2, 2, 2, 2, 2}), y = at(8192, {1, 2, 3, 3, 3});
  const auto conv = [&](const DepthWindow& depth) {
    return [&, depth] { conv_forward(context, x, w, y, {.depth = depth}); };
  };
  const auto pool = [&](const DepthWindow& depth) {
    return [&, depth] { pool_forward(context, x, y, {.window = {2, 2}, .depth = depth}); };
  };
  const auto backward = [&](const DepthWindow& depth) {
    return [&, depth] { pool_backward(context, y, x, at(16384, {1, 2, 4, 4, 4}), {.window = {2, 2}, .depth = depth}); };
  };
  expect_refused({
      {"stride: 0", conv({.stride = 0}), "the stride of d is 0"},
      {"dilation: negative", conv({.dilation = -1}), "the dilation of d is -1"},
      {"pad: negative", conv({.pad_front = -1}), "is -1"},
      {"pad: huge", conv({.pad_back = huge}), "it must lie between"},
      {"window: 0", pool({.window = 0}), "the window of d is 0"},
      {"window: larger than the input", pool({.window = 9}), "the window does not fit"},
      {"stride: negative", pool({.window = 2, .stride = -3}), "the stride of d is -3"},
      {"dilation: 0", pool({.window = 2, .dilation = 0}), "the dilation of d is 0"},
      {"pad: negative", pool({.window = 2, .pad_back = -4}), "is -4"},
      {"window: negative", backward({.window = -1}), "the window of d is -1"},
      {"stride: 0", backward({.window = 2, .stride = 0}), "the stride of d is 0"},
      {"pad: negative", backward({.window = 2, .pad_front = -4}), "is -4"},
  });
}

// Refusals of windows by both directions of pooling; `call` takes options whose window and stride are 2.
template <class Call>
std::vector<Bad> window_rows(const Call& call) {
  const Pair two = {2, 2};
  std::vector<Bad> rows = {
      {"window: negative", call({.window = {-2, 2}, .stride = two}), "the window of h is -2"},
      {"window: half of it", call({.window = {0, 2}, .stride = two}), "the window of h is 0"},
      {"window: larger than the input", call({.window = {9, 9}, .stride = two}), "the window does not fit"},
      {"window: huge", call({.window = {huge, huge}, .stride = two}), "the window of h is 1099511627776"},
      {"stride: 0", call({.window = two, .stride = {2, 0}}), "the stride of w is 0"},
      {"stride: negative", call({.window = two, .stride = {-2, 2}}), "the stride of h is -2"},
      {"dilation: 0", call({.window = two, .stride = two, .dilation = {0, 0}}), "the dilation of h is 0"},
      {"pad: negative", call({.window = two, .pad = {0, -1}, .stride = two}), "the padding in front of w is -1"},
      {"pad: huge", call({.window = two, .pad = {0, huge}, .stride = two}), "it must lie between"},
  };
  for (const PoolMode mode : no_modes<PoolMode>) {
    rows.push_back({"mode", call({.mode = mode, .window = two, .stride = two}), unknown("mode", mode)});
  }
  return rows;
}

TEST_F(BadArguments, OfPoolForward) {
  Context context(options());
  const Tensor x = at(0, {1, 4, 8, 8}), y = at(8192, {1, 4, 4, 4});
  const auto with = [&](const PoolOptions& options) { return [&, options] { pool_forward(context, x, y, options); }; };
  const PoolOptions halves = {.window = {2, 2}, .stride = {2, 2}};
  pool_forward(context, x, y, halves);
  expect_refused(window_rows(with));
  expect_refused({
      {"an epilogue of stages", with({.window = {2, 2}, .stride = {2, 2}, .epilogue = relu}), "no epilogue of stages"},
      {"x: no channels",
       [&] {
         pool_forward(context, at(0, {1, 0, 8, 8}), at(8192, {1, 0, 4, 4}), halves);
       },
       "x has no channels"},
      {"y: other channels",
       [&] {
         pool_forward(context, x, at(8192, {1, 3, 4, 4}), halves);
       },
       "y has extents 1x3x4x4, expected 1x4x4x4"},
      {"y: other extents",
       [&] {
         pool_forward(context, x, at(8192, {1, 4, 4, 7}), halves);
       },
       "y has extent 7 along w, expected 4"},
  });
}

TEST_F(BadArguments, OfPoolBackward) {
  Context context(options());
  const Tensor x = at(0, {1, 4, 8, 8}), dx = at(8192, {1, 4, 8, 8}), dy = at(4096, {1, 4, 4, 4});
  const PoolOptions halves = {.window = {2, 2}, .stride = {2, 2}};
  const auto with = [&](const PoolOptions& options) {
    return [&, options] { pool_backward(context, dy, x, dx, options); };
  };
  const auto call = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
    return [&, a, b, c] { pool_backward(context, a, b, c, halves); };
  };
  pool_backward(context, dy, x, dx, halves);
  expect_refused(window_rows(with));
  expect_refused({
      {"dx: two dimensions", call(dy, x, at(8192, {8, 8})), "dx has 2 dimensions"},
      {"dy: other extents", call(at(4096, {1, 4, 4, 7}), x, dx), "dy has extent 7 along w, expected 4"},
      {"dy: other channels", call(at(4096, {1, 3, 4, 4}), x, dx), "N and C are those of dx"},
      {"x: other extents", call(dy, at(0, {1, 4, 8, 7}), dx), "x has extents 1x4x8x7, expected 1x4x8x8"},
      {"an epilogue", with({.window = {2, 2}, .stride = {2, 2}, .epilogue = relu}), "takes no epilogue of stages"},
  });
}

TEST_F(BadArguments, OfSoftmaxForward) {
  Context context(options());
  const Tensor x = at(0, {4, 37}), y = at(8192, {4, 37});
  const auto with = [&](const SoftmaxOptions& options) {
    return [&, options] { softmax_forward(context, x, y, options); };
  };
  softmax_forward(context, x, y);
  for (const SoftmaxMode mode : no_modes<SoftmaxMode>) {
    expect_refused({{"mode", with({.mode = mode}), unknown("mode", mode)}});
  }
  expect_refused({
      {"y: other extents",
       [&] {
         softmax_forward(context, x, at(8192, {4, 36}));
       },
       "y has extents 4x36, expected 4x37"},
      {"y: x with other strides",
       [&] {
         softmax_forward(context, x, Tensor(x.data(), f32, {4, 37}, {1, 4}));
       },
       "the memory of y and x overlaps"},
      {"y: x with another dtype",
       [&] {
         softmax_forward(context, x, at(0, {4, 37}, f16));
       },
       "the memory of y and x overlaps"},
      {"axis: beyond the dimensions", with({.axis = 2}), "axis 2 is outside the 2 dimensions of x"},
      {"axis: before the first", with({.axis = -3}), "axis -3 is outside the 2 dimensions of x"},
      {"a dynamic batch along the axis", with({.axis = 0, .dynamic_batch = true}),
       "the batch cannot be dynamic along the axis"},
      {"an epilogue of stages", with({.epilogue = relu}), "no epilogue of stages"},
  });
}

TEST_F(BadArguments, OfSoftmaxBackward) {
  Context context(options());
  const Tensor y = at(0, {4, 37}), dy = at(8192, {4, 37}), dx = at(16384, {4, 37});
  const auto with = [&](const SoftmaxOptions& options) {
    return [&, options] { softmax_backward(context, y, dy, dx, options); };
  };
  softmax_backward(context, y, dy, dx);
  for (const SoftmaxMode mode : no_modes<SoftmaxMode>) {
    expect_refused({{"mode", with({.mode = mode}), unknown("mode", mode)}});
  }
  expect_refused({
      {"dy: other extents",
       [&] {
         softmax_backward(context, y, at(8192, {4, 36}), dx);
       },
       "dy has extents 4x36, expected 4x37"},
      {"dx: other extents",
       [&] {
         softmax_backward(context, y, dy, at(16384, {5, 37}));
       },
       "dx has extents 5x37, expected 4x37"},
      {"axis: beyond the dimensions", with({.axis = 2}), "axis 2 is outside the 2 dimensions of y"},
      {"axis: before the first", with({.axis = -3}), "axis -3 is outside the 2 dimensions of y"},
      {"an epilogue", with({.epilogue = relu}), "takes no epilogue of stages"},
      {"a dynamic batch along the axis", with({.axis = 0, .dynamic_batch = true}),
       "the batch cannot be dynamic along the axis"},
  });
}

TEST_F(BadArguments, OfActivations) {
  Context context(options());
  const Tensor x = at(0, {4, 5}), dy = at(4096, {4, 5}), y = at(8192, {4, 5});
  const auto forward = [&](const ActivationOptions& options) {
    return [&, options] { activation_forward(context, x, y, options); };
  };
  const auto backward = [&](const ActivationOptions& options) {
    return [&, options] { activation_backward(context, x, dy, y, options); };
  };
  const auto from_y = [&](const ActivationOptions& options) {
    return [&, options] { activation_backward_from_y(context, x, dy, y, options); };
  };
  constexpr auto identity = ActivationMode::identity;
  forward({.mode = identity})(), backward({.mode = identity})(), from_y({.mode = identity})();
  for (const ActivationMode mode : no_modes<ActivationMode>) {
    expect_refused({{"forward: mode", forward({.mode = mode}), unknown("mode", mode)},
                    {"backward: mode", backward({.mode = mode}), unknown("mode", mode)},
                    {"backward from y: mode", from_y({.mode = mode}), unknown("mode", mode)}});
  }
  expect_refused({
      {"forward: stages", forward({.epilogue = relu}), "takes no epilogue of stages"},
      {"forward: y has other strides than x",
       [&] {
         activation_forward(context, x, Tensor(x.data(), f32, {4, 5}, {1, 4}));
       },
       "the memory of y and x overlaps"},
      {"backward: stages", backward({.epilogue = relu}), "takes no epilogue of stages"},
      {"backward from y: stages", from_y({.epilogue = relu}), "takes no epilogue of stages"},
      {"from y: a mode that cannot", from_y({.mode = ActivationMode::gelu}),
       "the derivative of gelu cannot be told from y"},
  });
}

// Numbers that a mode cannot work with; those that it does not read may be anything.
TEST_F(BadArguments, OfNumbersOfActivations) {
  Context context(options());
  const Tensor x = at(0, {4, 5}), dy = at(4096, {4, 5}), y = at(8192, {4, 5});
  using Mode = ActivationMode;
  const auto forward = [&](const ActivationOptions& options) {
    return [&, options] { activation_forward(context, x, y, options); };
  };
  const auto backward = [&](const ActivationOptions& options) {
    return [&, options] { activation_backward(context, x, dy, y, options); };
  };
  const auto from_y = [&](const ActivationOptions& options) {
    return [&, options] { activation_backward_from_y(context, x, dy, y, options); };
  };
  const float nan = std::nanf("");
  expect_refused({
      {"clip: an empty range", forward({.mode = Mode::clip, .low = 2, .high = 1}), "forward: high is 1 and low is 2"},
      {"clip: an empty range", backward({.mode = Mode::clip, .low = 2, .high = 1}), "backward: high is 1 and low is 2"},
      {"clip: low is NaN", forward({.mode = Mode::clip, .low = nan}), "low is nan"},
      {"clip: high is NaN", forward({.mode = Mode::clip, .high = nan}), "high is nan"},
      {"clipped_relu: negative", forward({.mode = Mode::clipped_relu, .high = -1}), "activation_forward: high is -1"},
      {"softplus: flat", forward({.mode = Mode::softplus, .slope = 0}), "activation_forward: slope is 0"},
      {"softplus: falling", backward({.mode = Mode::softplus, .slope = -1}), "activation_backward: slope is -1"},
      {"softplus: infinite", from_y({.mode = Mode::softplus, .slope = INFINITY}), "activation_backward: slope is inf"},
      {"leaky_relu: NaN", forward({.mode = Mode::leaky_relu, .slope = nan}), "slope is nan"},
      {"leaky_relu: from y, falling", from_y({.mode = Mode::leaky_relu, .slope = -0.5F}), "slope is -0.5"},
      {"elu: from y, falling", from_y({.mode = Mode::elu, .slope = -0.5F}), "slope is -0.5"},
      {"swish: NaN", forward({.mode = Mode::swish, .slope = nan}), "slope is nan"},
      {"hard_sigmoid: NaN", forward({.mode = Mode::hard_sigmoid, .slope = nan}), "slope is nan"},
      {"hard_sigmoid: offset NaN", forward({.mode = Mode::hard_sigmoid, .offset = nan}), "offset is nan"},
  });
  forward({.mode = Mode::leaky_relu, .slope = -2, .offset = nan, .low = nan, .high = nan})();
  backward({.mode = Mode::elu, .slope = -2})(), from_y({.mode = Mode::elu, .slope = 0})();
}

TEST_F(BadArguments, OfNumbersOfNormalisations) {
  Context context(options());
  const Tensor x = at(0, {4, 5}), y = at(8192, {4, 5}), mean = at(16384, {1, 5}), variance = at(20480, {1, 5}),
               z = at(28672, {4, 5});
  const auto forward = [&](const NormOptions& options) {
    return [&, options] { norm_forward(context, {0}, x, y, options); };
  };
  const auto inference = [&](const NormOptions& options) {
    return [&, options] { norm_inference(context, {0}, x, mean, variance, y, options); };
  };
  const auto affine = [&](const NormAffineOptions& options) {
    return [&, options] { norm_affine(context, {0}, x, mean, variance, options); };
  };
  const auto backward = [&](const NormGradientOptions& options) {
    return [&, options] { norm_backward(context, {0}, x, y, variance, z, options); };
  };
  using Mode = ActivationMode;
  const float nan = std::nanf("");
  expect_refused({
      {"epsilon: negative", forward({.epsilon = -1e-5F}), "norm_forward: epsilon is -1e-05"},
      {"epsilon: NaN", forward({.epsilon = nan}), "norm_forward: epsilon is nan"},
      {"epsilon: infinite", forward({.epsilon = INFINITY}), "norm_forward: epsilon is inf"},
      {"momentum: NaN", forward({.momentum = nan}), "norm_forward: momentum is nan"},
      {"momentum: more than all", forward({.momentum = 1.5F}), "norm_forward: momentum is 1.5"},
      {"epsilon: negative, of scale and shift", affine({.epsilon = -1}), "norm_affine: epsilon is -1"},
      {"w: of each element", affine({.w = z}), "scale has extents 1x5, expected 4x5"},
      {"dynamic_batch: which is an axis", affine({.dynamic_batch = true}), "scale has batch 1, expected 4"},
      {"epsilon: negative, given statistics", inference({.epsilon = -1}), "norm_inference: epsilon is -1"},
      {"activation: unknown", forward({.activation = {static_cast<Mode>(99)}}), "activation=99 is unknown"},
      {"activation: NaN", forward({.activation = {Mode::swish, nan}}), "norm_forward: slope is nan"},
      {"activation: of no slope", inference({.activation = {Mode::softplus, 0}}), "norm_inference: slope is 0"},
      {"activation: an empty range", inference({.activation = {.mode = Mode::clip, .low = 2, .high = 1}}),
       "norm_inference: high is 1 and low is 2"},
      {"activation: behind relu", forward({.epilogue = relu, .activation = {Mode::tanh}}), "ends in relu"},
      {"activation: of gradients", backward({.mean = mean, .activation = {Mode::elu, nan}}),
       "norm_backward: slope is nan"},
      {"activation: and y", backward({.mean = mean, .y = at(24576, {4, 5}), .activation = {Mode::elu}}),
       "y is given and there is an activation"},
      {"b without activation", backward({.mean = mean, .b = at(24576, {1, 5})}), "b is given, but there is no"},
      {"residual without activation", backward({.mean = mean, .residual = at(24576, {4, 5})}),
       "residual is given, but there is no"},
      {"residual of other extents", backward({.mean = mean, .activation = {Mode::elu}, .residual = at(24576, {5, 4})}),
       "residual has extents 5x4, expected 4x5"},
  });
  forward({.epsilon = 0, .momentum = 1, .activation = {Mode::identity, nan}})(), inference({.momentum = nan})();
}

// A plan checks the numbers as the calls do.
TEST_F(BadArguments, OfNumbersOfPlans) {
  Context context(options());
  const auto run = [&](const char* line, std::initializer_list<float> scalars) {
    const Plan plan = context.plan(Request::parse(line));
    std::vector<Address> operands;
    for (size_t i = 0; i < plan.request().operands.size(); ++i) operands.push_back(base_ + 4096 * i);
    RunValues values = usual_values(plan.request());
    std::copy(scalars.begin(), scalars.end(), values.operation_scalars.begin());
    return [plan, operands, values] { plan.run(nullptr, std::span(operands), nullptr, values); };
  };
  expect_refused({
      {"dropout", run("dropout x=f32:4x5", {2}), "dropout: p is 2"},
      {"cross entropy", run("cross_entropy_forward x=f32:4x5 smoothing=any", {2}), "smoothing is 2"},
      {"local normalisation", run("local_norm_forward x=f32:4x5", {1, 0, 1}), "lrn_beta is 0"},
      {"normalisation", run("norm_forward x=f32:4x5", {-1}), "epsilon is -1"},
      {"clip", run("activation_forward x=f32:4x5 mode=clip", {0, 0, 2, 1}), "high is 1 and low is 2"},
      {"leaky_relu", run("activation_backward y=f32:4x5 dy=f32:4x5 mode=leaky_relu", {-1}), "slope is -1"},
  });
}

TEST_F(BadArguments, OfTensorFunctions) {
  Context context(options());
  const Tensor x = at(0, {4, 5}), y = at(8192, {4, 5});
  const auto transform = [&](const TransformOptions& options, const Tensor& to) {
    return [&, options, to] { tensor_transform(context, x, to, options); };
  };
  const auto op = [&](TensorOpMode mode, const Tensor& b, const Tensor& to) {
    return [&, mode, b, to] { tensor_op(context, mode, x, b, to); };
  };
  tensor_op(context, TensorOpMode::add, x, x, y);
  for (const TensorOpMode mode : no_modes<TensorOpMode>) {
    expect_refused({{"mode, 1 input", [&] { tensor_op(context, mode, x, y); }, "there is no mode"},
                    {"mode, 2 inputs", op(mode, x, y), "there is no mode"},
                    {"mode, 3 inputs", [&] { tensor_op(context, mode, x, x, x, y); }, "there is no mode"}});
  }
  expect_refused({
      {"y: other extents", transform({}, at(8192, {4, 6})), "y has extents 4x6, expected 4x5"},
      {"y: as many elements", transform({}, at(8192, {20})), "y has extents 20, expected 4x5"},
      {"pad: not in y", transform({.pad_begin = {0, 1}}, y), "y has extents 4x5, expected 4x6"},
      {"pad: negative", transform({.pad_begin = {0, -1}, .pad_end = {0, 1}}, y), "a pad is -1"},
      {"pad: huge", transform({.pad_end = {huge}}, y), "a pad is 1099511627776"},
      {"b: an extent that is neither", op(TensorOpMode::add, at(4096, {4, 2}), y), "b has extents 4x2, expected 4x5"},
      {"b: another rank", op(TensorOpMode::add, at(4096, {5}), y), "b has extents 5, expected 4x5"},
      {"mode: of one input", op(TensorOpMode::sqrt, x, y), "sqrt takes 1 inputs, 2 are given"},
      {"mode: of three inputs", op(TensorOpMode::select, x, y), "select takes 3 inputs, 2 are given"},
  });
}

TEST_F(BadArguments, OfGather) {
  Context context(options());
  const Tensor x = at(0, {4, 5}), indices = at(4096, {3, 1}, i32), y = at(8192, {3, 5});
  const auto along = [&](int64_t axis) { return [&, axis] { gather(context, x, indices, y, {.axis = axis}); }; };
  const auto call = [&](const Tensor& i, const Tensor& to) { return [&, i, to] { gather(context, x, i, to); }; };
  expect_refused({
      {"axis: behind the last", along(2), "axis 2 is outside the 2 dimensions of x"},
      {"axis: before the first", along(-3), "axis -3 is outside the 2 dimensions of x"},
      {"axis: another one", along(1), "along dimension 0 x has extent 4 and indices 3"},
      {"indices: another rank", call(at(4096, {3}, i32), y), "indices have 1 dimensions, x has 2"},
      {"indices: an extent that is neither", call(at(4096, {3, 2}, i32), y), "along dimension 1 x has extent 5"},
      {"indices: floats", call(at(4096, {3, 1}), y), "indices is f32"},
      {"x: nothing along the axis",
       [&] {
         gather(context, at(0, {0, 5}), indices, y);
       },
       "x has nothing along the axis, and y would be zeros alone"},
      {"y: other extents", call(indices, at(8192, {4, 5})), "y has extents 4x5, expected 3x5"},
      {"dynamic_batch: along it",
       [&] {
         gather(context, x, at(4096, {4, 1}, i32), at(8192, {4, 5}), {.dynamic_batch = true});
       },
       "the batch cannot be dynamic along the axis"},
  });
}

TEST_F(BadArguments, OfAttention) {
  Context context(options());
  const Tensor q = at(0, {2, 4, 3, 5}), k = at(4096, {2, 2, 7, 5}), v = at(8192, {2, 2, 7, 6}),
               y = at(12288, {2, 4, 3, 6});
  const auto with = [&](const AttentionOptions& options) {
    return [&, options] { attention_forward(context, q, k, v, y, options); };
  };
  for (const auto align : no_modes<AttentionAlign>) {
    expect_refused({{"align", with({.right = 0, .align = align}), unknown("align", align)}});
  }
  expect_refused({
      {"left: negative", with({.left = -2}), "left is -2"},
      {"left: huge", with({.left = huge}), "left is 1099511627776"},
      {"right: negative", with({.right = -2}), "right is -2"},
      {"right: huge", with({.right = huge}), "right is 1099511627776"},
      {"dropout: negative", with({.dropout = -0.5F}), "dropout is -0.5"},
      {"dropout: too large", with({.dropout = 1.5F}), "dropout is 1.5"},
      {"dropout: no number", with({.dropout = std::nanf("")}), "dropout is nan"},
      {"align: of all keys", with({.align = AttentionAlign::end}), "align=end without left or right"},
      {"bias: of another key", with({.bias = at(16384, {2, 4, 3, 6})}), "bias has extents 2x4x3x6, expected 2x4x3x7"},
      {"mask: floats", with({.mask = at(16384, {2, 4, 3, 7})}), "mask is f32"},
      {"lengths: of heads", with({.lengths = at(16384, {4}, i32)}), "lengths has extents 4, expected 2"},
      {"lse: over y", with({.lse = at(12292, {2, 4, 3})}), "the memory of lse and y overlaps"},
      {"an epilogue of stages", with({.epilogue = relu}), "no epilogue of stages"},
      {"k: no divisor of the heads",
       [&] {
         attention_forward(context, q, at(4096, {2, 3, 7, 5}), at(8192, {2, 3, 7, 6}), y);
       },
       "q has 4 heads and k 3"},
      {"y: elements of q",
       [&] {
         attention_forward(context, q, k, v, at(12288, {2, 4, 3, 5}));
       },
       "y has extents 2x4x3x5, expected 2x4x3x6"},
  });
}

TEST_F(BadArguments, OfGradientsOfAttention) {
  Context context(options());
  const Tensor q = at(0, {2, 4, 3, 5}), k = at(4096, {2, 2, 7, 5}), v = at(8192, {2, 2, 7, 6}),
               dy = at(12288, {2, 4, 3, 6}), lse = at(16384, {2, 4, 3}), dq = at(20480, {2, 4, 3, 5});
  const auto with = [&](const AttentionBackwardOptions& options) {
    return [&, options] { attention_backward(context, dy, q, k, v, dy, lse, dq, options); };
  };
  for (const auto align : no_modes<AttentionAlign>) {
    expect_refused({{"align", with({.left = 0, .align = align}), unknown("align", align)}});
  }
  expect_refused({
      {"left: negative", with({.left = -2}), "left is -2"},
      {"right: huge", with({.right = huge}), "right is 1099511627776"},
      {"dropout: too large", with({.dropout = 1.5F}), "dropout is 1.5"},
      {"dk: of queries", with({.dk = at(24576, {2, 4, 3, 5})}), "dk has extents 2x4x3x5, expected 2x2x7x5"},
      {"dv: of keys", with({.dv = at(24576, {2, 2, 7, 5})}), "dv has extents 2x2x7x5, expected 2x2x7x6"},
      {"dbias: that repeats", with({.bias = at(24576, {1, 4, 3, 7}), .dbias = at(28672, {1, 4, 3, 7})}),
       "dbias has extents 1x4x3x7, expected 2x4x3x7"},
      {"dv: over dq", with({.dv = at(20484, {2, 2, 7, 6})}), "the memory of dv and dq overlaps"},
      {"an epilogue", with({.epilogue = relu}), "takes no epilogue of stages"},
  });
}

TEST_F(BadArguments, OfResize) {
  Context context(options());
  const Tensor x = at(0, {1, 2, 4, 5}), y = at(8192, {1, 2, 6, 7});
  const auto with = [&](const ResizeOptions& options) { return [&, options] { resize(context, x, y, options); }; };
  const auto to = [&](const Tensor& t) { return [&, t] { resize(context, x, t); }; };
  const auto cubic = [&](float a) { return with({.mode = ResizeMode::cubic, .cubic = a}); };
  for (const auto mode : no_modes<ResizeMode>) {
    expect_refused({{"mode", with({.mode = mode}), unknown("mode", mode)}});
  }
  for (const auto coordinates : no_modes<ResizeCoordinates>) {
    expect_refused({{"coordinates", with({.coordinates = coordinates}), unknown("coordinates", coordinates)}});
  }
  for (const auto rounding : no_modes<ResizeRounding>) {
    expect_refused({{"rounding", with({.rounding = rounding}), unknown("rounding", rounding)}});
  }
  expect_refused({
      {"y: other channels", to(at(8192, {1, 3, 6, 7})), "y has extents 1x3x6x7, expected 1x2x6x7"},
      {"y: another rank", to(at(8192, {1, 2, 6})), "x has 4 and y has 3 dimensions"},
      {"y: nothing along w", to(at(8192, {1, 2, 6, 0})), "y has extent 0 along w"},
      {"scale: negative", with({.scale = {-1.5F, 1.5F}}), "the scale is -1.5"},
      {"scale: NaN", with({.scale = {std::nanf(""), 1.5F}}), "the scale is nan"},
      {"scale: too small", with({.scale = {0.001F, 1.5F}}), "the scale is 0.001"},
      {"scale: too large", with({.scale = {1000, 1.5F}}), "the scale is 1000"},
      {"scale: not that of y", with({.scale = {1.5F, 1.25F}}), "y has extent 7 along w, expected 6"},
      {"cubic: above 0", cubic(0.5F), "cubic is 0.5"},
      {"cubic: below -1", cubic(-1.5F), "cubic is -1.5"},
      {"cubic: NaN", cubic(std::nanf("")), "cubic is nan"},
  });
}

}  // namespace
}  // namespace kiln::bad_operations_test
