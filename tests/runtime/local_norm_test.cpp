// Local normalisations from an application's point of view.
#include "kiln/local_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "device_fixture.h"
#include "kiln/base/error.h"

namespace kiln::local_norm_test {
namespace {

using testing::HasSubstr;
using Values = std::vector<float>;

Values wave(size_t count, float step) {
  Values values;
  for (size_t i = 0; i < count; ++i) values.push_back(2 * std::sin(step * static_cast<float>(i + 1)));
  return values;
}

class LocalNormCalls : public DeviceTest {
 protected:
  LocalNormCalls() : context_(options()) {}

  Tensor tensor(const Values& values, std::initializer_list<int64_t> extents) {
    return {upload(values), f32, extents, contiguous};
  }
  Values values_of(const Tensor& tensor, size_t count) { return download<float>(tensor.data(), count); }

  Context context_;
};

// Sum of squares around `i`, from `behind` before it to `ahead` after it, among `count` elements in a row.
double squares_around(const Values& x, size_t count, size_t first, size_t i, int behind, int ahead) {
  double sum = 0;
  for (int j = static_cast<int>(i) - behind; j <= static_cast<int>(i) + ahead; ++j) {
    if (j < 0 || j >= static_cast<int>(count)) continue;
    const double value = x[first + static_cast<size_t>(j)];
    sum += value * value;
  }
  return sum;
}

TEST_F(LocalNormCalls, NormaliseAcrossChannelsWithCudnnsNumbers) {
  const Values x = wave(2 * 9, 0.7f);
  const Tensor y = tensor(Values(18), {2, 9});
  lrn_forward(context_, tensor(x, {2, 9}), y);
  const Values got = values_of(y, 18);
  for (size_t i = 0; i < 18; ++i) {
    const double squares = squares_around(x, 9, i / 9 * 9, i % 9, 2, 2);
    EXPECT_NEAR(got[i], x[i] * std::pow(2 + 1e-4 / 5 * squares, -0.75), 1e-6) << i;
  }
}

TEST_F(LocalNormCalls, TakeTheirNumbersFromEachCallWithoutAnotherPlan) {
  const Values x = wave(18, 0.7f);
  const Tensor y = tensor(Values(18), {2, 1, 9});
  for (const float k : {0.5f, 3.0f}) {
    lcn_forward(context_, tensor(x, {2, 1, 9}), y, {.size = 4, .lrn_alpha = 2, .lrn_beta = 0.5f, .lrn_k = k});
    const Values got = values_of(y, 18);
    for (size_t i = 0; i < 18; ++i) {
      const double squares = squares_around(x, 9, i / 9 * 9, i % 9, 1, 2);
      EXPECT_NEAR(got[i], x[i] / std::sqrt(k + 0.5 * squares), 1e-6) << i;
    }
  }
}

// y = x s^-1/2 of one element: its gradients have a closed form.
TEST_F(LocalNormCalls, GiveTheGradientsByXAndByTheMeans) {
  const Tensor x = tensor({3}, {1, 1, 1}), means = tensor({1}, {1, 1, 1}), dy = tensor({2}, {1, 1, 1});
  const Tensor dx = tensor({7}, {1, 1, 1}), dmeans = tensor({7}, {1, 1, 1});
  const LocalNormOptions options{.size = 1, .lrn_alpha = 1, .lrn_beta = 0.5f, .lrn_k = 5, .means = means};
  lcn_backward(context_, x, dy, dx, options, dmeans);
  const double s = 5 + 4, through = 2 * 3 * 2 * std::pow(s, -1.5);  // dy x (x - m) s^-3/2
  EXPECT_NEAR(values_of(dx, 1)[0], 2 / 3.0 - through, 1e-6);
  EXPECT_NEAR(values_of(dmeans, 1)[0], through, 1e-6);
  lrn_backward(context_, x, dy, dx, options, dmeans);
  EXPECT_NEAR(values_of(dx, 1)[0], 2 / 3.0 - through, 1e-6);

  LocalNormOptions blended = options;
  blended.dmeans_alpha = -3, blended.dmeans_beta = 0.5f;
  lcn_backward(context_, x, dy, dx, blended, dmeans);
  EXPECT_NEAR(values_of(dx, 1)[0], 2 / 3.0 - through, 1e-6);
  EXPECT_NEAR(values_of(dmeans, 1)[0], -2.5 * through, 1e-6);
}

TEST_F(LocalNormCalls, RefuseWhatTheyCannotDo) {
  const Tensor x = tensor(wave(18, 0.7f), {2, 9}), y = tensor(Values(18), {2, 9}), dy = tensor(Values(18), {2, 9});
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "accepted";
  };
  const auto with = [&](const LocalNormOptions& options) {
    return message([&] { lrn_forward(context_, x, y, options); });
  };
  EXPECT_THAT(with({.size = 0}), HasSubstr("local_norm_forward: size=0 is no extent of a window"));
  EXPECT_THAT(with({.lrn_alpha = -1}), HasSubstr("local_norm_forward: lrn_alpha is -1"));
  EXPECT_THAT(with({.lrn_beta = 0}), HasSubstr("lrn_beta is 0"));
  EXPECT_THAT(with({.lrn_k = 0}), HasSubstr("lrn_k is 0"));
  EXPECT_THAT(with({.lrn_k = std::nanf("")}), HasSubstr("lrn_k is nan"));
  EXPECT_THAT(with({.lrn_alpha = INFINITY}), HasSubstr("lrn_alpha is inf"));
  EXPECT_THAT(with({.means = y}), HasSubstr("the memory of y and means overlaps"));
  EXPECT_THAT(message([&] { lcn_forward(context_, x, y); }), HasSubstr("x has 2 dimensions"));
  EXPECT_THAT(message([&] { lrn_backward(context_, x, dy, y, {.dmeans_beta = 1}); }),
              HasSubstr("dmeans_alpha and dmeans_beta concern no output that there is"));
  EXPECT_THAT(message([&] { lrn_forward(context_, x, x); }), HasSubstr("the memory of y and x overlaps"));
  EXPECT_THAT(message([&] { lrn_backward(context_, x, dy, y, {}, y); }), HasSubstr("dmeans and dx overlaps"));
  EXPECT_THAT(message([&] { lrn_backward(context_, x, dy, y, {}, dy); }), HasSubstr("dmeans and dy overlaps"));
}

}  // namespace
}  // namespace kiln::local_norm_test
