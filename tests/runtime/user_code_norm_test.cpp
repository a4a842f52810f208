// User code behind normalisations and their gradients from an application's point of view.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "device_fixture.h"
#include "kiln/local_norm.h"
#include "kiln/norm.h"

namespace kiln::user_code_norm_test {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;
using Values = std::vector<float>;

class UserCodeOfNorms : public DeviceTest {
 protected:
  UserCodeOfNorms() : context_(options()) {}

  Tensor tensor(const Values& values, std::initializer_list<int64_t> extents) {
    return {upload(values), f32, extents, contiguous};
  }
  // acc * s + t
  static Epilogue code(const Tensor& t, float s) {
    static const Expression expression("acc * s + t", {"t"}, {"s"});
    return kiln::expression(expression, {{"t", t}}, {{"s", s}});
  }
  // A prologue: x * s + 1
  static Epilogue moved(float s) {
    static const Expression expression("--- prologue\nx * s + 1.0f", {}, {"s"});
    return kiln::expression(expression, {}, {{"s", s}});
  }
  void expect(const Tensor& got, const Values& values) {
    synchronize();
    EXPECT_THAT(download<float>(got.data(), values.size()), Pointwise(FloatNear(1e-5F), values));
  }

  Context context_;
  // A row of mean 0 and variance 1.
  const Values x_ = {-1, 1, -1, 1};
};

TEST_F(UserCodeOfNorms, ForwardAndInference) {
  const Tensor x = tensor(x_, {1, 4}), y = tensor(Values(4), {1, 4}), mean = tensor({7}, {1, 1});
  const Tensor t = tensor({10, 20, 30, 40}, {1, 4}), variance = tensor({4}, {1, 1});
  for (const float s : {2.0F, -3.0F}) {
    norm_forward(context_, {1}, x, y, {.mean = mean, .epsilon = 0, .epilogue = code(t, s)});
    expect(y, {10 - s, 20 + s, 30 - s, 40 + s});
  }
  expect(mean, {0});
  norm_forward(context_, {1}, x, y, {.mean = mean, .epsilon = 0, .epilogue = moved(-3)});
  expect(y, {1, -1, 1, -1});
  expect(mean, {1});
  norm_inference(context_, {1}, x, mean, variance, y, {.epsilon = 0, .epilogue = code(tensor({5}, {1, 1}), 2)});
  expect(y, {3, 5, 3, 5});
  norm_inference(context_, {1}, x, mean, variance, y, {.epsilon = 0, .epilogue = moved(3)});
  expect(y, {-1.5F, 1.5F, -1.5F, 1.5F});
}

// dx of dy = 4, 0, 0, 0 is 2, 0, -2, 0; db is the dy that was given.
TEST_F(UserCodeOfNorms, Backward) {
  const Tensor dy = tensor({4, 0, 0, 0}, {1, 4}), dx = tensor(Values(4), {1, 4}), db = tensor(Values(4), {1, 4});
  const Tensor mean = tensor({0}, {1, 1}), inverse = tensor({1}, {1, 1}), t = tensor({10, 20, 30, 40}, {1, 4});
  norm_backward(context_, {1}, dy, tensor(x_, {1, 4}), inverse, dx, {.mean = mean, .db = db, .epilogue = code(t, 3)});
  expect(dx, {16, 20, 24, 40});
  expect(db, {4, 0, 0, 0});
  norm_backward(context_, {1}, dy, tensor(x_, {1, 4}), inverse, dx, {.mean = mean, .db = db, .epilogue = moved(2)});
  expect(dx, {4, 0, -4, 0});
  expect(db, {9, 1, 1, 1});
}

// Tensors are seen in groups as y is: of two groups of two channels each has the values of x_.
TEST_F(UserCodeOfNorms, OfGroups) {
  const Tensor x = tensor({-1, 1, -1, 1, -1, 1, -1, 1}, {1, 4, 2}), y = tensor(Values(8), {1, 4, 2});
  const std::array<int64_t, 3> extents{1, 4, 2}, strides{8, 1, 4};
  const Tensor across(upload<float>({10, 20, 30, 40, 50, 60, 70, 80}), f32, extents, strides);
  group_norm_forward(context_, 2, x, y, {.epsilon = 0, .epilogue = code(across, 1)});
  expect(y, {9, 51, 19, 61, 29, 71, 39, 81});
  const Tensor dy = tensor({4, 0, 0, 0, 0, 0, 0, 0}, {1, 4, 2});
  const Tensor saved = tensor({0, 0}, {1, 2}), inverse = tensor({1, 1}, {1, 2});
  group_norm_backward(context_, 2, dy, x, inverse, y, {.mean = saved, .epilogue = code(tensor({5, 6}, {1, 1, 2}), 1)});
  expect(y, {7, 6, 3, 6, 5, 6, 5, 6});
  EXPECT_THAT(refusal_of([&] {
                group_norm_forward(context_, 2, x, y, {.epilogue = code(tensor(Values(6), {1, 3, 2}), 1)});
              }),
              HasSubstr("norm_forward: t has extents 1x3x2, expected 1x4x2"));
}

// y = x s^-1/2 of one element with s = 5 + (x - m)^2 = 9: 3 becomes 1, and of dy = 27 dx is 3.
TEST_F(UserCodeOfNorms, OfLocalNormalisations) {
  const Tensor x = tensor({3}, {1, 1, 1}), y = tensor({0}, {1, 1, 1}), m = tensor({1}, {1, 1, 1});
  LocalNormOptions options{.size = 1, .lrn_alpha = 1, .lrn_beta = 0.5F, .lrn_k = 5, .means = m};
  options.epilogue = code(tensor({100}, {1, 1, 1}), 2);
  lrn_forward(context_, x, y, options);
  expect(y, {102});
  const Tensor dy = tensor({27}, {1, 1, 1}), dmeans = tensor({0}, {1, 1, 1});
  lcn_backward(context_, x, dy, y, options, dmeans);
  expect(y, {106});
  expect(dmeans, {6});
  options.epilogue = moved(2);  // x is 7 and s 41; dy is 55
  lrn_forward(context_, x, y, options);
  expect(y, {7 / std::sqrt(41.0F)});
  lcn_backward(context_, x, dy, y, options, dmeans);
  expect(dmeans, {55 * 6.0F / 27});
}

TEST_F(UserCodeOfNorms, RefuseStagesAndTensorsInThePlaceOfTheResult) {
  const Tensor x = tensor(x_, {1, 4}), dx = tensor(x_, {1, 4}), one = tensor({1}, {1, 1});
  EXPECT_THAT(refusal_of([&] { norm_backward(context_, {1}, x, x, one, dx, {.mean = one, .epilogue = code(dx, 1)}); }),
              HasSubstr("norm_backward: the memory of dx and t overlaps"));
  EXPECT_THAT(refusal_of([&] { norm_forward(context_, {1}, x, dx, {.epilogue = code(dx, 1)}); }),
              HasSubstr("norm_forward: the memory of y and t overlaps"));
  EXPECT_THAT(refusal_of([&] { lrn_forward(context_, x, dx, {.epilogue = relu}); }),
              HasSubstr("local_norm_forward takes no epilogue of stages"));
  EXPECT_THAT(refusal_of([&] { lrn_backward(context_, x, x, dx, {.epilogue = relu}); }),
              HasSubstr("local_norm_backward takes no epilogue of stages"));
}

// Code reads its tensors while, or after, a kernel writes what is asked for besides the result.
TEST_F(UserCodeOfNorms, RefuseTensorsInThePlaceOfFurtherOutputs) {
  const Tensor x = tensor(x_, {1, 4}), y = tensor(x_, {1, 4}), t = tensor({1}, {1, 1}), one = tensor({1}, {1, 1});
  EXPECT_THAT(refusal_of([&] { norm_forward(context_, {1}, x, y, {.mean = t, .epilogue = code(t, 1)}); }),
              HasSubstr("norm_forward: the memory of mean and t overlaps"));
  EXPECT_THAT(refusal_of([&] {
                norm_forward(context_, {1}, x, y, {.running_mean = one, .running_variance = t, .epilogue = code(t, 1)});
              }),
              HasSubstr("norm_forward: the memory of running_variance and t overlaps"));
  const Tensor dw = tensor(x_, {1, 4});
  EXPECT_THAT(refusal_of([&] {
                norm_backward(context_, {1}, x, x, one, y,
                              {.w = tensor(x_, {1, 4}), .mean = one, .dw = dw, .epilogue = code(dw, 1)});
              }),
              HasSubstr("norm_backward: the memory of dw and t overlaps"));
  const Tensor of_lrn = tensor({1}, {1, 1, 1}), dmeans = tensor({1}, {1, 1, 1});
  EXPECT_THAT(refusal_of([&] {
                lcn_backward(context_, of_lrn, of_lrn, tensor({1}, {1, 1, 1}), {.size = 1, .epilogue = code(dmeans, 1)},
                             dmeans);
              }),
              HasSubstr("local_norm_backward: the memory of dmeans and t overlaps"));
}

}  // namespace
}  // namespace kiln::user_code_norm_test
