// Local convolution and its gradients from an application's point of view.
#include "kiln/local_conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device_fixture.h"
#include "kiln/conv.h"

namespace kiln::local_conv_test {
namespace {

using testing::Each;
using testing::HasSubstr;

class LocalConvCalls : public DeviceTest {
 protected:
  LocalConvCalls() : context_(options()) {}

  // All options but beta and the epilogue away from their defaults.
  template <class Options>
  static Options everything() {
    Options options;
    options.grid = {3, 2};
    options.pad = {1, 2, 1, 1};
    options.stride = {2, 1};
    options.dilation = {1, 2};
    options.groups = 2;
    options.mirrored = true;
    options.alpha = 0.5f;
    return options;
  }

  Context context_;
};

TEST_F(LocalConvCalls, ForwardWithEverything) {
  expect_right(
      "local_conv_forward x=f16:2x6x9x7:nhwc w=f16:48x3x3x3:nhwc y=f16:2x8x5x6:nhwc pad=1,2,1,1 stride=2,1 "
      "dilation=1,2 groups=2 mode=convolution grid=3,2 alpha=any beta=any epilogue=bias+add+relu bias=f32:8",
      [&](auto& device) {
        auto options = everything<LocalConvOptions>();
        options.beta = -2;
        options.epilogue = bias(Tensor(device["bias"], f32, {8}, contiguous)) +
                           add(Tensor(device["residual"], f16, {2, 8, 5, 6}, nhwc)) + relu;
        local_conv_forward(context_, Tensor(device["x"], f16, {2, 6, 9, 7}, nhwc),
                           Tensor(device["w"], f16, {48, 3, 3, 3}, nhwc), Tensor(device["y"], f16, {2, 8, 5, 6}, nhwc),
                           options);
      },
      0.5f, -2);
}

TEST_F(LocalConvCalls, GradientsWithEverything) {
  expect_right(
      "local_conv_backward_data dy=f16:2x8x5x6:nhwc w=f16:6x8x3x3x3:216,1,8,72,24 dx=f16:2x6x9x7:nhwc pad=1,2,1,1 "
      "stride=2,1 "
      "dilation=1,2 groups=2 mode=convolution grid=3,2 alpha=any beta=any",
      [&](auto& device) {
        auto options = everything<LocalConvBackwardOptions>();
        options.beta = -2;
        local_conv_backward_data(context_, Tensor(device["dy"], f16, {2, 8, 5, 6}, nhwc),
                                 Tensor(device["w"], f16, {6, 8, 3, 3, 3}, {216, 1, 8, 72, 24}),
                                 Tensor(device["dx"], f16, {2, 6, 9, 7}, nhwc), options);
      },
      0.5f, -2);
  expect_right(
      "local_conv_backward_filter x=f16:2x6x9x7:nhwc dy=f16:2x8x5x6:nhwc dw=f32:6x8x3x3x3:300,35,9,3,1 pad=1,2,1,1 "
      "stride=2,1 "
      "dilation=1,2 groups=2 mode=convolution grid=3,2 alpha=any beta=1",
      [&](auto& device) {
        auto options = everything<LocalConvBackwardOptions>();
        options.beta = 1;
        local_conv_backward_filter(context_, Tensor(device["x"], f16, {2, 6, 9, 7}, nhwc),
                                   Tensor(device["dy"], f16, {2, 8, 5, 6}, nhwc),
                                   Tensor(device["dw"], f32, {6, 8, 3, 3, 3}, {300, 35, 9, 3, 1}), options);
      },
      0.5f, 1);
}

TEST_F(LocalConvCalls, OneAndThreeSpatialDimensions) {
  expect_right("local_conv_forward x=f32:2x4x11:ncw w=f32:36x4x3:ncw pad=2,1 stride=2", [&](auto& device) {
    local_conv_forward(context_, Tensor(device["x"], f32, {2, 4, 11}, contiguous),
                       Tensor(device["w"], f32, {36, 4, 3}, contiguous),
                       Tensor(device["y"], f32, {2, 6, 6}, contiguous), {.pad = {0, 2, 0, 1}, .stride = {1, 2}});
  });
  expect_right("local_conv_backward_data dy=f32:1x3x4x5x6 w=f32:24x3x2x2x1x3 dx=f32:1x2x5x5x8 grid=4,2,3",
               [&](auto& device) {
                 local_conv_backward_data(context_, Tensor(device["dy"], f32, {1, 3, 4, 5, 6}, contiguous),
                                          Tensor(device["w"], f32, {24, 3, 2, 2, 1, 3}, contiguous),
                                          Tensor(device["dx"], f32, {1, 2, 5, 5, 8}, contiguous),
                                          {.grid = {.h = 2, .w = 3, .d = 4}});
               });
}

TEST_F(LocalConvCalls, ABiasForEachOutputIsAResidualThatRepeats) {
  expect_right(
      "local_conv_forward x=f32:3x2x5x5 w=f32:36x2x3x3 epilogue=add residual=f32:3x4x3x3:0,9,3,1", [&](auto& device) {
        local_conv_forward(context_, Tensor(device["x"], f32, {3, 2, 5, 5}, nchw),
                           Tensor(device["w"], f32, {36, 2, 3, 3}, nchw), Tensor(device["y"], f32, {3, 4, 3, 3}, nchw),
                           {.epilogue = add(Tensor(device["residual"], f32, {3, 4, 3, 3}, {0, 9, 3, 1}))});
      });
}

TEST_F(LocalConvCalls, UserCodeIsAnEpilogue) {
  const std::vector<float> x(2 * 9, 2.0f), w(9 * 2, 3.0f);
  void *const dx = upload(x), *const dw = upload(w), *const y = upload(std::vector<float>(9));
  local_conv_forward(context_, Tensor(dx, f32, {1, 2, 3, 3}, nchw), Tensor(dw, f32, {9, 2, 1, 1}, nchw),
                     Tensor(y, f32, {1, 1, 3, 3}, nchw), {.epilogue = expression("acc * 0.5f + k")});
  EXPECT_THAT(download<float>(y, 9), Each(6.0f));
}

TEST_F(LocalConvCalls, AnEmptyBatchIsAnEmptySumForFiltersAndNothingElse) {
  const std::vector<float> before(256, 3.0f);
  void* const dw = upload(before);
  const Tensor x(nullptr, f32, {0, 4, 5, 5}, nchw), dy(nullptr, f32, {0, 4, 4, 4}, nchw);
  const Tensor filters(dw, f32, {16, 4, 2, 2}, nchw);
  EXPECT_NO_THROW(local_conv_forward(context_, x, filters, dy, {.grid = {2, 2}}));
  EXPECT_NO_THROW(local_conv_backward_data(context_, dy, filters, x, {.grid = {2, 2}}));
  local_conv_backward_filter(context_, x, dy, filters, {.grid = {2, 2}, .beta = 1});
  EXPECT_EQ(download<float>(dw, before.size()), before);
  local_conv_backward_filter(context_, x, dy, filters, {.grid = {2, 2}, .dynamic_batch = true});
  EXPECT_THAT(download<float>(dw, before.size()), Each(0.0f));
}

TEST_F(LocalConvCalls, TellGridsApart) {
  const std::vector<float> x{1, 2, 3, 4}, w{1, 10, 100, 1000};
  void *const dx = upload(x), *const dw = upload(w), *const y = upload(std::vector<float>(8));
  const auto call = [&](std::initializer_list<int64_t> extents, const Grid& grid) {
    local_conv_forward(context_, Tensor(dx, f32, {1, 1, 4}, contiguous), Tensor(dw, f32, {4, 1, 1}, contiguous),
                       Tensor(y, f32, extents, contiguous), {.grid = grid});
    return download<float>(y, 4);
  };
  EXPECT_EQ(call({1, 1, 4}, {}), (std::vector<float>{1, 20, 300, 4000}));
  EXPECT_EQ(call({1, 2, 4}, {.w = 2}), (std::vector<float>{1, 2, 300, 400}));
}

TEST_F(LocalConvCalls, RefuseGridsThatMakeNoSense) {
  const std::vector<std::byte> pattern(32768, std::byte{0x5a});
  auto* const base = static_cast<std::byte*>(upload(pattern));
  const Tensor x(base, f32, {1, 4, 8, 8}, nchw), w(base + 4096, f32, {16, 4, 3, 3}, nchw),
      y(base + 8192, f32, {1, 4, 6, 6}, nchw);
  const auto refused = [&](const Grid& grid, const char* message) {
    EXPECT_THAT(refusal_of([&] { local_conv_forward(context_, x, w, y, {.grid = grid}); }), HasSubstr(message));
    EXPECT_THAT(refusal_of([&] { local_conv_backward_data(context_, y, w, x, {.grid = grid}); }), HasSubstr(message));
    EXPECT_THAT(refusal_of([&] { local_conv_backward_filter(context_, x, y, w, {.grid = grid}); }), HasSubstr(message));
  };
  refused({7, 2}, "grid has 7 regions along h");
  refused({2, -1}, "grid has -1 regions along w");
  refused({}, "has 16 filters for 6x6 regions");
  refused({3, 1}, "has 16 filters for 3x1 regions");
  refused({4, 2}, "expected");  // filters for two channels of y, which has four
  const Tensor apart(base + 4096, f32, {3, 4, 4, 3, 3}, contiguous);
  const char* const message = "has 3 regions, grid has 2x2";
  EXPECT_THAT(refusal_of([&] { local_conv_forward(context_, x, apart, y, {.grid = {2, 2}}); }), HasSubstr(message));
  EXPECT_THAT(refusal_of([&] {
                local_conv_backward_data(context_, y, apart, x, {.grid = {2, 2}});
              }),
              HasSubstr(message));
  EXPECT_THAT(refusal_of([&] {
                local_conv_backward_filter(context_, x, y, apart, {.grid = {2, 2}});
              }),
              HasSubstr(message));
  EXPECT_EQ(download(base, pattern.size()), pattern);
}

}  // namespace
}  // namespace kiln::local_conv_test
