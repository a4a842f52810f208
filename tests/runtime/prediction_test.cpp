#include "kiln/prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"

namespace kiln::prediction_test {
namespace {

double seconds(const std::string& line) {
  return predicted_seconds(Request::parse(line));
}

TEST(Prediction, ComparesRequests) {
  const double one = seconds("conv_forward x=f32:8x64x56x56 w=f32:64x64x3x3 pad=1");
  EXPECT_GT(one, 1e-6);
  EXPECT_LT(one, 1);
  EXPECT_GT(seconds("conv_forward x=f32:64x64x56x56 w=f32:64x64x3x3 pad=1"), 4 * one);
  EXPECT_EQ(seconds("conv_forward x=f32:8x64x56x56 w=f32:64x64x3x3 pad=1"), one);
  // Its columns are read one element at a time.
  EXPECT_GT(seconds("tensor_transform x=f32:4096x4096:cn y=f32:4096x4096"),
            seconds("tensor_transform x=f32:4096x4096 y=f32:4096x4096"));
}

TEST(Prediction, SaysWhatNothingServes) {
  const std::string digest(32, 'a');
  try {
    (void)seconds("activation_forward x=f32:4x4 mode=identity epilogue=user:" + digest);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("aaaa"));
  }
}

TEST(Prediction, ADefaultHidesNoOtherError) {
  const Request served = Request::parse("softmax_forward x=f32:3x100");
  EXPECT_EQ(predicted_seconds(served, 7), predicted_seconds(served));
  Request unknown = served;
  unknown.operation = "unknown";
  EXPECT_THROW((void)predicted_seconds(unknown, 7), Error);
}

}  // namespace
}  // namespace kiln::prediction_test
