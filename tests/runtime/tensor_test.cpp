#include "kiln/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

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

TEST(Tensor, ReachesFromItsFirstToItsLastElement) {
  constexpr int64_t most = int64_t{1} << 58, half = most / 2;
  struct Row {
    std::vector<int64_t> extents, strides;  // no strides: without gaps
    int64_t elements;                       // -1 where that is too many
  };
  const std::vector<Row> rows = {
      {{2, 3, 4}, {}, 24},
      {{2, 3}, {10, 2}, 15},
      {{3, 1}, {0, 9}, 1},
      {{2, 0, 4}, {}, 0},
      {{0, most}, {5, 1}, 0},
      {{most}, {}, most},
      {{most + 1}, {}, -1},
      {{2, half}, {}, most},
      {{2, half + 1}, {}, -1},
      {{2, 2}, {half, half - 1}, most},
      {{2, 2}, {half, half}, -1},
      {{most, 1, most, 1, most}, {}, -1},
      {{3, 2}, {std::numeric_limits<int64_t>::max(), 1}, -1},
  };
  for (const Row& row : rows) {
    const auto made = [&] {
      return row.strides.empty() ? Tensor(nullptr, f32, row.extents, contiguous)
                                 : Tensor(nullptr, f32, row.extents, row.strides);
    };
    if (row.elements < 0) {
      EXPECT_THROW((void)made(), Error) << testing::PrintToString(row.extents);
    } else {
      EXPECT_EQ(made().span_bytes(), 4 * row.elements) << testing::PrintToString(row.extents);
    }
  }
}

TEST(Epilogue, KeepsWhatEachPartHas) {
  const Tensor b(at(4096), f32, {8}, contiguous), r(at(8192), f32, {8}, contiguous);
  for (const Epilogue& sum : {clip(-1, 2) + relu, relu + clip(-1, 2), clip(-1, 2) + bias(b) + add(r)}) {
    EXPECT_EQ(sum.clip_lo(), -1);
    EXPECT_EQ(sum.clip_hi(), 2);
  }
  const Epilogue sum = (bias(b) + relu) + (add(r) + clip(0, 0));
  ASSERT_EQ(sum.count(), 4);
  EXPECT_EQ(sum.bias()->data(), b.data());
  EXPECT_EQ(sum.residual()->data(), r.data());
  EXPECT_EQ(sum.clip_lo(), 0);
  EXPECT_EQ((sum + Epilogue()).count(), 4);
  EXPECT_EQ((Epilogue() + sum).residual()->data(), r.data());
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
