// Local convolution and its gradients by the C API: what the C++ API gives, and what is refused.
#include "kiln/local_conv.h"

#include <gmock/gmock.h>

#include "fixture.h"

namespace kiln::capi::local_conv_test {
namespace {

using testing::HasSubstr;

class CApiLocalConv : public CApiBesideCpp {
 protected:
  // Options that all differ from one another, in both languages.
  template <class Options>
  static void set_c(Options& c) {
    c.mirrored = 1;
    c.pad_begin[0] = 1, c.pad_begin[1] = 2, c.pad_end[0] = 1, c.pad_end[1] = 1;
    c.stride[0] = 2, c.dilation[1] = 2;
    c.groups = 2;
    c.grid[0] = 3, c.grid[1] = 2;
    c.alpha = 0.5f, c.beta = -2.0f;
    c.deterministic = 1;
  }
  template <class Options>
  static Options cpp() {
    Options options;
    options.mirrored = true;
    options.pad = {1, 2, 1, 1};
    options.stride = {2, 1};
    options.dilation = {1, 2};
    options.groups = 2;
    options.grid = {3, 2};
    options.alpha = 0.5f;
    options.beta = -2.0f;
    options.arithmetic.deterministic = true;
    return options;
  }
};

TEST_F(CApiLocalConv, ForwardWithEveryOption) {
  const void *x = upload(wave(2 * 6 * 9 * 7)), *w = upload(wave(48 * 27, 0.71f)), *b = upload(wave(8, 0.3f));
  const std::vector<float> start = wave(2 * 8 * 5 * 6, 0.53f);
  const void *y = upload(start), *expected = upload(start);
  const kiln_tensor cx = tensor(x, {2, 6, 9, 7}), cw = tensor(w, {48, 3, 3, 3}), cy = tensor(y, {2, 8, 5, 6}, "nhwc"),
                    cb = tensor(b, {8});
  kiln_local_conv_options c = kiln_local_conv_options_default();
  set_c(c);
  kiln_epilogue* epilogue = nullptr;
  ASSERT_EQ(kiln_epilogue_create(&epilogue), KILN_OK);
  ASSERT_EQ(kiln_epilogue_bias(epilogue, &cb), KILN_OK);
  c.epilogue = epilogue;
  EXPECT_EQ(kiln_local_conv_forward(context_, &cx, &cw, &cy, &c, nullptr), KILN_OK) << kiln_last_error();
  kiln_epilogue_destroy(epilogue);
  auto options = cpp<LocalConvOptions>();
  options.epilogue = bias(Tensor(b, f32, {8}, contiguous));
  local_conv_forward(cpp_, Tensor(x, f32, {2, 6, 9, 7}, nchw), Tensor(w, f32, {48, 3, 3, 3}, nchw),
                     Tensor(expected, f32, {2, 8, 5, 6}, nhwc), options);
  EXPECT_EQ(download(y), download(expected));
  EXPECT_NE(download(y), start);
}

TEST_F(CApiLocalConv, GradientsWithEveryOption) {
  const void *x = upload(wave(2 * 6 * 9 * 7)), *w = upload(wave(48 * 27, 0.71f)), *dy = upload(wave(2 * 8 * 5 * 6));
  const std::vector<float> start = wave(2 * 6 * 9 * 7, 0.53f), filters = wave(48 * 27, 0.53f);
  const void *dx = upload(start), *expected = upload(start), *dw = upload(filters), *expected_dw = upload(filters);
  kiln_local_conv_backward_options c = kiln_local_conv_backward_options_default();
  set_c(c);
  const kiln_tensor cdy = tensor(dy, {2, 8, 5, 6}, "nhwc"), cw = tensor(w, {6, 8, 3, 3, 3}),
                    cdx = tensor(dx, {2, 6, 9, 7}), cx = tensor(x, {2, 6, 9, 7}), cdw = tensor(dw, {48, 3, 3, 3});
  EXPECT_EQ(kiln_local_conv_backward_data(context_, &cdy, &cw, &cdx, &c, nullptr), KILN_OK) << kiln_last_error();
  local_conv_backward_data(cpp_, Tensor(dy, f32, {2, 8, 5, 6}, nhwc), Tensor(w, f32, {6, 8, 3, 3, 3}, contiguous),
                           Tensor(expected, f32, {2, 6, 9, 7}, nchw), cpp<LocalConvBackwardOptions>());
  EXPECT_EQ(download(dx), download(expected));
  EXPECT_NE(download(dx), start);
  EXPECT_EQ(kiln_local_conv_backward_filter(context_, &cx, &cdy, &cdw, &c, nullptr), KILN_OK) << kiln_last_error();
  local_conv_backward_filter(cpp_, Tensor(x, f32, {2, 6, 9, 7}, nchw), Tensor(dy, f32, {2, 8, 5, 6}, nhwc),
                             Tensor(expected_dw, f32, {48, 3, 3, 3}, nchw), cpp<LocalConvBackwardOptions>());
  EXPECT_EQ(download(dw), download(expected_dw));
  EXPECT_NE(download(dw), filters);
}

TEST_F(CApiLocalConv, RefusesBadOptions) {
  const kiln_tensor x = tensor(upload(wave(4 * 8 * 8)), {1, 4, 8, 8}), w = tensor(upload(wave(576)), {16, 4, 3, 3}),
                    y = tensor(upload(wave(4 * 6 * 6)), {1, 4, 6, 6});
  const auto forward = [&](const auto& edit, const char* message) {
    kiln_local_conv_options options = kiln_local_conv_options_default();
    options.grid[0] = options.grid[1] = 2;
    edit(options);
    EXPECT_EQ(kiln_local_conv_forward(context_, &x, &w, &y, &options, nullptr), KILN_INVALID_ARGUMENT) << message;
    EXPECT_THAT(kiln_last_error(), HasSubstr(message));
  };
  const auto data = [&](const auto& edit, const char* message) {
    kiln_local_conv_backward_options options = kiln_local_conv_backward_options_default();
    options.grid[0] = options.grid[1] = 2;
    edit(options);
    EXPECT_EQ(kiln_local_conv_backward_data(context_, &y, &w, &x, &options, nullptr), KILN_INVALID_ARGUMENT) << message;
    EXPECT_THAT(kiln_last_error(), HasSubstr(message));
  };
  forward([](auto& o) { o.size = 8; }, "size is 8, expected 168");
  data([](auto& o) { o.size = 8; }, "size is 8, expected 168");
  const auto both = [&](const auto& edit, const char* message) {
    forward(edit, message);
    data(edit, message);
  };
  both([](auto& o) { o.mirrored = 2; }, "mirrored is 2, expected 0 or 1");
  both([](auto& o) { o.tf32 = -1; }, "tf32 is -1, expected 0 or 1");
  both([](auto& o) { o.fast = 2; }, "fast is 2, expected 0 or 1");
  both([](auto& o) { o.deterministic = 3; }, "deterministic is 3, expected 0 or 1");
  both([](auto& o) { o.dynamic_batch = 4; }, "dynamic_batch is 4, expected 0 or 1");
  both([](auto& o) { o.stride[1] = 0; }, "the stride of w is 0");
  both([](auto& o) { o.groups = 3; }, "groups=3");
  both([](auto& o) { o.grid[0] = 7; }, "grid has 7 regions along h");
  both([](auto& o) { o.grid[1] = -1; }, "grid has -1 regions along w");
  both([](auto& o) { o.grid[1] = 3; }, "w has 16 filters for 2x3 regions");
}

}  // namespace
}  // namespace kiln::capi::local_conv_test
