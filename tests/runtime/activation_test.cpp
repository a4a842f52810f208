// activation_forward, activation_backward and activation_backward_from_y from an application's point of view.
#include "kiln/activation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "device_fixture.h"

namespace kiln::activation_test {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

class ActivationCalls : public DeviceTest {
 protected:
  ActivationCalls() : context_(options()) {}

  // Results of `f` for every value of `x`.
  static std::vector<float> each(const std::vector<float>& x, const std::function<double(double)>& f) {
    std::vector<float> values;
    for (const float value : x) values.push_back(static_cast<float>(f(value)));
    return values;
  }

  Context context_;
  const std::vector<float> values_{-4, -1.5F, -0.25F, 0, 0.25F, 1, 5, 8.5F};
};

TEST_F(ActivationCalls, UseTheUsualNumbersOfTheirMode) {
  const Tensor x(upload(values_), f32, {2, 4}, nc);
  const auto forward = [&](const ActivationOptions& options) {
    const Tensor y(upload(std::vector<float>(8)), f32, {2, 4}, nc);
    activation_forward(context_, x, y, options);
    return download<float>(y.data(), 8);
  };
  EXPECT_EQ(forward({}), each(values_, [](double v) { return std::max(v, 0.0); }));
  EXPECT_EQ(forward({.mode = ActivationMode::clipped_relu}),
            each(values_, [](double v) { return std::clamp(v, 0.0, 6.0); }));
  EXPECT_EQ(forward({.mode = ActivationMode::clip}), values_);
  EXPECT_THAT(forward({.mode = ActivationMode::leaky_relu}),
              Pointwise(FloatNear(1e-6F), each(values_, [](double v) { return v < 0 ? 0.01 * v : v; })));
  EXPECT_THAT(forward({.mode = ActivationMode::hard_sigmoid}),
              Pointwise(FloatNear(1e-6F), each(values_, [](double v) { return std::clamp(v / 6 + 0.5, 0.0, 1.0); })));
  EXPECT_THAT(forward({.mode = ActivationMode::swish}),
              Pointwise(FloatNear(1e-5F), each(values_, [](double v) { return v / (1 + std::exp(-v)); })));
}

TEST_F(ActivationCalls, TakeNumbersThatDifferBetweenCallsOfOnePlan) {
  const Tensor x(upload(values_), f32, {8}, contiguous), y(upload(std::vector<float>(8)), f32, {8}, contiguous);
  for (const float slope : {0.5F, -2.0F, 0.0F}) {
    activation_forward(context_, x, y, {.mode = ActivationMode::leaky_relu, .slope = slope});
    EXPECT_EQ(download<float>(y.data(), 8), each(values_, [&](double v) { return v < 0 ? slope * v : v; }));
  }
  activation_forward(context_, x, y, {.mode = ActivationMode::clip, .low = -1, .high = 2});
  EXPECT_EQ(download<float>(y.data(), 8), each(values_, [](double v) { return std::clamp(v, -1.0, 2.0); }));
}

TEST_F(ActivationCalls, BlendWithWhatWasThere) {
  const Tensor x(upload(values_), f32, {8}, contiguous), y(upload(std::vector<float>(8, 3)), f32, {8}, contiguous);
  activation_forward(context_, x, y, {.alpha = 2, .beta = -1});
  EXPECT_EQ(download<float>(y.data(), 8), each(values_, [](double v) { return 2 * std::max(v, 0.0) - 3; }));
}

TEST_F(ActivationCalls, WorkInPlace) {
  std::vector<float> many;
  for (int i = 0; i < 1031; ++i) many.push_back(std::sin(static_cast<float>(i)));
  const Tensor x(upload(many), f32, {1031}, contiguous);
  activation_forward(context_, x, x, {.mode = ActivationMode::elu});
  const std::vector<float> y = each(many, [](double v) { return v < 0 ? std::expm1(v) : v; });
  EXPECT_THAT(download<float>(x.data(), 1031), Pointwise(FloatNear(1e-6F), y));

  // And back, from what is left: dx in place of dy.
  const Tensor dy(upload(many), f32, {1031}, contiguous);
  activation_backward_from_y(context_, x, dy, dy, {.mode = ActivationMode::elu});
  EXPECT_THAT(download<float>(dy.data(), 1031),
              Pointwise(FloatNear(1e-6F), each(many, [](double v) { return v < 0 ? std::exp(v) * v : v; })));
}

TEST_F(ActivationCalls, GiveTheGradientInPlaceOfEitherInput) {
  const std::vector<float> slopes = each(values_, [](double v) { return 2 * (v > 0 ? 1 : 0); });
  const Tensor x(upload(values_), f32, {2, 4}, nc), dy(upload(std::vector<float>(8, 2)), f32, {2, 4}, nc);
  activation_backward(context_, x, dy, dy);
  EXPECT_EQ(download<float>(dy.data(), 8), slopes);
  const Tensor other(upload(std::vector<float>(8, 2)), f32, {2, 4}, nc);
  activation_backward(context_, x, other, x);
  EXPECT_EQ(download<float>(x.data(), 8), slopes);
}

TEST_F(ActivationCalls, GiveGradientsThatAreDistinctFromThoseOfTheResult) {
  // Equal shapes and bits: only the meaning of the first operand differs.
  const Tensor known(upload<float>({0.5F}), f32, {1}, contiguous), dy(upload<float>({1}), f32, {1}, contiguous);
  const Tensor dx(upload<float>({0}), f32, {1}, contiguous);
  activation_backward(context_, known, dy, dx, {.mode = ActivationMode::sigmoid});
  EXPECT_NEAR(download<float>(dx.data(), 1)[0], 0.23500371, 1e-6);
  activation_backward_from_y(context_, known, dy, dx, {.mode = ActivationMode::sigmoid});
  EXPECT_EQ(download<float>(dx.data(), 1)[0], 0.25F);
}

TEST_F(ActivationCalls, RunAUsersFunctionAndItsDerivative) {
  // f(x) = x^3 / 3, f'(x) = x^2; the chain adds a tensor behind it.
  const Expression cube("acc * acc * acc * scale + bias", {"bias"}, {"scale"});
  const Expression slope("acc * input * input", {"input"});
  const Tensor x(upload(values_), f32, {8}, contiguous), y(upload(std::vector<float>(8)), f32, {8}, contiguous);
  const Tensor bias(upload(std::vector<float>(8, 7)), f32, {8}, contiguous);
  activation_forward(
      context_, x, y,
      {.mode = ActivationMode::identity, .epilogue = expression(cube, {{"bias", bias}}, {{"scale", 1.0F / 3}})});
  EXPECT_THAT(download<float>(y.data(), 8),
              Pointwise(FloatNear(1e-4F), each(values_, [](double v) { return v * v * v / 3 + 7; })));

  const Tensor dy(upload(std::vector<float>(8, 2)), f32, {8}, contiguous);
  activation_forward(context_, dy, dy,
                     {.mode = ActivationMode::identity, .epilogue = expression(slope, {{"input", x}})});
  EXPECT_EQ(download<float>(dy.data(), 8), each(values_, [](double v) { return 2 * v * v; }));
}

TEST_F(ActivationCalls, TakeAnyBatchOfABucket) {
  for (const int64_t n : {0, 1, 3, 4}) {
    const Tensor x(upload(values_), f32, {n, 2}, nc), y(upload(std::vector<float>(8, -9)), f32, {n, 2}, nc);
    activation_forward(context_, x, y, {.dynamic_batch = true});
    std::vector<float> expected = each(values_, [](double v) { return std::max(v, 0.0); });
    std::fill(expected.begin() + 2 * n, expected.end(), -9.0F);
    EXPECT_EQ(download<float>(y.data(), 8), expected) << n;
  }
}

}  // namespace
}  // namespace kiln::activation_test
