#include "kiln/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"
#include "kiln/epilogue.h"

namespace kiln::tensor_test {
namespace {

const void* at(uintptr_t address) {
  return reinterpret_cast<const void*>(address);
}

TEST(Tensor, GivesNamedLayoutsTheirStrides) {
  const Tensor tensor(at(4096), f16, {2, 3, 4, 5}, nhwc);
  EXPECT_EQ(tensor.spec(), TensorSpec::parse("f16:2x3x4x5:nhwc"));
  EXPECT_EQ(Tensor(at(4096), f32, {2, 3, 4}, contiguous).spec(), TensorSpec::parse("f32:2x3x4:ncw"));
  EXPECT_EQ(Tensor(at(4096), f32, {2, 3}, {8, 2}).spec(), TensorSpec::parse("f32:2x3:8,2"));
  EXPECT_EQ(Tensor(at(4096), f32, {2, 3, 4, 5, 6, 7}, contiguous).spec(), TensorSpec::parse("f32:2x3x4x5x6x7"));
}

TEST(Tensor, ReadsItsAlignmentOffTheAddress) {
  EXPECT_EQ(Tensor(at(4096), f32, {1}, contiguous).alignment(), 16);
  EXPECT_EQ(Tensor(at(4096 + 8), f32, {1}, contiguous).alignment(), 8);
  EXPECT_EQ(Tensor(at(4096 + 2), f16, {1}, contiguous).alignment(), 2);
  EXPECT_EQ(Tensor(nullptr, f32, {0}, contiguous).alignment(), 16);
}

TEST(Tensor, RefusesWhatCannotBeATensor) {
  EXPECT_THROW(Tensor(nullptr, f32, {1, 2, 3}, nchw), Error);
  EXPECT_THROW(Tensor(nullptr, f32, {}, contiguous), Error);
  EXPECT_THROW(Tensor(nullptr, f32, {1, 2}, {1}), Error);
  EXPECT_THROW(Tensor(nullptr, f32, {1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1}), Error);
}

TEST(Epilogue, ChainsStagesInTheOrderWritten) {
  const Tensor b(at(4096), f32, {8}, contiguous);
  const Epilogue epilogue = bias(b) + relu + clip(0, 6);
  ASSERT_EQ(epilogue.count(), 3);
  EXPECT_EQ(epilogue.stage(0), EpilogueStage::bias);
  EXPECT_EQ(epilogue.stage(1), EpilogueStage::relu);
  EXPECT_EQ(epilogue.stage(2), EpilogueStage::clip);
  EXPECT_EQ(epilogue.bias()->data(), b.data());
  EXPECT_EQ(epilogue.clip_hi(), 6);
}

TEST(Epilogue, RefusesAStageTwiceAndAnEmptyRange) {
  EXPECT_THROW(relu + relu, Error);
  EXPECT_THROW(clip(1, 0), Error);
}

}  // namespace
}  // namespace kiln::tensor_test
