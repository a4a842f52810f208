// Dropout from an application's point of view.
#include "kiln/dropout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "device_fixture.h"

namespace kiln::dropout_test {
namespace {

using testing::Each;
using testing::ElementsAre;

class DropoutCalls : public DeviceTest {
 protected:
  DropoutCalls() : context_(options()) {}

  // Result of dropout for so many ones.
  std::vector<float> of_ones(size_t count, const DropoutOptions& options) {
    const std::vector<float> ones(count, 1);
    const auto extent = static_cast<int64_t>(count);
    const Tensor x(upload(ones), f32, {extent}, contiguous), y(upload(ones), f32, {extent}, contiguous);
    dropout_forward(context_, x, y, options);
    return download<float>(y.data(), count);
  }

  Context context_;
};

// The words of counter 0 and key 0 are 0.399, 0.880, 0.736 and 0.606 of 2^32.
TEST_F(DropoutCalls, FollowTheWordsOfPhilox) {
  EXPECT_THAT(of_ones(4, {.p = 0.75f}), ElementsAre(0, 4, 0, 0));
  EXPECT_THAT(of_ones(4, {.p = 0.5f}), ElementsAre(0, 2, 2, 2));
}

// The upper 24 bits of the first word as p, and the next larger p.
TEST_F(DropoutCalls, KeepWhatIsEqualToP) {
  EXPECT_NE(of_ones(1, {.p = 0x6627e8p-24f})[0], 0);
  EXPECT_EQ(of_ones(1, {.p = 0x6627e9p-24f})[0], 0);
}

TEST_F(DropoutCalls, DifferBySeedAndByOffsetWithoutAnotherPlan) {
  const std::vector<float> first = of_ones(256, {});
  EXPECT_EQ(of_ones(256, {}), first);
  EXPECT_NE(of_ones(256, {.seed = uint64_t{1} << 40}), first);
  EXPECT_NE(of_ones(256, {.offset = uint64_t{1} << 40}), first);
}

TEST_F(DropoutCalls, GiveTheGradientTheMaskOfTheForwardCall) {
  const DropoutOptions options{.p = 0.25f, .seed = 3, .offset = 4};
  const std::vector<float> y = of_ones(64, options);
  std::vector<float> dy(64);
  for (size_t i = 0; i < dy.size(); ++i) dy[i] = static_cast<float>(i);
  void* const memory = upload(dy);
  const Tensor gradient(memory, f32, {4, 16}, {1, 4});  // logical element 16 i + j at place i + 4 j
  dropout_backward(context_, gradient, gradient, options);
  const std::vector<float> dx = download<float>(memory, 64);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 16; ++j) EXPECT_EQ(dx[i + 4 * j], dy[i + 4 * j] * y[16 * i + j]);
  }
}

TEST_F(DropoutCalls, KeepEverythingOrNothingAtTheEnds) {
  EXPECT_THAT(of_ones(33, {.p = 0, .seed = 9}), Each(1));
  EXPECT_THAT(of_ones(33, {.p = 1, .seed = 9}), Each(0));
  const std::vector<float> nan(5, std::nanf(""));
  const Tensor x(upload(nan), f32, {5}, contiguous);
  dropout_forward(context_, x, x, {.p = 1});
  EXPECT_THAT(download<float>(x.data(), 5), Each(0));
}

TEST_F(DropoutCalls, ByAPlanTakeTheIntegersOfEachRun) {
  const std::vector<float> ones(128, 1);
  const void *x = upload(ones), *y = upload(ones);
  const Plan plan = context_.plan(Request::parse("dropout x=f32:128"));
  RunValues values;
  values.operation_scalars = {0.5f};
  values.operation_integers = {11, 12};
  plan.run(nullptr, {x, y}, nullptr, values);
  EXPECT_EQ(download<float>(y, 128), of_ones(128, {.seed = 11, .offset = 12}));
}

}  // namespace
}  // namespace kiln::dropout_test
