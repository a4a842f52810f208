// Gemm and MatMul.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx_model.h"

namespace kiln::test {
namespace {

using testing::ElementsAre;

/// y = Gemm(x, w, third), where `third` is a constant or another input; none without extents.
OnnxModel gemm(const Ints& x, const Ints& w, const Attributes& attributes = {}, const std::vector<Ints>& third = {},
               bool is_constant = true) {
  OnnxModel model;
  model.input("x", {x.begin(), x.end()}).weights("w", w);
  std::vector<std::string> inputs{"x", "w"};
  if (!third.empty()) {
    inputs.emplace_back("c");
    if (is_constant) {
      model.weights("c", third.front());
    } else {
      model.input("c", {third.front().begin(), third.front().end()});
    }
  }
  model.node("Gemm", inputs, {"y"}, attributes);
  return model;
}

OnnxModel matmul(const Ints& x, const Ints& w) {
  OnnxModel model;
  model.input("x", {x.begin(), x.end()}).weights("w", w);
  model.node("MatMul", {"x", "w"}, {"y"});
  return model;
}

TEST(OnnxGemm, TakesTransposesAsStrides) {
  EXPECT_THAT(lines_of(gemm({5, 7}, {7, 3}).read()), ElementsAre(line("gemm a=f32:5x7 b=f32:7x3")));
  EXPECT_THAT(lines_of(gemm({5, 7}, {3, 7}, {{"transB", 1}}, {{3}}).read({.dtype = DType::f16})),
              ElementsAre(line("gemm a=f16:5x7 b=f16:7x3:1,7 epilogue=bias")));
  EXPECT_THAT(lines_of(gemm({7, 5}, {7, 3}, {{"transA", 1}, {"alpha", 0.5F}}).read()),
              ElementsAre(line("gemm a=f32:5x7:1,5 b=f32:7x3 alpha=any")));
}

TEST(OnnxGemm, AddsARowOrAMatrix) {
  const std::string product = "gemm a=f32:5x7 b=f32:7x3 epilogue=";
  for (const Ints& row : {Ints{3}, Ints{1, 3}, Ints{1}, Ints{}}) {
    EXPECT_THAT(lines_of(gemm({5, 7}, {7, 3}, {{"beta", 2.0F}}, {row}).read()), ElementsAre(line(product + "bias")));
  }
  EXPECT_THAT(lines_of(gemm({5, 7}, {7, 3}, {}, {{3}}, false).read()), ElementsAre(line(product + "bias")));
  EXPECT_THAT(lines_of(gemm({5, 7}, {7, 3}, {}, {{5, 3}}, false).read()), ElementsAre(line(product + "add")));
  EXPECT_THAT(lines_of(gemm({5, 7}, {7, 3}, {{"beta", 0.0F}}, {{5, 1}}).read()),
              ElementsAre(line("gemm a=f32:5x7 b=f32:7x3")));
  EXPECT_THAT(uncovered_of(gemm({5, 7}, {7, 3}, {}, {{5, 1}}).read()),
              ElementsAre("Gemm *1: its third input is neither a row nor as large as its result"));
  EXPECT_THAT(uncovered_of(gemm({5, 7}, {7, 3}, {{"beta", 2.0F}}, {{3}}, false).read()),
              ElementsAre("Gemm *1: it scales a third input that is no constant"));
}

TEST(OnnxGemm, HasItsRowsAsADynamicBatch) {
  const OnnxOptions dynamic{.batch = 4, .dynamic_batch = true};
  EXPECT_THAT(lines_of(gemm({4, 7}, {7, 3}, {}, {{3}}).read(dynamic)),
              ElementsAre(line("gemm a=f32:4x7 b=f32:7x3 epilogue=bias n=?")));
  EXPECT_THAT(uncovered_of(gemm({4, 7}, {4, 3}, {{"transA", 1}}).read(dynamic)),
              ElementsAre("Gemm *1: its rows are not the batch, which is dynamic"));
  EXPECT_THAT(uncovered_of(matmul({4, 5, 7}, {7, 3}).read(dynamic)),
              ElementsAre("MatMul *1: of products of matrices with batch dimensions none can be dynamic"));
}

TEST(OnnxGemm, SaysWhatDoesNotFit) {
  expect_error(gemm({5, 7}, {6, 3}), "node 'y' (Gemm): gemm: a has rows of 7 elements, b columns of 6",
               ErrorCode::invalid_argument);
  expect_error(gemm({5, 7}, {7, 3}, {}, {{2, 3}}),
               "node 'y' (Gemm): the third input is 2x3, which does not repeat to 5x3");
}

TEST(OnnxMatMul, IsOneProductWhereAllRowsMeetTheSameMatrix) {
  EXPECT_THAT(lines_of(matmul({5, 7}, {7, 3}).read()), ElementsAre(line("gemm a=f32:5x7 b=f32:7x3")));
  EXPECT_THAT(lines_of(matmul({2, 4, 5, 7}, {7, 3}).read()), ElementsAre(line("gemm a=f32:40x7 b=f32:7x3")));
  // In channels-last order the rows of a are no rows in memory.
  EXPECT_THAT(lines_of(matmul({2, 5, 7}, {7, 3}).read({.order = MemoryOrder::nhwc})),
              ElementsAre(line("gemm a=f32:2x5x7:nwc b=f32:1x7x3 c=f32:2x5x3:nwc")));
}

TEST(OnnxMatMul, RepeatsBatchDimensions) {
  EXPECT_THAT(lines_of(matmul({2, 4, 5, 7}, {4, 7, 3}).read()), ElementsAre(line("gemm a=f32:2x4x5x7 b=f32:1x4x7x3")));
  EXPECT_THAT(lines_of(matmul({5, 7}, {2, 7, 3}).read()), ElementsAre(line("gemm a=f32:1x5x7 b=f32:2x7x3")));
  expect_error(matmul({2, 5, 7}, {3, 7, 3}), "node 'y' (MatMul): ");
}

TEST(OnnxMatMul, TakesVectors) {
  EXPECT_THAT(lines_of(matmul({7}, {7}).read()), ElementsAre(line("gemm a=f32:1x7 b=f32:7x1")));
  EXPECT_THAT(lines_of(matmul({7}, {2, 7, 3}).read()), ElementsAre(line("gemm a=f32:1x1x7 b=f32:2x7x3")));
  EXPECT_THAT(lines_of(matmul({2, 5, 7}, {7}).read()), ElementsAre(line("gemm a=f32:2x5x7 b=f32:1x7x1")));
}

}  // namespace
}  // namespace kiln::test
