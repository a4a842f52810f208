// Matrix products and fully connected layers from an application's point of view.
#include "kiln/gemm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "device_fixture.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tolerance.h"
#include "kiln/tensor_ops.h"

namespace kiln::gemm_test {
namespace {

using testing::Each;
using testing::HasSubstr;

class GemmCalls : public DeviceTest {
 protected:
  GemmCalls() : context_(options()) {}

  // Uploads operands of `line`'s request, calls, and compares the result with the reference.
  void expect_right(const std::string& line, const std::function<void(std::map<std::string, void*>&)>& call,
                    const RunValues& values = {}) {
    const Request request = Request::parse(line);
    std::map<std::string, std::vector<std::byte>> host;
    std::map<std::string, void*> device;
    for (const Operand& operand : request.operands) {
      host[operand.name] = reference::filled(operand.spec, reference::Values::uniform, 7);
      device[operand.name] = upload(host[operand.name]);
    }
    call(device);
    reference::Bindings bindings{.operands = {}, .values = values};
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

// A tensor of small integers: sums of their products are exact.
struct Strided {
  std::vector<int64_t> extents, strides;

  std::vector<float> values(int64_t seed) const {
    int64_t span = 1;
    for (size_t i = 0; i < extents.size(); ++i) span += (extents[i] - 1) * strides[i];
    std::vector<float> values;
    for (int64_t i = 0; i < span; ++i) values.push_back(static_cast<float>((i * seed + i / 5) % 7 - 3));
    return values;
  }
  Tensor over(const void* memory) const { return {memory, f32, extents, strides}; }
  // Index of the element of input number `input` in row `n`, counted in logical order.
  size_t at(int64_t n, int64_t input) const {
    int64_t place = n * strides[0];
    for (size_t i = extents.size() - 1; i > 0; input /= extents[i--]) place += input % extents[i] * strides[i];
    return static_cast<size_t>(place);
  }
};

// Layers whose inputs are no run in x or in w, of one to three further dimensions: crops, and two orders.
class LayersInAnyStrides : public GemmCalls {
 protected:
  struct Case {
    Strided x, w;
    int64_t inputs;
  };
  static constexpr int64_t images = 3, units = 2;
  const std::vector<Case> cases_{
      {{{images, 5, 4}, {60, 12, 2}}, {{units, 5, 4}, {20, 4, 1}}, 20},
      {{{images, 2, 3, 4}, {90, 45, 5, 1}}, {{units, 2, 3, 4}, {24, 1, 8, 2}}, 24},
      {{{images, 2, 3, 1, 4}, {24, 12, 4, 9, 1}}, {{units, 2, 3, 1, 4}, {70, 1, 20, 3, 4}}, 24},
  };
};

TEST_F(LayersInAnyStrides, Forward) {
  const std::vector<float> shift{2, -30}, residual{1, 2, 3, 4, 5, 6};
  for (const Case& c : cases_) {
    SCOPED_TRACE(c.x.extents.size());
    const std::vector<float> x = c.x.values(3), w = c.w.values(5);
    std::vector<float> expected;
    for (int64_t n = 0; n < images; ++n) {
      for (int64_t k = 0; k < units; ++k) {
        float sum = shift[static_cast<size_t>(k)] + residual[static_cast<size_t>(k * images + n)];
        for (int64_t i = 0; i < c.inputs; ++i) sum += x[c.x.at(n, i)] * w[c.w.at(k, i)];
        expected.push_back(std::clamp(sum, -25.0f, 30.0f));
      }
    }
    const void* const y = upload(std::vector<float>(expected.size()));
    const Epilogue epilogue = bias(Tensor(upload(shift), f32, {units}, contiguous)) +
                              add(Tensor(upload(residual), f32, {images, units}, {1, images})) + clip(-25, 30);
    fully_connected_forward(context_, c.x.over(upload(x)), c.w.over(upload(w)),
                            Tensor(y, f32, {images, units}, contiguous), {.epilogue = epilogue});
    EXPECT_EQ(download<float>(y, expected.size()), expected);
  }
}

TEST_F(LayersInAnyStrides, BackwardData) {
  const std::vector<float> dy{1, -2, 3, 4, -5, 6};
  for (const Case& c : cases_) {
    SCOPED_TRACE(c.x.extents.size());
    const std::vector<float> w = c.w.values(5), before = c.x.values(3);
    std::vector<float> expected = before;  // what lies between the elements stays
    for (int64_t n = 0; n < images; ++n) {
      for (int64_t i = 0; i < c.inputs; ++i) {
        for (int64_t k = 0; k < units; ++k) {
          expected[c.x.at(n, i)] += dy[static_cast<size_t>(n * units + k)] * w[c.w.at(k, i)];
        }
      }
    }
    const void* const dx = upload(before);
    fully_connected_backward_data(context_, Tensor(upload(dy), f32, {images, units}, nc), c.w.over(upload(w)),
                                  c.x.over(dx), {.beta = 1});
    EXPECT_EQ(download<float>(dx, expected.size()), expected);
  }
}

TEST_F(LayersInAnyStrides, BackwardWeights) {
  const std::vector<float> dy{1, -2, 3, 4, -5, 6};
  for (const Case& c : cases_) {
    SCOPED_TRACE(c.x.extents.size());
    const std::vector<float> x = c.x.values(3), before = c.w.values(5);
    std::vector<float> expected = before;
    for (int64_t k = 0; k < units; ++k) {
      for (int64_t i = 0; i < c.inputs; ++i) {
        float sum = 0;
        for (int64_t n = 0; n < images; ++n) sum += dy[static_cast<size_t>(n * units + k)] * x[c.x.at(n, i)];
        expected[c.w.at(k, i)] = std::max(sum, 0.0f);
      }
    }
    const void* const dw = upload(before);
    fully_connected_backward_weights(context_, c.x.over(upload(x)), Tensor(upload(dy), f32, {images, units}, nc),
                                     c.w.over(dw), {.epilogue = relu});
    EXPECT_EQ(download<float>(dw, expected.size()), expected);
  }
}

TEST_F(LayersInAnyStrides, RefuseWhatOnlyOneProductCanDo) {
  const Case& c = cases_[0];
  const Tensor x = c.x.over(upload(c.x.values(3))), w = c.w.over(upload(c.w.values(5)));
  const Tensor y(upload(std::vector<float>(6)), f32, {images, units}, nc);
  EXPECT_THAT(refusal_of([&] { fully_connected_forward(context_, x, w, y, {.epilogue = expression("acc * 2.0f")}); }),
              HasSubstr("user code needs inputs that are one run in memory"));
  EXPECT_THAT(refusal_of([&] { fully_connected_backward_data(context_, y, w, x, {.epilogue = add(x)}); }),
              HasSubstr("those of dx or its partner are not"));
  EXPECT_THAT(refusal_of([&] { fully_connected_backward_weights(context_, x, y, w, {.epilogue = add(w)}); }),
              HasSubstr("those of dw or its partner are not"));
  EXPECT_THAT(refusal_of([&] { fully_connected_backward_data(context_, y, w, x, {.dynamic_batch = true}); }),
              HasSubstr("a dynamic batch needs inputs that are one run in memory"));
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
  EXPECT_THAT(refusal(x, w, Tensor(y.data(), f32, {2, 5, 1}, contiguous)), HasSubstr("y has 3 dimensions"));
  EXPECT_THAT(refusal(Tensor(x.data(), f32, {2, 3, 4, 1, 1, 1}, contiguous),
                      Tensor(w.data(), f32, {5, 3, 4, 1, 1, 1}, contiguous), y),
              HasSubstr("x has 6 dimensions"));
  EXPECT_THAT(refusal_of([&] { transposed(Tensor(x.data(), f32, {3}, contiguous)); }), HasSubstr("no transpose"));
}

}  // namespace
}  // namespace kiln::gemm_test
