// Matrix products and fully connected layers from an application's point of view.
#include "kiln/gemm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "device_fixture.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tolerance.h"
#include "kiln/tensor_ops.h"

namespace kiln {
namespace {

using testing::Each;
using testing::HasSubstr;

class GemmCalls : public DeviceTest {
 protected:
  GemmCalls() : context_(options()) {}

  // Uploads operands of `line`'s request, calls, and compares the result with the reference.
  void expect_right(const std::string& line, const std::function<void(std::map<std::string, void*>&)>& call,
                    const reference::Bindings& values = {}) {
    const Request request = Request::parse(line);
    std::map<std::string, std::vector<std::byte>> host;
    std::map<std::string, void*> device;
    for (const Operand& operand : request.operands) {
      host[operand.name] = reference::filled(operand.spec, reference::Values::uniform, 7);
      device[operand.name] = upload(host[operand.name]);
    }
    call(device);
    reference::Bindings bindings = values;
    for (const auto& [name, memory] : host) bindings.operands[name] = memory;
    const Operand& result = result_of(request);
    const auto bytes = static_cast<size_t>(reference::byte_span(result.spec));
    const auto mismatch = reference::compare(request, bindings, download(device.at(result.name), bytes));
    EXPECT_FALSE(mismatch) << mismatch->text();
  }

  Context context_;
};

TEST_F(GemmCalls, WithEverything) {
  expect_right(
      "gemm a=f16:2x3x17x20 b=f16:1x3x20x9:1,180,1,20 c=f32:2x3x17x9 residual=f16:2x3x17x9 "
      "epilogue=bias+add+clip alpha=any beta=any",
      [&](auto& device) {
        const Tensor c(device["c"], f32, {2, 3, 17, 9}, contiguous);
        const Epilogue epilogue = bias(Tensor(device["bias"], f32, {9}, contiguous)) +
                                  add(Tensor(device["residual"], f16, {2, 3, 17, 9}, contiguous)) + clip(-1, 1.5f);
        gemm(context_, Tensor(device["a"], f16, {2, 3, 17, 20}, contiguous),
             transposed(Tensor(device["b"], f16, {1, 3, 9, 20}, contiguous)), c,
             {.alpha = 0.5f, .beta = -2.0f, .epilogue = epilogue});
      },
      {.alpha = 0.5f, .beta = -2.0f, .clip_lo = -1, .clip_hi = 1.5f});
}

TEST_F(GemmCalls, WithUserCode) {
  const std::vector<float> a{1, 2, 3, 4}, b{1, 0, 0, 1}, shift{10, 20}, inputs{0, 1};
  const std::vector<float> nothing(4);
  void* const c = upload(nothing);
  const Tensor shifts(upload(shift), f32, {2}, contiguous), added(upload(inputs), f32, {2}, contiguous);
  gemm(context_, Tensor(upload(a), f32, {2, 2}, contiguous), Tensor(upload(b), f32, {2, 2}, contiguous),
       Tensor(c, f32, {2, 2}, contiguous),
       {.epilogue = expression("--- prologue\n-2.0f * x + added[c]\n---\nacc + shift[n] + (n == 1 ? 100.0f : 0.0f)",
                               {{"added", added}, {"shift", shifts}})});
  EXPECT_THAT(download<float>(c, 4), testing::ElementsAre(8, 117, 4, 113));
}

TEST_F(GemmCalls, IntoTheirOwnResidual) {
  const std::vector<float> ones(6, 1), start{1, 2, 3, 4};
  void* const c = upload(start);
  const Tensor result(c, f32, {2, 2}, contiguous);
  gemm(context_, Tensor(upload(ones), f32, {2, 3}, contiguous), Tensor(upload(ones), f32, {3, 2}, contiguous), result,
       {.epilogue = add(result)});
  EXPECT_THAT(download<float>(c, 4), testing::ElementsAre(4, 5, 6, 7));
}

TEST_F(GemmCalls, WithADynamicM) {
  for (const int64_t m : {5, 7, 8, 0}) {
    expect_right("gemm a=f32:" + std::to_string(m) + "x6 b=f32:6x3 epilogue=relu", [&](auto& device) {
      gemm(context_, Tensor(device["a"], f32, {m, 6}, contiguous), Tensor(device["b"], f32, {6, 3}, contiguous),
           Tensor(device["c"], f32, {m, 3}, contiguous), {.epilogue = relu, .dynamic_batch = true});
    });
  }
}

TEST_F(GemmCalls, OfFullyConnectedLayers) {
  expect_right("gemm a=f32:4x30 b=f32:30x7:1,30 c=f32:4x7 epilogue=bias+relu", [&](auto& device) {
    fully_connected_forward(context_, Tensor(device["a"], f32, {4, 5, 2, 3}, nchw),
                            Tensor(device["b"], f32, {7, 5, 2, 3}, nchw), Tensor(device["c"], f32, {4, 7}, nc),
                            {.epilogue = bias(Tensor(device["bias"], f32, {7}, contiguous)) + relu});
  });
  expect_right("gemm a=f32:4x7 b=f32:7x30 c=f32:4x30 alpha=any",
               [&](auto& device) {
                 fully_connected_backward_data(context_, Tensor(device["a"], f32, {4, 7}, nc),
                                               Tensor(device["b"], f32, {7, 5, 2, 3}, nhwc),
                                               Tensor(device["c"], f32, {4, 5, 2, 3}, nhwc), {.alpha = 2});
               },
               {.alpha = 2});
  expect_right("gemm a=f32:7x4:1,7 b=f32:4x30 c=f32:7x30 beta=1", [&](auto& device) {
    fully_connected_backward_weights(context_, Tensor(device["b"], f32, {4, 5, 2, 3}, nhwc),
                                     Tensor(device["a"], f32, {4, 7}, nc), Tensor(device["c"], f32, {7, 5, 2, 3}, nhwc),
                                     {.beta = 1});
  });
  expect_right("conv_backward_bias dy=f32:4x7 db=f32:7 beta=1", [&](auto& device) {
    fully_connected_backward_bias(context_, Tensor(device["dy"], f32, {4, 7}, nc),
                                  Tensor(device["db"], f32, {7}, contiguous), 1, 1);
  });
}

// Wherever the extent of 1 stands, and whatever its stride is.
TEST_F(GemmCalls, OfFullyConnectedLayersOfImagesOfOneRowOrColumn) {
  std::vector<float> x, w;
  for (int i = 0; i < 40; ++i) x.push_back(static_cast<float>(i % 7) - 3);
  for (int i = 0; i < 60; ++i) w.push_back(static_cast<float>(i % 5) - 2);
  std::vector<float> expected;  // the runs of an image and of a filter have one order, which does not matter
  for (size_t n = 0; n < 2; ++n) {
    for (size_t k = 0; k < 3; ++k) {
      float sum = 0;
      for (size_t i = 0; i < 20; ++i) sum += x[n * 20 + i] * w[k * 20 + i];
      expected.push_back(sum);
    }
  }
  const void *const images = upload(x), *const filters = upload(w);
  const Tensor y(upload(std::vector<float>(6)), f32, {2, 3}, contiguous);
  const auto expect_product = [&](const Tensor& of_x, const Tensor& of_w) {
    tensor_set(context_, y, -1);
    fully_connected_forward(context_, of_x, of_w, y);
    EXPECT_EQ(download<float>(y.data(), 6), expected);
  };
  for (const auto& [c, h, width] : {std::array{4, 1, 5}, std::array{4, 5, 1}, std::array{1, 4, 5}}) {
    SCOPED_TRACE(testing::Message() << c << "x" << h << "x" << width);
    expect_product(Tensor(images, f32, {2, c, h, width}, nhwc), Tensor(filters, f32, {3, c, h, width}, nhwc));
    expect_product(Tensor(images, f32, {2, c, h, width}, nchw), Tensor(filters, f32, {3, c, h, width}, nchw));
  }
  expect_product(Tensor(images, f32, {2, 4, 1, 5}, {20, 1, 77, 4}), Tensor(filters, f32, {3, 4, 1, 5}, {20, 1, 2, 4}));
}

TEST_F(GemmCalls, GiveGradientsOfAnEmptyBatch) {
  const std::vector<float> start(6, 3);
  void* const dw = upload(start);
  fully_connected_backward_weights(context_, Tensor(nullptr, f32, {0, 3}, nc), Tensor(nullptr, f32, {0, 2}, nc),
                                   Tensor(dw, f32, {2, 3}, nc), {.beta = 0.5f});
  EXPECT_THAT(download<float>(dw, 6), Each(1.5f));
}

TEST_F(GemmCalls, RefuseLayersThatDoNotFit) {
  const Tensor x(upload(std::vector<float>(64)), f32, {2, 3, 4}, contiguous);
  const Tensor w(upload(std::vector<float>(64)), f32, {5, 3, 4}, contiguous);
  const Tensor y(upload(std::vector<float>(64)), f32, {2, 5}, contiguous);
  const auto refusal = [&](const Tensor& x_, const Tensor& w_, const Tensor& y_) {
    return refusal_of([&] { fully_connected_forward(context_, x_, w_, y_); });
  };
  EXPECT_THAT(refusal(Tensor(x.data(), f32, {2, 12}, nc), w, y), HasSubstr("x has 2 dimensions and w has 3"));
  EXPECT_THAT(refusal(x, Tensor(w.data(), f32, {5, 4, 3}, contiguous), y), HasSubstr("dimension 1 of x is 3"));
  EXPECT_THAT(refusal(x, Tensor(w.data(), f32, {5, 3, 4}, {12, 1, 3}), y),
              HasSubstr("the inputs of w are not one run"));
  EXPECT_THAT(refusal(Tensor(x.data(), f32, {2, 3, 4}, {16, 5, 1}), w, y),
              HasSubstr("the inputs of x are not one run"));
  EXPECT_THAT(refusal(x, w, Tensor(y.data(), f32, {2, 5, 1}, contiguous)), HasSubstr("y has 3 dimensions"));
  EXPECT_THAT(refusal_of([&] { transposed(Tensor(x.data(), f32, {3}, contiguous)); }), HasSubstr("no transpose"));
}

}  // namespace
}  // namespace kiln
