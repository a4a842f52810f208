// Cross entropy from an application's point of view.
#include "kiln/loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "device_fixture.h"

namespace kiln::loss_test {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsNan;

class CrossEntropyCalls : public DeviceTest {
 protected:
  CrossEntropyCalls() : context_(options()) {}

  Tensor tensor(const std::vector<float>& values, std::initializer_list<int64_t> extents) {
    return {upload(values), f32, extents, contiguous};
  }
  Tensor classes(const std::vector<int32_t>& values, std::initializer_list<int64_t> extents) {
    return {upload(values), i32, extents, contiguous};
  }
  std::vector<float> values_of(const Tensor& tensor) const {
    return download<float>(tensor.data(), static_cast<size_t>(tensor.spec().elements()));
  }

  Context context_;
};

// Logits whose softmax is 1/4 and 3/4.
const float three = std::log(3.0f);

TEST_F(CrossEntropyCalls, OfEveryReduction) {
  const Tensor x = tensor({0, three, 0, three, 0, 0}, {3, 2}), targets = classes({1, 0, -100}, {3});
  const Tensor all = tensor({7}, {1}), each = tensor({7, 7, 7}, {3});
  const float first = -std::log(0.75f), second = -std::log(0.25f);
  cross_entropy_forward(context_, x, targets, all);
  EXPECT_THAT(values_of(all), ElementsAre(FloatNear((first + second) / 2, 1e-6f)));
  cross_entropy_forward(context_, x, targets, all, {.reduction = LossReduction::sum, .alpha = 2, .beta = 0});
  EXPECT_THAT(values_of(all), ElementsAre(FloatNear(2 * (first + second), 1e-5f)));
  cross_entropy_forward(context_, x, targets, each, {.reduction = LossReduction::none});
  EXPECT_THAT(values_of(each), ElementsAre(FloatNear(first, 1e-6f), FloatNear(second, 1e-6f), 0));
}

TEST_F(CrossEntropyCalls, GiveGradientsOfALossOfOneOrAnother) {
  const Tensor x = tensor({0, three, 0, three, 0, 0}, {3, 2}), targets = classes({1, 0, 9}, {3});
  const Tensor dx = tensor({1, 1, 1, 1, 1, 1}, {3, 2});
  const auto expect = [&](std::vector<float> values) {
    EXPECT_THAT(values_of(dx), testing::Pointwise(testing::FloatNear(1e-6f), values));
  };
  cross_entropy_backward(context_, x, targets, dx, {.ignore = 9});
  expect({0.125f, -0.125f, -0.375f, 0.375f, 0, 0});
  cross_entropy_backward(context_, x, targets, tensor({4}, {1}), dx, {.ignore = 9});
  expect({0.5f, -0.5f, -1.5f, 1.5f, 0, 0});
  cross_entropy_backward(context_, x, targets, tensor({1, 2, 3}, {3}), dx,
                         {.reduction = LossReduction::none, .ignore = 9, .beta = 1});
  expect({0.75f, -0.75f, -3, 3, 0, 0});
}

TEST_F(CrossEntropyCalls, WeighClassesAndSmoothTargets) {
  const Tensor x = tensor({0, three, 0, three, 0, 0}, {3, 2}), targets = classes({1, 0, -100}, {3});
  const Tensor all = tensor({7}, {1}), dx = tensor({0, 0, 0, 0, 0, 0}, {3, 2}), weights = tensor({1, 3}, {2});
  const float likely = -std::log(0.75f), unlikely = -std::log(0.25f);
  const auto expect_gradient = [&](const std::vector<float>& values) {
    EXPECT_THAT(values_of(dx), testing::Pointwise(testing::FloatNear(1e-6f), values));
  };
  cross_entropy_forward(context_, x, targets, all, {.weights = weights});
  EXPECT_THAT(values_of(all), ElementsAre(FloatNear((3 * likely + unlikely) / 4, 1e-6f)));
  cross_entropy_backward(context_, x, targets, dx, {.weights = weights});
  expect_gradient({0.1875f, -0.1875f, -0.1875f, 0.1875f, 0, 0});
  cross_entropy_forward(context_, x, targets, all, {.smoothing = 0.5f});
  EXPECT_THAT(values_of(all), ElementsAre(FloatNear((likely + unlikely) / 2, 1e-6f)));
  cross_entropy_backward(context_, x, targets, dx, {.reduction = LossReduction::sum, .smoothing = 0.5f});
  expect_gradient({0, 0, -0.5f, 0.5f, 0, 0});
  cross_entropy_forward(context_, x, targets, all, {.weights = weights, .smoothing = 1});
  EXPECT_THAT(values_of(all), ElementsAre(FloatNear((unlikely + 3 * likely) / 4, 1e-6f)));
}

TEST_F(CrossEntropyCalls, OverwriteTheLogitsInPlace) {
  const Tensor x = tensor({0, three, three, 0}, {2, 2}), targets = classes({0, 5}, {2});
  cross_entropy_backward(context_, x, targets, x, {.reduction = LossReduction::sum});
  EXPECT_THAT(values_of(x), ElementsAre(FloatNear(-0.75f, 1e-6f), FloatNear(0.75f, 1e-6f), IsNan(), IsNan()));
}

TEST_F(CrossEntropyCalls, OfLogitsThatOverflowAnExponential) {
  const Tensor x = tensor({1000, 0, -1000}, {1, 3}), targets = classes({1}, {1}), loss = tensor({0}, {1});
  cross_entropy_forward(context_, x, targets, loss);
  EXPECT_THAT(values_of(loss), ElementsAre(1000));
}

TEST_F(CrossEntropyCalls, OfAnEmptyBatch) {
  const Tensor x(nullptr, f32, {0, 3}, contiguous), targets(nullptr, i32, {0}, contiguous), loss = tensor({5}, {1});
  cross_entropy_forward(context_, x, targets, loss, {.reduction = LossReduction::sum});
  EXPECT_THAT(values_of(loss), ElementsAre(0));
  cross_entropy_forward(context_, x, targets, loss);
  EXPECT_THAT(values_of(loss), ElementsAre(IsNan()));
}

TEST_F(CrossEntropyCalls, RefuseWhatMakesNoSense) {
  const Tensor x = tensor({0, 0, 0, 0}, {2, 2}), targets = classes({0, 0}, {2}), one = tensor({0}, {1});
  const Tensor two = tensor({0, 0}, {2}), dx = tensor({0, 0, 0, 0}, {2, 2});
  const auto refusal = [&](const Tensor& loss, const CrossEntropyOptions& options) {
    return refusal_of([&] { cross_entropy_forward(context_, x, targets, loss, options); });
  };
  EXPECT_THAT(refusal(two, {}), HasSubstr("loss has extents 2, expected 1"));
  EXPECT_THAT(refusal(one, {.reduction = LossReduction::none}), HasSubstr("losses has extents 1, expected 2"));
  EXPECT_THAT(refusal(one, {.reduction = static_cast<LossReduction>(9)}), HasSubstr("reduction=9 is unknown"));
  EXPECT_THAT(refusal(one, {.ignore = int64_t{1} << 40}), HasSubstr("ignore=1099511627776 is no i32"));
  for (const float smoothing : {-0.125f, 1.5f, std::nanf("")}) {
    EXPECT_THAT(refusal(one, {.smoothing = smoothing}), HasSubstr("smoothing is "));
  }
  EXPECT_THAT(refusal(one, {.weights = tensor({1, 1, 1}, {3})}), HasSubstr("weights has extents 3, expected 2"));
  EXPECT_THAT(refusal(one, {.weights = classes({1, 1}, {2})}), HasSubstr("weights is i32"));
  EXPECT_THAT(refusal(one, {.weights = one}), HasSubstr("the memory of loss and weights overlaps"));
  EXPECT_THAT(refusal_of([&] { cross_entropy_backward(context_, x, targets, dx, {.dynamic_batch = true}); }),
              HasSubstr("the gradient of a mean depends on the whole batch"));
  EXPECT_THAT(refusal_of([&] { cross_entropy_backward(context_, x, targets, one, one); }), HasSubstr("dx"));
  EXPECT_THAT(refusal_of([&] { cross_entropy_backward(context_, x, targets, dx, dx); }),
              HasSubstr("the memory of dx and dloss overlaps"));
}

}  // namespace
}  // namespace kiln::loss_test
