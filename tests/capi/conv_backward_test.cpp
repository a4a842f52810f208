// The gradients of convolution by the C API: what the C++ API gives, and what is refused.
#include <gmock/gmock.h>

#include "fixture.h"
#include "kiln/conv.h"

namespace kiln::capi::conv_backward_test {
namespace {

using testing::HasSubstr;

class CApiConvBackward : public CApiBesideCpp {
 protected:
  // Options that all differ from one another, in both languages.
  static kiln_conv_backward_options c_options() {
    kiln_conv_backward_options c = kiln_conv_backward_options_default();
    c.mirrored = 1;
    c.pad_begin[0] = 1, c.pad_begin[1] = 2, c.pad_end[0] = 1, c.pad_end[1] = 1;
    c.stride[0] = 2, c.dilation[1] = 2;
    c.groups = 2;
    c.alpha = 0.5f, c.beta = -2.0f;
    c.deterministic = 1;
    return c;
  }
  static ConvBackwardOptions options() {
    ConvBackwardOptions options;
    options.mirrored = true;
    options.pad = {1, 2, 1, 1};
    options.stride = {2, 1};
    options.dilation = {1, 2};
    options.groups = 2;
    options.alpha = 0.5f;
    options.beta = -2.0f;
    options.arithmetic.deterministic = true;
    return options;
  }
};

TEST_F(CApiConvBackward, DataAndFilterWithEveryOption) {
  const void *x = upload(wave(2 * 6 * 9 * 7)), *w = upload(wave(8 * 3 * 3 * 3, 0.71f)),
             *dy = upload(wave(2 * 8 * 5 * 6));
  const std::vector<float> start = wave(2 * 6 * 9 * 7, 0.53f);
  const void *dx = upload(start), *expected = upload(start);
  const kiln_conv_backward_options c = c_options();
  const kiln_tensor cdy = tensor(dy, {2, 8, 5, 6}, "nhwc"), cw = tensor(w, {8, 3, 3, 3});
  const kiln_tensor cdx = tensor(dx, {2, 6, 9, 7}), cx = tensor(x, {2, 6, 9, 7});
  EXPECT_EQ(kiln_conv_backward_data(context_, &cdy, &cw, &cdx, &c, nullptr), KILN_OK) << kiln_last_error();
  conv_backward_data(cpp_, Tensor(dy, f32, {2, 8, 5, 6}, nhwc), Tensor(w, f32, {8, 3, 3, 3}, nchw),
                     Tensor(expected, f32, {2, 6, 9, 7}, nchw), options());
  EXPECT_EQ(download(dx), download(expected));
  EXPECT_NE(download(dx), start);

  const std::vector<float> filter = wave(8 * 3 * 3 * 3, 0.53f);
  const void *dw = upload(filter), *expected_filter = upload(filter);
  const kiln_tensor cdw = tensor(dw, {8, 3, 3, 3});
  EXPECT_EQ(kiln_conv_backward_filter(context_, &cx, &cdy, &cdw, &c, nullptr), KILN_OK) << kiln_last_error();
  conv_backward_filter(cpp_, Tensor(x, f32, {2, 6, 9, 7}, nchw), Tensor(dy, f32, {2, 8, 5, 6}, nhwc),
                       Tensor(expected_filter, f32, {8, 3, 3, 3}, nchw), options());
  EXPECT_EQ(download(dw), download(expected_filter));
  EXPECT_NE(download(dw), filter);
}

TEST_F(CApiConvBackward, BiasWithEveryOption) {
  const std::vector<float> start = wave(8, 0.53f);
  const void *dy = upload(wave(2 * 8 * 5)), *db = upload(start), *expected = upload(start);
  kiln_conv_backward_bias_options c = kiln_conv_backward_bias_options_default();
  c.alpha = 3, c.beta = 0.25f, c.dynamic_batch = 1;
  const kiln_tensor cdy = tensor(dy, {2, 8, 5}), cdb = tensor(db, {8});
  EXPECT_EQ(kiln_conv_backward_bias(context_, &cdy, &cdb, &c, nullptr), KILN_OK) << kiln_last_error();
  conv_backward_bias(cpp_, Tensor(dy, f32, {2, 8, 5}, contiguous), Tensor(expected, f32, {8}, contiguous),
                     {.alpha = 3, .beta = 0.25f, .dynamic_batch = true});
  EXPECT_EQ(download(db), download(expected));
  EXPECT_NE(download(db), start);
}

// Stages for the gradient by the input, code for that by the filter.
TEST_F(CApiConvBackward, Epilogues) {
  const void *x = upload(wave(2 * 6 * 9 * 7)), *w = upload(wave(8 * 3 * 3 * 3)), *dy = upload(wave(2 * 8 * 5 * 6));
  const void *dx = upload(wave(2 * 6 * 9 * 7)), *dw = upload(wave(8 * 3 * 3 * 3)), *values = upload(wave(6, 0.53f));
  const void *expected = upload(wave(2 * 6 * 9 * 7)), *expected_filter = upload(wave(8 * 3 * 3 * 3));
  const kiln_tensor cx = tensor(x, {2, 6, 9, 7}), cw = tensor(w, {8, 3, 3, 3}), cdy = tensor(dy, {2, 8, 5, 6});
  const kiln_tensor cdx = tensor(dx, {2, 6, 9, 7}), cdw = tensor(dw, {8, 3, 3, 3}), cvalues = tensor(values, {6});
  kiln_epilogue *stages = nullptr, *code = nullptr;
  ASSERT_EQ(kiln_epilogue_create(&stages), KILN_OK);
  ASSERT_EQ(kiln_epilogue_create(&code), KILN_OK);
  EXPECT_EQ(kiln_epilogue_bias(stages, &cvalues), KILN_OK);
  EXPECT_EQ(kiln_epilogue_clip(stages, -0.5f, 0.75f), KILN_OK);
  EXPECT_EQ(kiln_epilogue_expression(code, "acc * acc", nullptr, 0, nullptr, 0), KILN_OK) << kiln_last_error();

  kiln_conv_backward_options c = c_options();
  ConvBackwardOptions both = options();
  c.epilogue = stages;
  both.epilogue = bias(Tensor(values, f32, {6}, contiguous)) + clip(-0.5f, 0.75f);
  EXPECT_EQ(kiln_conv_backward_data(context_, &cdy, &cw, &cdx, &c, nullptr), KILN_OK) << kiln_last_error();
  conv_backward_data(cpp_, Tensor(dy, f32, {2, 8, 5, 6}, nchw), Tensor(w, f32, {8, 3, 3, 3}, nchw),
                     Tensor(expected, f32, {2, 6, 9, 7}, nchw), both);
  EXPECT_EQ(download(dx), download(expected));
  EXPECT_EQ(kiln_conv_backward_filter(context_, &cx, &cdy, &cdw, &c, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), HasSubstr("takes no epilogue of stages"));

  c.epilogue = code;
  both.epilogue = expression("acc * acc");
  EXPECT_EQ(kiln_conv_backward_filter(context_, &cx, &cdy, &cdw, &c, nullptr), KILN_OK) << kiln_last_error();
  conv_backward_filter(cpp_, Tensor(x, f32, {2, 6, 9, 7}, nchw), Tensor(dy, f32, {2, 8, 5, 6}, nchw),
                       Tensor(expected_filter, f32, {8, 3, 3, 3}, nchw), both);
  EXPECT_EQ(download(dw), download(expected_filter));
  for (kiln_epilogue* epilogue : {stages, code}) kiln_epilogue_destroy(epilogue);
}

TEST_F(CApiConvBackward, RefusesBadArguments) {
  const kiln_tensor x = tensor(upload(wave(4 * 8 * 8)), {1, 4, 8, 8}), w = tensor(upload(wave(144)), {4, 4, 3, 3});
  const kiln_tensor dy = tensor(upload(wave(4 * 6 * 6)), {1, 4, 6, 6}), db = tensor(upload(wave(4)), {4});
  const auto refused = [](kiln_status status, const char* message) {
    EXPECT_EQ(status, KILN_INVALID_ARGUMENT) << message;
    EXPECT_THAT(kiln_last_error(), HasSubstr(message));
  };
  refused(kiln_conv_backward_data(nullptr, &dy, &w, &x, nullptr, nullptr), "context is NULL");
  refused(kiln_conv_backward_data(context_, nullptr, &w, &x, nullptr, nullptr), "kiln_conv_backward_data: dy is NULL");
  refused(kiln_conv_backward_data(context_, &dy, nullptr, &x, nullptr, nullptr), "kiln_conv_backward_data: w is NULL");
  refused(kiln_conv_backward_data(context_, &dy, &w, nullptr, nullptr, nullptr), "kiln_conv_backward_data: dx is NULL");
  refused(kiln_conv_backward_filter(nullptr, &x, &dy, &w, nullptr, nullptr), "context is NULL");
  refused(kiln_conv_backward_filter(context_, nullptr, &dy, &w, nullptr, nullptr), "filter: x is NULL");
  refused(kiln_conv_backward_filter(context_, &x, nullptr, &w, nullptr, nullptr), "filter: dy is NULL");
  refused(kiln_conv_backward_filter(context_, &x, &dy, nullptr, nullptr, nullptr), "filter: dw is NULL");
  refused(kiln_conv_backward_bias(nullptr, &dy, &db, nullptr, nullptr), "context is NULL");
  refused(kiln_conv_backward_bias(context_, nullptr, &db, nullptr, nullptr), "bias: dy is NULL");
  refused(kiln_conv_backward_bias(context_, &dy, nullptr, nullptr, nullptr), "bias: db is NULL");
  const auto data = [&](const auto& edit) {
    kiln_conv_backward_options options = kiln_conv_backward_options_default();
    edit(options);
    return kiln_conv_backward_data(context_, &dy, &w, &x, &options, nullptr);
  };
  refused(data([](auto& o) { o.size = 8; }), "size is 8, expected 144");
  refused(data([](auto& o) { o.mirrored = 2; }), "mirrored is 2, expected 0 or 1");
  refused(data([](auto& o) { o.tf32 = -1; }), "tf32 is -1, expected 0 or 1");
  refused(data([](auto& o) { o.fast = 2; }), "fast is 2, expected 0 or 1");
  refused(data([](auto& o) { o.deterministic = 3; }), "deterministic is 3, expected 0 or 1");
  refused(data([](auto& o) { o.dynamic_batch = 4; }), "dynamic_batch is 4, expected 0 or 1");
  refused(data([](auto& o) { o.stride[1] = 0; }), "the stride of w is 0");
  refused(data([](auto& o) { o.groups = 3; }), "groups=3");
  kiln_conv_backward_bias_options spoilt = kiln_conv_backward_bias_options_default();
  spoilt.dynamic_batch = 2;
  refused(kiln_conv_backward_bias(context_, &dy, &db, &spoilt, nullptr), "dynamic_batch is 2, expected 0 or 1");
}

}  // namespace
}  // namespace kiln::capi::conv_backward_test
