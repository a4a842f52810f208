// Attention from an application's point of view.
#include "kiln/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "device_fixture.h"

namespace kiln::attention_test {
namespace {

using Values = std::vector<float>;

class AttentionCalls : public DeviceTest {
 protected:
  AttentionCalls() : context_(options()) {}

  Tensor tensor(const Values& values, std::initializer_list<int64_t> extents) {
    return {upload(values), f32, extents, contiguous};
  }
  Values values_of(const Tensor& tensor, size_t count) { return download<float>(tensor.data(), count); }

  Context context_;

  // Two queries and two keys of four elements, values of two: the scores are 1 and 0, with a scale of 1/2.
  const Tensor q_ = tensor({2, 0, 0, 0, 0, 0, 0, 2}, {1, 1, 2, 4}), k_ = tensor({1, 0, 0, 1, 0, 0, 0, 0}, {1, 1, 2, 4}),
               v_ = tensor({1, -2, 4, 3}, {1, 1, 2, 2}), y_ = tensor(Values(4), {1, 1, 2, 2}),
               lse_ = tensor(Values(2), {1, 1, 2});
  const double e_ = std::exp(1.0), p_ = e_ / (e_ + 1);  // weight of the first key
};

TEST_F(AttentionCalls, WeighValuesByTheSoftmaxOfScores) {
  attention_forward(context_, q_, k_, v_, y_, {.lse = lse_});
  const Values y = values_of(y_, 4), lse = values_of(lse_, 2);
  for (const size_t query : {size_t{0}, size_t{1}}) {
    EXPECT_NEAR(y[2 * query], p_ * 1 + (1 - p_) * 4, 1e-6);
    EXPECT_NEAR(y[2 * query + 1], p_ * -2 + (1 - p_) * 3, 1e-6);
    EXPECT_NEAR(lse[query], std::log(e_ + 1), 1e-6);
  }
}

TEST_F(AttentionCalls, TakeTheScaleFromEachCallAnd0IsOneOverTheRootOfTheElements) {
  const auto first = [&](float scale) {
    attention_forward(context_, q_, k_, v_, y_, {.scale = scale});
    return values_of(y_, 4)[0];
  };
  EXPECT_EQ(first(0), first(0.5f));
  const double weight = std::exp(-4.0) / (std::exp(-4.0) + 1);
  EXPECT_NEAR(first(-2), weight * 1 + (1 - weight) * 4, 1e-6);
}

TEST_F(AttentionCalls, HideKeysByPlacesMasksAndLengths) {
  const float none = -std::numeric_limits<float>::infinity();
  attention_forward(context_, q_, k_, v_, y_, {.right = 0, .lse = lse_});
  EXPECT_EQ(values_of(y_, 2), Values({1, -2})) << "the first query sees the first key alone";
  EXPECT_NEAR(values_of(y_, 4)[2], p_ * 1 + (1 - p_) * 4, 1e-6);
  const Tensor mask(upload(std::vector<uint8_t>{0, 1, 0, 0}), u8, {1, 1, 2, 2}, contiguous);
  attention_forward(context_, q_, k_, v_, y_, {.mask = mask, .lse = lse_});
  EXPECT_EQ(values_of(y_, 4), Values({4, 3, 0, 0})) << "the second query sees no key";
  EXPECT_EQ(values_of(lse_, 2), Values({0, none}));
  const Tensor lengths(upload(std::vector<int32_t>{1}), i32, {1}, contiguous);
  attention_forward(context_, q_, k_, v_, y_,
                    {.right = 0, .align = AttentionAlign::end, .lengths = lengths, .lse = lse_});
  EXPECT_EQ(values_of(y_, 4), Values({0, 0, 1, -2})) << "the second query stands at the one key";
  EXPECT_EQ(values_of(lse_, 1), Values({none}));
}

TEST_F(AttentionCalls, GiveTheGradientsOfTheFormula) {
  attention_forward(context_, q_, k_, v_, y_, {.lse = lse_});
  const Tensor dy = tensor({1, 0, 0, 0}, {1, 1, 2, 2}), dq = tensor(Values(8), {1, 1, 2, 4});
  const Tensor dk = tensor(Values(8), {1, 1, 2, 4}), dv = tensor(Values(4), {1, 1, 2, 2}),
               dbias = tensor(Values(4), {1, 1, 2, 2});
  attention_backward(context_, dy, q_, k_, v_, y_, lse_, dq, {.dk = dk, .dv = dv, .dbias = dbias});
  const double ds = p_ * (1 - p_) * (1 - 4);  // of the first query and the first key; of the second key it is -ds
  EXPECT_NEAR(values_of(dbias, 4)[0], ds, 1e-6);
  EXPECT_NEAR(values_of(dbias, 4)[1], -ds, 1e-6);
  EXPECT_NEAR(values_of(dq, 8)[0], ds / 2, 1e-6);
  EXPECT_NEAR(values_of(dk, 8)[0], ds, 1e-6);
  EXPECT_NEAR(values_of(dk, 8)[4], -ds, 1e-6);
  EXPECT_NEAR(values_of(dv, 4)[0], p_, 1e-6);
  EXPECT_NEAR(values_of(dv, 4)[2], 1 - p_, 1e-6);
  for (const float value : {values_of(dbias, 4)[2], values_of(dq, 8)[4], values_of(dv, 4)[1]}) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace kiln::attention_test
