// The C API gives what the C++ API gives, for options that all differ from one another.
#include <gmock/gmock.h>

#include <algorithm>

#include "fixture.h"
#include "kiln/activation.h"
#include "kiln/conv.h"
#include "kiln/memory.h"
#include "kiln/pool.h"
#include "kiln/reduce.h"
#include "kiln/softmax.h"
#include "kiln/tensor_ops.h"

namespace kiln::capi::calls_test {
namespace {

using testing::HasSubstr;

class CApiCalls : public CApiBesideCpp {};

TEST_F(CApiCalls, ConvolutionWithEveryOption) {
  const void *x = upload(wave(2 * 6 * 9 * 7)), *w = upload(wave(8 * 3 * 3 * 3, 0.71f)), *b = upload(wave(8, 1.3f));
  const void* residual = upload(wave(2 * 8 * 5 * 6, 0.11f));
  const std::vector<float> start = wave(2 * 8 * 5 * 6, 0.53f);
  const void *y = upload(start), *expected = upload(start);

  kiln_conv_options c = kiln_conv_options_default();
  c.mirrored = 1;
  c.pad_begin[0] = 1, c.pad_begin[1] = 2, c.pad_end[0] = 1, c.pad_end[1] = 1;
  c.stride[0] = 2, c.dilation[1] = 2;
  c.groups = 2;
  c.alpha = 0.5f, c.beta = -2.0f;
  c.deterministic = 1;
  kiln_epilogue* epilogue = nullptr;
  ASSERT_EQ(kiln_epilogue_create(&epilogue), KILN_OK);
  const kiln_tensor bias_tensor = tensor(b, {8}), residual_tensor = tensor(residual, {2, 8, 5, 6});
  EXPECT_EQ(kiln_epilogue_bias(epilogue, &bias_tensor), KILN_OK);
  EXPECT_EQ(kiln_epilogue_add(epilogue, &residual_tensor), KILN_OK);
  EXPECT_EQ(kiln_epilogue_clip(epilogue, -0.5f, 0.75f), KILN_OK);
  c.epilogue = epilogue;
  const kiln_tensor cx = tensor(x, {2, 6, 9, 7}, "nhwc"), cw = tensor(w, {8, 3, 3, 3}), cy = tensor(y, {2, 8, 5, 6});
  EXPECT_EQ(kiln_conv_forward(context_, &cx, &cw, &cy, &c, nullptr), KILN_OK) << kiln_last_error();
  kiln_epilogue_destroy(epilogue);

  ConvOptions options;
  options.mirrored = true;
  options.pad = {1, 2, 1, 1};
  options.stride = {2, 1};
  options.dilation = {1, 2};
  options.groups = 2;
  options.alpha = 0.5f;
  options.beta = -2.0f;
  options.arithmetic.deterministic = true;
  options.epilogue =
      bias(Tensor(b, f32, {8}, contiguous)) + add(Tensor(residual, f32, {2, 8, 5, 6}, nchw)) + clip(-0.5f, 0.75f);
  conv_forward(cpp_, Tensor(x, f32, {2, 6, 9, 7}, nhwc), Tensor(w, f32, {8, 3, 3, 3}, nchw),
               Tensor(expected, f32, {2, 8, 5, 6}, nchw), options);
  EXPECT_EQ(download(y), download(expected));
  EXPECT_NE(download(y), start);
}

TEST_F(CApiCalls, UserCodeInEveryOperation) {
  const std::vector<float> values = wave(1 * 3 * 4 * 4);
  const void *x = upload(values), *b = upload({1, 2, 3}), *y = upload(values);
  const kiln_tensor cx = tensor(x, {1, 3, 4, 4}), cb = tensor(b, {3}), cy = tensor(y, {1, 3, 4, 4});
  const kiln_named_tensor tensors[] = {{"b", &cb}};
  const kiln_named_scalar scalars[] = {{"s", 2.0f, 0}};
  kiln_epilogue* epilogue = nullptr;
  ASSERT_EQ(kiln_epilogue_create(&epilogue), KILN_OK);
  const char* const code = "--- prologue\nx * s\n---\nacc + b";
  ASSERT_EQ(kiln_epilogue_expression(epilogue, code, tensors, 1, scalars, 1), KILN_OK) << kiln_last_error();

  kiln_pool_options pool = kiln_pool_options_default();
  pool.window[0] = pool.window[1] = 1;  // so y = 2 x + b
  pool.epilogue = epilogue;
  EXPECT_EQ(kiln_pool_forward(context_, &cx, &cy, &pool, nullptr), KILN_OK) << kiln_last_error();
  const std::vector<float> pooled = download(y);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_FLOAT_EQ(pooled[i], 2 * values[i] + static_cast<float>(i / 16 + 1));

  const void* w = upload({1, 0, 0, 0, 1, 0, 0, 0, 1});
  const kiln_tensor cw = tensor(w, {3, 3, 1, 1});
  kiln_conv_options conv = kiln_conv_options_default();
  conv.epilogue = epilogue;
  EXPECT_EQ(kiln_conv_forward(context_, &cx, &cw, &cy, &conv, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_EQ(download(y), pooled) << "the filter is the identity";

  kiln_epilogue_destroy(epilogue);
  ASSERT_EQ(kiln_epilogue_create(&epilogue), KILN_OK);
  ASSERT_EQ(kiln_epilogue_expression(epilogue, "acc * s + 1.0f", nullptr, 0, scalars, 1), KILN_OK);
  kiln_softmax_options softmax = kiln_softmax_options_default();
  softmax.epilogue = epilogue;
  EXPECT_EQ(kiln_softmax_forward(context_, &cx, &cy, &softmax, nullptr), KILN_OK) << kiln_last_error();
  const std::vector<float> normal = download(y);
  for (size_t i = 0; i < 16; ++i) EXPECT_NEAR(normal[i] + normal[i + 16] + normal[i + 32], 2.0f + 3.0f, 1e-5);
  kiln_epilogue_destroy(epilogue);
}

TEST_F(CApiCalls, PlansOfUserCodeTakeItsDefinitionAndItsScalars) {
  kiln_plan* plan = nullptr;
  const char* request =
      "expression scaled(; s)\nacc * s\nend expression\npool_forward x=f32:1x1x2x2 window=1 epilogue=user:scaled\n";
  ASSERT_EQ(kiln_plan_create(context_, request, &plan), KILN_OK) << kiln_last_error();
  const void *x = upload({1, 2, 3, 4}), *y = upload({0, 0, 0, 0});
  const void* operands[] = {x, y};
  const float scale = 3;
  kiln_run_values values = kiln_run_values_default();
  values.scalars = &scale;
  values.scalar_count = 1;
  EXPECT_EQ(kiln_plan_run(plan, nullptr, operands, 2, nullptr, &values), KILN_OK) << kiln_last_error();
  EXPECT_EQ(download(y), (std::vector<float>{3, 6, 9, 12}));
  kiln_plan_destroy(plan);
}

TEST_F(CApiCalls, APlanFromAKeyLacksTheUsersText) {
  char* key = nullptr;
  ASSERT_EQ(
      kiln_request_key("expression e\nacc - 1.0f\nend expression\nsoftmax_forward x=f32:3x7 epilogue=user:e", &key),
      KILN_OK)
      << kiln_last_error();
  kiln_plan* plan = nullptr;
  EXPECT_EQ(kiln_plan_create(context_, key, &plan), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), HasSubstr("the text of user:"));
  EXPECT_THAT(kiln_last_hint(), HasSubstr("define the expression"));
  kiln_string_destroy(key);
}

TEST_F(CApiCalls, PoolingWithEveryOption) {
  const void* x = upload(wave(2 * 3 * 9 * 8));
  const std::vector<float> start = wave(2 * 3 * 5 * 7, 0.53f);
  const void *y = upload(start), *expected = upload(start);
  kiln_pool_options c = kiln_pool_options_default();
  c.mode = KILN_POOL_AVG_PADDED;
  c.window[0] = 3, c.window[1] = 2;
  c.pad_begin[0] = 1, c.pad_end[0] = 1, c.pad_end[1] = 1;
  c.stride[0] = 2, c.dilation[1] = 2;
  c.alpha = 3.0f, c.beta = 0.25f;
  const kiln_tensor cx = tensor(x, {2, 3, 9, 8}), cy = tensor(y, {2, 3, 5, 7});
  EXPECT_EQ(kiln_pool_forward(context_, &cx, &cy, &c, nullptr), KILN_OK) << kiln_last_error();

  PoolOptions options;
  options.mode = PoolMode::avg_padded;
  options.window = {3, 2};
  options.pad = {1, 0, 1, 1};
  options.stride = {2, 1};
  options.dilation = {1, 2};
  options.alpha = 3.0f;
  options.beta = 0.25f;
  pool_forward(cpp_, Tensor(x, f32, {2, 3, 9, 8}, nchw), Tensor(expected, f32, {2, 3, 5, 7}, nchw), options);
  EXPECT_EQ(download(y), download(expected));
  EXPECT_NE(download(y), start);
}

TEST_F(CApiCalls, GradientsOfPooling) {
  const void *x = upload(wave(2 * 3 * 9 * 8)), *dy = upload(wave(2 * 3 * 4 * 4, 0.31f));
  const void *dx = upload(wave(2 * 3 * 9 * 8, 0.53f)), *expected = upload(wave(2 * 3 * 9 * 8, 0.53f));
  kiln_pool_options c = kiln_pool_options_default();
  c.window[0] = 3, c.window[1] = 2;
  c.stride[0] = c.stride[1] = 2;
  c.beta = 0.25f;
  const kiln_tensor cx = tensor(x, {2, 3, 9, 8}), cdy = tensor(dy, {2, 3, 4, 4}), cdx = tensor(dx, {2, 3, 9, 8});
  EXPECT_EQ(kiln_pool_backward(context_, &cdy, &cx, &cdx, &c, nullptr), KILN_OK) << kiln_last_error();
  PoolOptions options;
  options.window = {3, 2};
  options.stride = {2, 2};
  options.beta = 0.25f;
  const Tensor incoming(dy, f32, {2, 3, 4, 4}, nchw), gradient(expected, f32, {2, 3, 9, 8}, nchw);
  pool_backward(cpp_, incoming, Tensor(x, f32, {2, 3, 9, 8}, nchw), gradient, options);
  EXPECT_EQ(download(dx), download(expected));
  EXPECT_NE(download(dx), wave(2 * 3 * 9 * 8, 0.53f));

  c.mode = KILN_POOL_AVG;
  EXPECT_EQ(kiln_pool_backward(context_, &cdy, nullptr, &cdx, &c, nullptr), KILN_OK) << kiln_last_error();
  options.mode = PoolMode::avg;
  pool_backward(cpp_, incoming, gradient, gradient, options);
  EXPECT_EQ(download(dx), download(expected));
}

TEST_F(CApiCalls, ConvolutionOfThreeSpatialDimensionsAndOfOne) {
  const void *x = upload(wave(2 * 4 * 5 * 6)), *w = upload(wave(3 * 2 * 2 * 2 * 2, 0.71f));
  const void *y = upload(std::vector<float>(300)), *expected = upload(std::vector<float>(300));
  kiln_conv_options c = kiln_conv_options_default();
  c.pad_begin[0] = 1, c.pad_begin[1] = 0, c.pad_begin[2] = 2, c.pad_end[2] = 1;
  c.stride[0] = 1, c.stride[1] = 2, c.stride[2] = 3;
  c.dilation[0] = 2;
  const kiln_tensor cx = tensor(x, {1, 2, 4, 5, 6}), cw = tensor(w, {3, 2, 2, 2, 2}), cy = tensor(y, {1, 3, 3, 2, 3});
  EXPECT_EQ(kiln_conv_forward(context_, &cx, &cw, &cy, &c, nullptr), KILN_OK) << kiln_last_error();
  ConvOptions options;
  options.depth.pad_front = 1;
  options.depth.dilation = 2;
  options.pad = {0, 2, 0, 1};
  options.stride = {2, 3};
  conv_forward(cpp_, Tensor(x, f32, {1, 2, 4, 5, 6}, contiguous), Tensor(w, f32, {3, 2, 2, 2, 2}, contiguous),
               Tensor(expected, f32, {1, 3, 3, 2, 3}, contiguous), options);
  EXPECT_EQ(download(y), download(expected));
  EXPECT_NE(download(y), std::vector<float>(300));

  kiln_conv_options line = kiln_conv_options_default();
  line.pad_begin[0] = 1, line.stride[0] = 2;
  const kiln_tensor lx = tensor(x, {1, 2, 9}), lw = tensor(w, {3, 2, 2}), ly = tensor(y, {1, 3, 5});
  EXPECT_EQ(kiln_conv_forward(context_, &lx, &lw, &ly, &line, nullptr), KILN_OK) << kiln_last_error();
  ConvOptions width;
  width.pad = {0, 1, 0, 0};
  width.stride = {1, 2};
  conv_forward(cpp_, Tensor(x, f32, {1, 2, 9}, contiguous), Tensor(w, f32, {3, 2, 2}, contiguous),
               Tensor(expected, f32, {1, 3, 5}, contiguous), width);
  EXPECT_EQ(download(y), download(expected));
}

TEST_F(CApiCalls, NoPoolOptionsMeanGlobalMaxPooling) {
  const std::vector<float> image = wave(5 * 4);
  const void *x = upload(image), *y = upload({0});
  const kiln_tensor cx = tensor(x, {1, 1, 5, 4}), cy = tensor(y, {1, 1, 1, 1});
  EXPECT_EQ(kiln_pool_forward(context_, &cx, &cy, nullptr, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_EQ(download(y)[0], *std::max_element(image.begin(), image.end()));
}

TEST_F(CApiCalls, SoftmaxWithEveryOptionOnASubRegion) {
  const void* x = upload(wave(6 * 8 * 3));
  const std::vector<float> start = wave(5 * 7 * 3, 0.53f);
  const void *y = upload(start), *expected = upload(start);
  kiln_softmax_options c = kiln_softmax_options_default();
  c.mode = KILN_SOFTMAX_LOG;
  c.axis = -2;
  c.alpha = 0.5f, c.beta = 2.0f;
  kiln_tensor cx = tensor(x, {6, 8, 3});
  cx.extents[0] = 5, cx.extents[1] = 7;  // the first rows and columns of the larger tensor
  const kiln_tensor cy = tensor(y, {5, 7, 3});
  EXPECT_EQ(kiln_softmax_forward(context_, &cx, &cy, &c, nullptr), KILN_OK) << kiln_last_error();

  SoftmaxOptions options;
  options.mode = SoftmaxMode::log;
  options.axis = -2;
  options.alpha = 0.5f;
  options.beta = 2.0f;
  softmax_forward(cpp_, Tensor(x, f32, {5, 7, 3}, {24, 3, 1}), Tensor(expected, f32, {5, 7, 3}, contiguous), options);
  EXPECT_EQ(download(y), download(expected));
  EXPECT_NE(download(y), start);
}

TEST_F(CApiCalls, MaximaWithTheirIndicesAndBack) {
  const void *x = upload(wave(2 * 3 * 9 * 8)), *dy = upload(wave(2 * 3 * 4 * 4, 0.31f));
  const std::vector<float> nothing(2 * 3 * 4 * 4), start(2 * 3 * 9 * 8);
  const void *y = upload(nothing), *expected_y = upload(nothing), *indices = upload(nothing);
  const void *dx = upload(start), *expected = upload(start);
  kiln_pool_options c = kiln_pool_options_default();
  c.window[0] = c.window[1] = c.stride[0] = c.stride[1] = 2;
  const kiln_tensor cx = tensor(x, {2, 3, 9, 8}), cy = tensor(y, {2, 3, 4, 4}), cdy = tensor(dy, {2, 3, 4, 4});
  const kiln_tensor cdx = tensor(dx, {2, 3, 9, 8});
  kiln_tensor named = tensor(indices, {2, 3, 4, 4});
  named.dtype = KILN_I32;
  EXPECT_EQ(kiln_pool_forward_with_indices(context_, &cx, &cy, &named, &c, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_EQ(kiln_pool_backward_from_indices(context_, &cdy, &named, &cdx, &c, nullptr), KILN_OK) << kiln_last_error();
  const PoolOptions options{.window = {2, 2}, .stride = {2, 2}};
  const Tensor input(x, f32, {2, 3, 9, 8}, nchw), gradient(expected, f32, {2, 3, 9, 8}, nchw);
  pool_forward(cpp_, input, Tensor(expected_y, f32, {2, 3, 4, 4}, nchw), options);
  pool_backward(cpp_, Tensor(dy, f32, {2, 3, 4, 4}, nchw), input, gradient, options);
  EXPECT_EQ(download(y), download(expected_y));
  EXPECT_EQ(download(dx), download(expected));
  EXPECT_NE(download(dx), start);
  EXPECT_EQ(kiln_unpool_forward(context_, &cdy, &named, &cdx, &c, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_EQ(download(dx), download(expected)) << "the same function";

  EXPECT_EQ(kiln_unpool_backward(context_, &cx, &named, &cy, &c, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_EQ(download(y), download(expected_y)) << "x at the places of its maxima is these";
}

TEST_F(CApiCalls, GradientsOfSoftmax) {
  const void *y = upload(wave(5 * 7 * 3)), *dy = upload(wave(5 * 7 * 3, 0.31f));
  const std::vector<float> start = wave(5 * 7 * 3, 0.53f);
  const void *dx = upload(start), *expected = upload(start);
  kiln_softmax_options c = kiln_softmax_options_default();
  c.mode = KILN_SOFTMAX_LOG;
  c.axis = -2;
  c.alpha = 0.5f, c.beta = 2.0f;
  const kiln_tensor cy = tensor(y, {5, 7, 3}), cdy = tensor(dy, {5, 7, 3}), cdx = tensor(dx, {5, 7, 3});
  EXPECT_EQ(kiln_softmax_backward(context_, &cy, &cdy, &cdx, &c, nullptr), KILN_OK) << kiln_last_error();
  const auto as_tensor = [](const void* data) { return Tensor(data, f32, {5, 7, 3}, contiguous); };
  softmax_backward(cpp_, as_tensor(y), as_tensor(dy), as_tensor(expected),
                   {.axis = -2, .mode = SoftmaxMode::log, .alpha = 0.5f, .beta = 2.0f});
  EXPECT_EQ(download(dx), download(expected));
  EXPECT_NE(download(dx), start);
}

// Calls with options that have an epilogue at their end, and kiln_tensor_set_with_epilogue().
TEST_F(CApiCalls, TensorFunctionsReductionsAndLossesTakeUserCode) {
  kiln_epilogue* code = nullptr;
  ASSERT_EQ(kiln_epilogue_create(&code), KILN_OK);
  const kiln_named_scalar scalar = {"s", 3, 0};
  ASSERT_EQ(kiln_epilogue_expression(code, "acc * s + 1.0f", nullptr, 0, &scalar, 1), KILN_OK) << kiln_last_error();
  const std::vector<float> start = {1, 2, 3, 4};
  const void *x = upload(start), *y = upload(start);
  const kiln_tensor cx = tensor(x, {2, 2}), cy = tensor(y, {2, 2}), column = tensor(y, {2, 1});
  const auto result = [&](kiln_status status) {
    EXPECT_EQ(status, KILN_OK) << kiln_last_error();
    return download(y);
  };
  using Floats = std::vector<float>;
  EXPECT_EQ(result(kiln_tensor_set_with_epilogue(context_, &cy, 5, code, nullptr)), (Floats{16, 16, 16, 16}));
  EXPECT_EQ(result(kiln_tensor_set_with_epilogue(context_, &cy, 5, nullptr, nullptr)), (Floats{5, 5, 5, 5}));
  kiln_transform_options transform = kiln_transform_options_default();
  transform.epilogue = code;
  EXPECT_EQ(result(kiln_tensor_transform(context_, &cx, &cy, &transform, nullptr)), (Floats{4, 7, 10, 13}));
  kiln_tensor_op_options op = kiln_tensor_op_options_default();
  op.epilogue = code;
  EXPECT_EQ(result(kiln_tensor_op(context_, KILN_TENSOR_NEG, &cx, nullptr, nullptr, &cy, &op, nullptr)),
            (Floats{-2, -5, -8, -11}));
  kiln_dropout_options dropout = kiln_dropout_options_default();
  dropout.p = 0, dropout.epilogue = code;
  EXPECT_EQ(result(kiln_dropout_forward(context_, &cx, &cy, &dropout, nullptr)), (Floats{4, 7, 10, 13}));
  kiln_reduce_options reduction = kiln_reduce_options_default();
  reduction.epilogue = code;
  EXPECT_EQ(result(kiln_reduce(context_, KILN_REDUCE_ADD, &cx, &column, nullptr, &reduction, nullptr)),
            (Floats{10, 22, 10, 13}));
  kiln_tensor targets = tensor(upload(Floats{0, 0}), {2});
  targets.dtype = KILN_I32;
  kiln_cross_entropy_options loss = kiln_cross_entropy_options_default();
  loss.reduction = KILN_LOSS_NONE, loss.ignore = 0, loss.epilogue = code;
  const kiln_tensor losses = tensor(y, {2});
  EXPECT_EQ(result(kiln_cross_entropy_forward(context_, &cx, &targets, &losses, &loss, nullptr)),
            (Floats{1, 1, 10, 13}));
  kiln_epilogue_destroy(code);
}

TEST_F(CApiCalls, ReductionsWithAndWithoutIndices) {
  const void* x = upload(wave(5 * 7 * 3));
  const std::vector<float> start = wave(7);
  const void *y = upload(start), *expected = upload(start), *at = upload(start), *expected_at = upload(start);
  kiln_reduce_options c = kiln_reduce_options_default();
  c.alpha = 0.5f, c.beta = 2.0f;
  const kiln_tensor cx = tensor(x, {5, 7, 3}), cy = tensor(y, {1, 7, 1});
  kiln_tensor indices = tensor(at, {1, 7, 1});
  indices.dtype = KILN_I32;
  const Tensor in(x, f32, {5, 7, 3}, contiguous), out(expected, f32, {1, 7, 1}, contiguous);
  EXPECT_EQ(kiln_reduce(context_, KILN_REDUCE_NORM2, &cx, &cy, nullptr, &c, nullptr), KILN_OK) << kiln_last_error();
  reduce(cpp_, ReduceMode::norm2, in, out, {.alpha = 0.5f, .beta = 2.0f});
  EXPECT_EQ(download(y), download(expected));
  EXPECT_NE(download(y), start);
  EXPECT_EQ(kiln_reduce(context_, KILN_REDUCE_MIN, &cx, &cy, &indices, nullptr, nullptr), KILN_OK) << kiln_last_error();
  reduce(cpp_, ReduceMode::min, in, out, Tensor(expected_at, i32, {1, 7, 1}, contiguous));
  EXPECT_EQ(download(y), download(expected));
  EXPECT_EQ(download(at), download(expected_at));
  EXPECT_NE(download(at), start);
}

TEST_F(CApiCalls, ActivationsWithEveryOption) {
  const std::vector<float> x = wave(5 * 7), start = wave(5 * 7, 0.53f);
  const void *in = upload(x), *gradient = upload(wave(5 * 7, 0.19f));
  kiln_activation_options c = kiln_activation_options_default(KILN_ACTIVATION_HARD_SIGMOID);
  c.slope = 0.75f, c.offset = 0.25f, c.alpha = 0.5f, c.beta = -2.0f;
  const ActivationOptions options{
      .mode = ActivationMode::hard_sigmoid, .slope = 0.75f, .offset = 0.25f, .alpha = 0.5f, .beta = -2.0f};
  const auto expect_equal = [&](const auto& call, const auto& cpp_call) {
    const void *y = upload(start), *expected = upload(start);
    const kiln_tensor result = tensor(y, {5, 7});
    EXPECT_EQ(call(result), KILN_OK) << kiln_last_error();
    cpp_call(Tensor(expected, f32, {5, 7}, contiguous));
    EXPECT_EQ(download(y), download(expected));
    EXPECT_NE(download(y), start);
  };
  const kiln_tensor cx = tensor(in, {5, 7}), cdy = tensor(gradient, {5, 7});
  const Tensor tx(in, f32, {5, 7}, contiguous), tdy(gradient, f32, {5, 7}, contiguous);
  expect_equal([&](const kiln_tensor& y) { return kiln_activation_forward(context_, &cx, &y, &c, nullptr); },
               [&](const Tensor& y) { activation_forward(cpp_, tx, y, options); });
  expect_equal([&](const kiln_tensor& dx) { return kiln_activation_backward(context_, &cx, &cdy, &dx, &c, nullptr); },
               [&](const Tensor& dx) { activation_backward(cpp_, tx, tdy, dx, options); });
  const kiln_activation_options tanh = kiln_activation_options_default(KILN_ACTIVATION_TANH);
  expect_equal(
      [&](const kiln_tensor& dx) { return kiln_activation_backward_from_y(context_, &cx, &cdy, &dx, &tanh, nullptr); },
      [&](const Tensor& dx) { activation_backward_from_y(cpp_, tx, tdy, dx, {.mode = ActivationMode::tanh}); });
  // Without options, relu in place.
  EXPECT_EQ(kiln_activation_forward(context_, &cx, &cx, nullptr, nullptr), KILN_OK) << kiln_last_error();
  std::vector<float> positive = x;
  for (float& value : positive) value = std::max(value, 0.0f);
  EXPECT_EQ(download(in), positive);
}

TEST_F(CApiCalls, ActivationsHaveTheSameUsualNumbers) {
  for (const ActivationMode mode : activation_modes()) {
    const kiln_activation_options c = kiln_activation_options_default(static_cast<kiln_activation_mode>(mode));
    const ActivationNumbers numbers = usual_numbers(mode);
    EXPECT_EQ(c.slope, numbers.slope) << to_string(mode);
    EXPECT_EQ(c.offset, numbers.offset) << to_string(mode);
    EXPECT_EQ(c.low, numbers.low) << to_string(mode);
    EXPECT_EQ(c.high, numbers.high) << to_string(mode);
  }
}

TEST_F(CApiCalls, TensorFunctionsWithEveryOption) {
  const void *x = upload(wave(2 * 3)), *y = upload(wave(4 * 5, 0.53f)), *expected = upload(wave(4 * 5, 0.53f));
  const kiln_tensor cx = tensor(x, {2, 3}), cy = tensor(y, {4, 5});
  const Tensor tx(x, f32, {2, 3}, contiguous), ty(expected, f32, {4, 5}, contiguous);
  kiln_transform_options c = kiln_transform_options_default();
  c.alpha = 0.5f, c.beta = -2.0f, c.value = 7;
  c.pad_begin[0] = 2, c.pad_end[1] = 2;
  EXPECT_EQ(kiln_tensor_transform(context_, &cx, &cy, &c, nullptr), KILN_OK) << kiln_last_error();
  tensor_transform(cpp_, tx, ty, {.alpha = 0.5f, .beta = -2.0f, .pad_begin = {2}, .pad_end = {0, 2}, .value = 7});
  EXPECT_EQ(download(y), download(expected));

  const void *a = upload({1, 2, 3, 4, 5}), *mask = upload({1, 0, 0, 1});
  const kiln_tensor ca = tensor(a, {1, 5}), cmask = tensor(mask, {4, 1});
  const Tensor ta(a, f32, {1, 5}, contiguous), tmask(mask, f32, {4, 1}, contiguous);
  kiln_tensor_op_options op = kiln_tensor_op_options_default();
  op.alpha = 3;
  EXPECT_EQ(kiln_tensor_op(context_, KILN_TENSOR_SELECT, &cmask, &ca, &cy, &cy, &op, nullptr), KILN_OK)
      << kiln_last_error();
  tensor_op(cpp_, TensorOpMode::select, tmask, ta, ty, ty, {.alpha = 3});
  EXPECT_EQ(kiln_tensor_op(context_, KILN_TENSOR_ABS, &cy, nullptr, nullptr, &cy, nullptr, nullptr), KILN_OK);
  tensor_op(cpp_, TensorOpMode::abs, ty, ty);
  EXPECT_EQ(kiln_tensor_add(context_, &ca, &cy, 2, 0.5f, nullptr), KILN_OK);
  tensor_add(cpp_, ta, ty, 2, 0.5f);
  EXPECT_EQ(kiln_tensor_scale(context_, &cy, -1.5f, nullptr), KILN_OK);
  tensor_scale(cpp_, ty, -1.5f);
  EXPECT_EQ(download(y), download(expected));
  EXPECT_EQ(kiln_tensor_set(context_, &cy, 0.25f, nullptr), KILN_OK);
  EXPECT_EQ(download(y), std::vector<float>(20, 0.25f));
}

TEST_F(CApiCalls, TensorOpsReadAsManyInputsAsTheyTake) {
  const kiln_tensor t = tensor(upload({1, 2}), {2});
  EXPECT_EQ(kiln_tensor_op(context_, KILN_TENSOR_SQRT, &t, &t, nullptr, &t, nullptr, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), testing::HasSubstr("sqrt takes 1 inputs, more are given"));
  EXPECT_EQ(kiln_tensor_op(context_, KILN_TENSOR_ADD, &t, nullptr, nullptr, &t, nullptr, nullptr),
            KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), testing::HasSubstr("b is NULL"));
  EXPECT_EQ(kiln_tensor_op(context_, 20, &t, &t, nullptr, &t, nullptr, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), testing::HasSubstr("the mode is 20"));
}

TEST_F(CApiCalls, ADynamicBatchTakesItsBatchFromTheCall) {
  kiln_softmax_options c = kiln_softmax_options_default();
  c.dynamic_batch = 1;
  for (int64_t batch : {0, 1, 3}) {
    const void *x = upload(std::vector<float>(4 * 5, 1.0f)), *y = upload(std::vector<float>(4 * 5, -1.0f));
    const kiln_tensor cx = tensor(x, {batch, 5}), cy = tensor(y, {batch, 5});
    EXPECT_EQ(kiln_softmax_forward(context_, &cx, &cy, &c, nullptr), KILN_OK) << kiln_last_error();
    const std::vector<float> result = download(y);
    EXPECT_EQ(std::count(result.begin(), result.end(), -1.0f), (4 - batch) * 5) << "rows behind the batch stay";
  }
}

TEST_F(CApiCalls, PlansRunWhatTheirRequestSays) {
  kiln_plan* plan = nullptr;
  const char* request = "conv_forward x=f32:1x4x6x6 w=f32:8x4x3x3 pad=1 alpha=any epilogue=bias+clip";
  ASSERT_EQ(kiln_plan_create(context_, request, &plan), KILN_OK) << kiln_last_error();
  kiln_plan_info info = kiln_plan_info_default();
  ASSERT_EQ(kiln_plan_get_info(plan, &info), KILN_OK);
  const Plan cpp = cpp_.plan(Request::parse(request));
  EXPECT_EQ(info.request, cpp.request().key());
  EXPECT_EQ(info.variant, cpp.variant());
  EXPECT_EQ(info.source, cpp.source());
  EXPECT_EQ(info.workspace_bytes, cpp.workspace_bytes());
  EXPECT_EQ(info.deterministic != 0, cpp.deterministic());
  EXPECT_EQ(info.operand_count, 4u);

  const std::vector<float> start(8 * 6 * 6, 9.0f);
  const void *x = upload(wave(4 * 6 * 6)), *w = upload(wave(8 * 4 * 9, 0.71f)), *b = upload(wave(8, 1.3f));
  const void *y = upload(start), *expected = upload(start);
  void* workspace = upload(std::vector<float>(static_cast<size_t>(info.workspace_bytes) / 4 + 1));
  const void* operands[] = {x, w, y, b};
  kiln_run_values values = kiln_run_values_default();
  values.alpha = 0.5f;
  values.clip_lo = -0.25f;
  values.clip_hi = 0.75f;
  EXPECT_EQ(kiln_plan_run(plan, nullptr, operands, 4, workspace, &values), KILN_OK) << kiln_last_error();
  cpp.run(nullptr, {x, w, expected, b}, workspace, {.alpha = 0.5f, .clip_lo = -0.25f, .clip_hi = 0.75f});
  EXPECT_EQ(download(y), download(expected));
  EXPECT_NE(download(y), start);
  kiln_plan_destroy(plan);
}

}  // namespace
}  // namespace kiln::capi::calls_test
