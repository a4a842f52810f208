// Reductions from an application's point of view.
#include "kiln/reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "device_fixture.h"

namespace kiln::reduce_test {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::IsNan;

class ReduceCalls : public DeviceTest {
 protected:
  ReduceCalls() : context_(options()) {}

  std::vector<float> of_rows(ReduceMode mode, const std::vector<float>& values) {
    const auto columns = static_cast<int64_t>(values.size()) / 2;
    const Tensor x(upload(values), f32, {2, columns}, contiguous), y(upload<float>({7, 7}), f32, {2, 1}, contiguous);
    reduce(context_, mode, x, y);
    return download<float>(y.data(), 2);
  }

  Context context_;
};

TEST_F(ReduceCalls, DoWhatTheModeSays) {
  const std::vector<float> values{3, -4, 0, 1, 2, -2};
  EXPECT_THAT(of_rows(ReduceMode::add, values), ElementsAre(-1, 1));
  EXPECT_THAT(of_rows(ReduceMode::mul, values), ElementsAre(0, -4));
  EXPECT_THAT(of_rows(ReduceMode::min, values), ElementsAre(-4, -2));
  EXPECT_THAT(of_rows(ReduceMode::max, values), ElementsAre(3, 2));
  EXPECT_THAT(of_rows(ReduceMode::amax, values), ElementsAre(4, 2));
  EXPECT_THAT(of_rows(ReduceMode::mean, values), ElementsAre(FloatNear(-1.0f / 3, 1e-7f), FloatNear(1.0f / 3, 1e-7f)));
  EXPECT_THAT(of_rows(ReduceMode::norm1, values), ElementsAre(7, 5));
  EXPECT_THAT(of_rows(ReduceMode::norm2, values), ElementsAre(5, 3));
  EXPECT_THAT(of_rows(ReduceMode::mul_no_zeros, values), ElementsAre(-12, -4));
}

TEST_F(ReduceCalls, MeetNanAndInfinities) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values{1, nan, 2, -infinity, 5, 4};
  EXPECT_THAT(of_rows(ReduceMode::max, values), ElementsAre(IsNan(), 5));
  EXPECT_THAT(of_rows(ReduceMode::min, values), ElementsAre(IsNan(), -infinity));
  EXPECT_THAT(of_rows(ReduceMode::amax, values), ElementsAre(IsNan(), infinity));
}

TEST_F(ReduceCalls, NameTheFirstOfEqualElementsAndTheFirstNan) {
  const float nan = std::nanf("");
  const Tensor x(upload<float>({1, 5, 5, 0, 2, nan, 9, nan}), f32, {2, 2, 2}, contiguous);
  const Tensor y(upload<float>({0, 0}), f32, {2, 1, 1}, contiguous);
  const Tensor at(upload<int32_t>({7, 7}), i32, {2, 1, 1}, contiguous);
  reduce(context_, ReduceMode::max, x, y, at);
  EXPECT_THAT(download<float>(y.data(), 2), ElementsAre(5, IsNan()));
  EXPECT_THAT(download<int32_t>(at.data(), 2), ElementsAre(1, 1));
  const Tensor columns(upload<int32_t>({7, 7}), i32, {1, 1, 2}, contiguous);
  const Tensor least(upload<float>({0, 0}), f32, {1, 1, 2}, contiguous);
  reduce(context_, ReduceMode::min, x, least, columns);
  EXPECT_THAT(download<float>(least.data(), 2), ElementsAre(1, IsNan()));
  EXPECT_THAT(download<int32_t>(columns.data(), 2), ElementsAre(0, 2));
}

// Positions count in logical order, whatever the order in memory.
TEST_F(ReduceCalls, CountPositionsInLogicalOrder) {
  const Tensor x(upload<float>({0, 1, 9, 3, 4, 5}), f32, {1, 2, 1, 3}, nhwc);  // channel 0: 0 9 4, channel 1: 1 3 5
  const Tensor y(upload<float>({0}), f32, {1, 1, 1, 1}, nhwc), at(upload<int32_t>({7}), i32, {1, 1, 1, 1}, nhwc);
  reduce(context_, ReduceMode::max, x, y, at);
  EXPECT_THAT(download<int32_t>(at.data(), 1), ElementsAre(1));
}

TEST_F(ReduceCalls, BlendRoundAndSaturate) {
  const Tensor x(upload<float>({1, 2, 3, 400}), f32, {2, 2}, contiguous);
  const Tensor y(upload<int8_t>({10, 20}), i8, {2, 1}, contiguous);
  reduce(context_, ReduceMode::add, x, y, {.alpha = 0.5F, .beta = 1});
  EXPECT_THAT(download<int8_t>(y.data(), 2), ElementsAre(12, 127)) << "11.5 to even, and the largest";
}

TEST_F(ReduceCalls, OfNothingGiveTheNeutralElement) {
  const Tensor x(upload<float>({0}), f32, {0, 2}, contiguous), y(upload<float>({5, 5}), f32, {1, 2}, contiguous);
  reduce(context_, ReduceMode::mul, x, y);
  EXPECT_THAT(download<float>(y.data(), 2), ElementsAre(1, 1));
  const Tensor at(upload<int32_t>({7, 7}), i32, {1, 2}, contiguous);
  reduce(context_, ReduceMode::max, x, y, at);
  EXPECT_THAT(download<float>(y.data(), 2),
              ElementsAre(-std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()));
  EXPECT_THAT(download<int32_t>(at.data(), 2), ElementsAre(-1, -1));
}

TEST_F(ReduceCalls, ServeEveryBatchOfABucketWithOneKernel) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  for (const int64_t n : {3, 1, 2}) {
    const Tensor x(upload(values), f32, {n, 2}, contiguous), y(upload<float>({0, 0, 0}), f32, {n, 1}, contiguous);
    reduce(context_, ReduceMode::add, x, y, {.dynamic_batch = true});
    const std::vector<float> sums{3, 7, 11};
    const auto count = static_cast<size_t>(n);
    EXPECT_EQ(download<float>(y.data(), count), std::vector<float>(sums.begin(), sums.begin() + n));
  }
}

}  // namespace
}  // namespace kiln::reduce_test
