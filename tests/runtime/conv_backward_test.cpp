// The gradients of convolution from an application's point of view.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "device_fixture.h"
#include "kiln/conv.h"
#include "kiln/local_conv.h"

namespace kiln::conv_backward_test {
namespace {

using testing::Each;
using testing::HasSubstr;

class ConvBackwardCalls : public DeviceTest {
 protected:
  ConvBackwardCalls() : context_(options()) {}

  // All options but beta away from their defaults.
  static ConvBackwardOptions everything() {
    ConvBackwardOptions options;
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

TEST_F(ConvBackwardCalls, DataWithEverything) {
  expect_right(
      "conv_backward_data dy=f16:2x8x5x6:nhwc w=f16:8x3x3x3:nhwc dx=f16:2x6x9x7:nhwc pad=1,2,1,1 stride=2,1 "
      "dilation=1,2 groups=2 mode=convolution alpha=any beta=any",
      [&](auto& device) {
        ConvBackwardOptions options = everything();
        options.beta = -2.0f;
        conv_backward_data(context_, Tensor(device["dy"], f16, {2, 8, 5, 6}, nhwc),
                           Tensor(device["w"], f16, {8, 3, 3, 3}, nhwc), Tensor(device["dx"], f16, {2, 6, 9, 7}, nhwc),
                           options);
      },
      0.5f, -2.0f);
}

TEST_F(ConvBackwardCalls, FilterWithEverything) {
  expect_right(
      "conv_backward_filter x=f16:2x6x9x7:nhwc dy=f16:2x8x5x6:nhwc dw=f32:8x3x3x3 pad=1,2,1,1 stride=2,1 "
      "dilation=1,2 groups=2 mode=convolution alpha=any beta=1",
      [&](auto& device) {
        ConvBackwardOptions options = everything();
        options.beta = 1;
        conv_backward_filter(context_, Tensor(device["x"], f16, {2, 6, 9, 7}, nhwc),
                             Tensor(device["dy"], f16, {2, 8, 5, 6}, nhwc),
                             Tensor(device["dw"], f32, {8, 3, 3, 3}, nchw), options);
      },
      0.5f, 1);
}

TEST_F(ConvBackwardCalls, OneAndThreeSpatialDimensions) {
  expect_right("conv_backward_data dy=f32:2x6x6:ncw w=f32:6x4x3:ncw dx=f32:2x4x11:ncw pad=2,1 stride=2",
               [&](auto& device) {
                 ConvBackwardOptions options;
                 options.pad = {0, 2, 0, 1};
                 options.stride = {1, 2};
                 conv_backward_data(context_, Tensor(device["dy"], f32, {2, 6, 6}, contiguous),
                                    Tensor(device["w"], f32, {6, 4, 3}, contiguous),
                                    Tensor(device["dx"], f32, {2, 4, 11}, contiguous), options);
               });
  expect_right(
      "conv_backward_filter x=f32:1x2x4x5x6 dy=f32:1x3x3x2x3 dw=f32:3x2x2x2x2 pad=1,0,2,0,0,1 stride=1,2,3 "
      "dilation=2,1,1",
      [&](auto& device) {
        ConvBackwardOptions options;
        options.depth = {.pad_front = 1, .pad_back = 0, .stride = 1, .dilation = 2};
        options.pad = {0, 2, 0, 1};
        options.stride = {2, 3};
        conv_backward_filter(context_, Tensor(device["x"], f32, {1, 2, 4, 5, 6}, contiguous),
                             Tensor(device["dy"], f32, {1, 3, 3, 2, 3}, contiguous),
                             Tensor(device["dw"], f32, {3, 2, 2, 2, 2}, contiguous), options);
      });
}

TEST_F(ConvBackwardCalls, BiasOfADynamicBatchAccumulates) {
  expect_right(
      "conv_backward_bias dy=f32:3x7x4x5:nhwc beta=1",
      [&](auto& device) {
        conv_backward_bias(context_, Tensor(device["dy"], f32, {3, 7, 4, 5}, nhwc),
                           Tensor(device["db"], f32, {7}, contiguous), {.beta = 1, .dynamic_batch = true});
      },
      1, 1);
}

// A transposed convolution with its bias, and an activation behind a sum.
TEST_F(ConvBackwardCalls, DataWithStages) {
  expect_right(
      "conv_backward_data dy=f32:2x4x3x4 w=f32:4x6x3x3 dx=f16:2x6x6x7:nhwc pad=1 stride=2 output_pad=1,0 beta=any "
      "epilogue=bias+add+relu bias=f32:6 residual=f32:2x6x6x7",
      [&](auto& device) {
        const Epilogue stages = bias(Tensor(device["bias"], f32, {6}, contiguous)) +
                                add(Tensor(device["residual"], f32, {2, 6, 6, 7}, nchw)) + relu;
        conv_backward_data(context_, Tensor(device["dy"], f32, {2, 4, 3, 4}, nchw),
                           Tensor(device["w"], f32, {4, 6, 3, 3}, nchw), Tensor(device["dx"], f16, {2, 6, 6, 7}, nhwc),
                           {.pad = {1, 1}, .stride = {2, 2}, .beta = 0.5f, .epilogue = stages});
      },
      1, 0.5f);
}

TEST_F(ConvBackwardCalls, TakeUserCode) {
  const Tensor x(upload<float>({1, 2}), f32, {1, 2, 1, 1}, nchw), dy(upload<float>({3, 4}), f32, {1, 2, 1, 1}, nchw);
  const Tensor w(upload<float>({3, 4, 5, -6}), f32, {2, 2, 1, 1}, nchw);
  const Tensor row(upload<float>({0.5F, 0.25F}), f32, {1, 2, 1, 1}, nchw), flat(row.data(), f32, {2}, contiguous);
  const Expression code("(acc + t) * s", {"t"}, {"s"});
  const Expression entering("--- prologue\nx * s + c\n---\nacc + t", {"t"}, {"s"});
  const auto with = [&](const Tensor& t) { return expression(code, {{"t", t}}, {{"s", 2}}); };
  const auto after = [&](const Tensor& t) { return expression(entering, {{"t", t}}, {{"s", 2}}); };
  const auto given = [&](size_t count, const std::function<void(void*)>& call) {
    void* const result = upload(std::vector<float>(count));
    call(result);
    return download<float>(result, count);
  };
  const auto image = [](void* data) { return Tensor(data, f32, {1, 2, 1, 1}, nchw); };
  const auto filter = [](void* data) { return Tensor(data, f32, {2, 2, 1, 1}, nchw); };
  const std::vector<float> of_data{59, -23.5F}, of_filter{7, 12.5F, 9, 16.5F}, of_bias{7, 8.5F};
  EXPECT_EQ(given(2, [&](void* dx) { conv_backward_data(context_, dy, w, image(dx), {.epilogue = with(row)}); }),
            of_data);
  EXPECT_EQ(given(4, [&](void* dw) { conv_backward_filter(context_, x, dy, filter(dw), {.epilogue = with(row)}); }),
            of_filter);
  EXPECT_EQ(given(2,
                  [&](void* db) {
                    conv_backward_bias(context_, dy, Tensor(db, f32, {2}, contiguous), {.epilogue = with(flat)});
                  }),
            of_bias);
  EXPECT_EQ(given(2, [&](void* dx) { local_conv_backward_data(context_, dy, w, image(dx), {.epilogue = with(flat)}); }),
            of_data);
  EXPECT_EQ(
      given(4, [&](void* dw) { local_conv_backward_filter(context_, x, dy, filter(dw), {.epilogue = with(row)}); }),
      of_filter);

  // x becomes 2, 5 and dy 6, 9.
  const std::vector<float> of_moved_x{6.5F, 15.25F, 8.5F, 20.25F}, of_moved_dy{6.5F, 9.25F};
  EXPECT_EQ(given(4, [&](void* dw) { conv_backward_filter(context_, x, dy, filter(dw), {.epilogue = after(row)}); }),
            of_moved_x);
  EXPECT_EQ(
      given(4, [&](void* dw) { local_conv_backward_filter(context_, x, dy, filter(dw), {.epilogue = after(row)}); }),
      of_moved_x);
  EXPECT_EQ(given(2,
                  [&](void* db) {
                    conv_backward_bias(context_, dy, Tensor(db, f32, {2}, contiguous), {.epilogue = after(flat)});
                  }),
            of_moved_dy);
}

TEST_F(ConvBackwardCalls, AnEmptyBatchIsAnEmptySumForParametersAndNothingForData) {
  const std::vector<float> before(64, 3.0f);
  const auto memory = [&] { return upload(before); };
  const auto floats = [&](const void* address) { return download<float>(address, before.size()); };
  const Tensor x(nullptr, f32, {0, 4, 6, 6}, nchw), dy(nullptr, f32, {0, 4, 5, 5}, nchw);
  void *const dw = memory(), *const db = memory();
  conv_backward_filter(context_, x, dy, Tensor(dw, f32, {4, 4, 2, 2}, nchw));
  EXPECT_THAT(floats(dw), Each(0.0f));
  conv_backward_filter(context_, x, dy, Tensor(db, f32, {4, 4, 2, 2}, nchw), {.beta = 1});
  EXPECT_EQ(floats(db), before);
  conv_backward_bias(context_, dy, Tensor(db, f32, {4}, contiguous));
  EXPECT_EQ(floats(db)[3], 0.0f);
  EXPECT_EQ(floats(db)[4], 3.0f) << "behind db";
  void *const dynamic_dw = memory(), *const dynamic_db = memory();
  conv_backward_filter(context_, x, dy, Tensor(dynamic_dw, f32, {4, 4, 2, 2}, nchw), {.dynamic_batch = true});
  EXPECT_THAT(floats(dynamic_dw), Each(0.0f));
  conv_backward_bias(context_, dy, Tensor(dynamic_db, f32, {4}, contiguous), {.dynamic_batch = true});
  EXPECT_EQ(floats(dynamic_db)[3], 0.0f);
  EXPECT_NO_THROW(conv_backward_data(context_, dy, Tensor(dw, f32, {4, 4, 2, 2}, nchw), x));
}

TEST_F(ConvBackwardCalls, RefuseWhatMakesNoSense) {
  const std::vector<std::byte> pattern(32768, std::byte{0x5a});
  auto* const base = static_cast<std::byte*>(upload(pattern));
  const auto at = [&](size_t offset, std::initializer_list<int64_t> extents) {
    return Tensor(base + offset, f32, extents, contiguous);
  };
  const Tensor x = at(0, {1, 4, 8, 8}), w = at(4096, {4, 4, 3, 3}), dy = at(8192, {1, 4, 6, 6});
  struct Bad {
    const char* message;
    std::function<void()> call;
  };
  const std::vector<Bad> table = {
      {"dy is a null pointer",
       [&] {
         conv_backward_data(context_, Tensor(nullptr, f32, {1, 4, 6, 6}, nchw), w, x);
       }},
      {"the memory of dx and dy overlaps",
       [&] {
         conv_backward_data(context_, dy, w, at(8192, {1, 4, 8, 8}));
       }},
      {"the memory of dx and w overlaps",
       [&] {
         conv_backward_data(context_, dy, w, at(4096, {1, 4, 8, 8}));
       }},
      {"dx has extents 1x3x8x8, expected 1x4x8x8",
       [&] {
         conv_backward_data(context_, dy, w, at(0, {1, 3, 8, 8}));
       }},
      {"dy has extents 1x4x6x6, expected 1x4x6x7",
       [&] {
         conv_backward_data(context_, dy, w, at(0, {1, 4, 8, 9}));
       }},
      {"the stride of h is 0",
       [&] {
         conv_backward_data(context_, dy, w, x, {.stride = {0, 1}});
       }},
      {"the memory of dx and bias overlaps",
       [&] { conv_backward_data(context_, dy, w, x, {.epilogue = bias(at(1020, {4}))}); }},
      {"bias has extents 5, expected 4",
       [&] { conv_backward_data(context_, dy, w, x, {.epilogue = bias(at(12288, {5}))}); }},
      {"the memory of dx and t overlaps",
       [&] {
         conv_backward_data(context_, dy, w, x, {.epilogue = expression(Expression("acc + t", {"t"}), {{"t", x}})});
       }},
      {"conv_backward_filter takes no epilogue of stages",
       [&] { conv_backward_filter(context_, x, dy, w, {.epilogue = relu}); }},
      {"its result is a sum over the batch",
       [&] {
         conv_backward_filter(context_, x, dy, w, {.dynamic_batch = true, .epilogue = expression("acc + 1.0f")});
       }},
      {"conv_backward_bias takes no epilogue of stages",
       [&] { conv_backward_bias(context_, dy, at(0, {4}), {.epilogue = relu}); }},
      {"groups=3", [&] { conv_backward_data(context_, dy, w, x, {.groups = 3}); }},
      {"the memory of dw and x overlaps",
       [&] {
         conv_backward_filter(context_, x, dy, at(512, {4, 4, 3, 3}));
       }},
      {"the memory of dw and dy overlaps",
       [&] {
         conv_backward_filter(context_, x, dy, at(8196, {4, 4, 3, 3}));
       }},
      {"dw has 3 channels per filter",
       [&] {
         conv_backward_filter(context_, x, dy, at(4096, {4, 3, 3, 3}));
       }},
      {"dy has extents 1x4x6x6, expected 1x4x7x6",
       [&] {
         conv_backward_filter(context_, x, dy, at(4096, {4, 4, 2, 3}));
       }},
      {"the dilation of w is -1",
       [&] {
         conv_backward_filter(context_, x, dy, w, {.dilation = {1, -1}});
       }},
      {"the memory of db and dy overlaps", [&] { conv_backward_bias(context_, dy, at(8200, {4})); }},
      {"db has extents 5, expected 4", [&] { conv_backward_bias(context_, dy, at(0, {5})); }},
      {"dy has 1 dimensions", [&] { conv_backward_bias(context_, at(8192, {4}), at(0, {4})); }},
  };
  for (const Bad& bad : table) {
    EXPECT_THAT(refusal_of(bad.call), HasSubstr(bad.message));
  }
  EXPECT_EQ(download(base, pattern.size()), pattern);
}

}  // namespace
}  // namespace kiln::conv_backward_test
