// Reduce*, ArgMax and ArgMin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx_model.h"

namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

OnnxModel reduction(const std::string& type, const Ints& extents, const Attributes& attributes = {},
                    int64_t opset = 11) {
  return one_node(type, {extents}, attributes, opset);
}

OnnxModel reduction_by_input(const std::string& type, int64_t opset, const Ints& axes, const Attributes& attributes) {
  return one_node(type, {{2, 3, 5}}, attributes, opset, floating, {axes});
}

TEST(OnnxReduce, HasAModeForEachType) {
  const std::vector<std::pair<std::string, std::string>> modes = {
      {"ReduceSum", "add"},   {"ReduceProd", "mul"}, {"ReduceMin", "min"}, {"ReduceMax", "max"},
      {"ReduceMean", "mean"}, {"ReduceL1", "norm1"}, {"ReduceL2", "norm2"}};
  for (const auto& [type, mode] : modes) {
    EXPECT_THAT(lines_of(reduction(type, {2, 3, 5}, {{"axes", Ints{-1, 1}}}).read()),
                ElementsAre(line("reduce x=f32:2x3x5:ncw axes=1,2 mode=" + mode)))
        << type;
  }
}

TEST(OnnxReduce, HasSeveralRequestsForWhatNoModeIs) {
  const std::string add = line("reduce x=f32:2x3x5:ncw axes=1 mode=add");
  EXPECT_THAT(lines_of(reduction("ReduceSumSquare", {2, 3, 5}, {{"axes", Ints{1}}}).read()),
              ElementsAre(line("reduce x=f32:2x3x5:ncw axes=1 mode=norm2"),
                          line("tensor_op a=f32:2x1x5:ncw b=f32:2x1x5:ncw mode=mul")));
  EXPECT_THAT(lines_of(reduction("ReduceLogSum", {2, 3, 5}, {{"axes", Ints{1}}}).read()),
              ElementsAre(add, line("tensor_op a=f32:2x1x5:ncw mode=log")));
  EXPECT_THAT(lines_of(reduction("ReduceLogSumExp", {2, 3, 5}, {{"axes", Ints{1}}}).read()),
              ElementsAre(line("reduce x=f32:2x3x5:ncw axes=1 mode=max"),
                          line("tensor_op a=f32:2x3x5:ncw b=f32:2x1x5:ncw mode=sub"),
                          line("tensor_op a=f32:2x3x5:ncw mode=exp"), add, line("tensor_op a=f32:2x1x5:ncw mode=log"),
                          line("tensor_op a=f32:2x1x5:ncw b=f32:2x1x5:ncw mode=add")));
  EXPECT_THAT(
      lines_of(reduction("ReduceLogSumExp", {4, 3}, {{"axes", Ints{1}}, {"keepdims", 0}})
                   .read({.batch = 4, .dynamic_batch = true})),
      ElementsAre(line("reduce x=f32:4x3 axes=1 mode=max n=?"),
                  line("tensor_op a=f32:4x3:nc b=f32:4x1:nc mode=sub n=?"), line("tensor_op a=f32:4x3:nc mode=exp n=?"),
                  line("reduce x=f32:4x3 axes=1 mode=add n=?"), line("tensor_op a=f32:4x1:nc mode=log n=?"),
                  line("tensor_op a=f32:4x1:nc b=f32:4x1:nc mode=add n=?")));
  EXPECT_THAT(uncovered_of(reduction_by_input("ReduceSumSquare", 18, {}, {{"noop_with_empty_axes", 1}}).read()),
              ElementsAre("ReduceSumSquare *1: it reduces nothing, and opsets differ in what that gives"));
  EXPECT_THAT(uncovered_of(reduction("ReduceLogSum", {4, 3}).read({.batch = 4, .dynamic_batch = true})),
              ElementsAre("ReduceLogSum *1: it reduces the batch, which is dynamic"));
}

TEST(OnnxReduce, StoresItsResultAsTheNodeGivesIt) {
  const OnnxOptions nhwc{.dtype = DType::f16, .order = MemoryOrder::nhwc};
  EXPECT_THAT(lines_of(reduction("ReduceMean", {2, 3, 5, 7}, {{"axes", Ints{3}}}).read(nhwc)),
              ElementsAre(line("reduce x=f16:2x3x5x7:nhwc y=f16:2x3x5x1:nhwc axes=3 mode=mean")));
  EXPECT_THAT(lines_of(reduction("ReduceMean", {2, 3, 5, 7}, {{"axes", Ints{2, 3}}, {"keepdims", 0}}).read(nhwc)),
              ElementsAre(line("reduce x=f16:2x3x5x7:nhwc y=f16:2x3x1x1:nchw axes=2,3 mode=mean")));
  EXPECT_THAT(lines_of(reduction("ReduceMean", {2, 3, 5, 7}, {{"axes", Ints{1}}, {"keepdims", 0}}).read()),
              ElementsAre(line("reduce x=f32:2x3x5x7:nchw y=f32:2x1x5x7:nchw axes=1 mode=mean")));
  EXPECT_THAT(lines_of(reduction("ReduceMax", {2, 3}, {{"keepdims", 0}}).read()),
              ElementsAre(line("reduce x=f32:2x3:nc mode=max")));
}

TEST(OnnxReduce, ReadsAxesFromWhereItsOpsetHasThem) {
  EXPECT_EQ(lines_of(reduction_by_input("ReduceSum", 13, {-1}, {}).read()),
            std::vector{line("reduce x=f32:2x3x5:ncw axes=2 mode=add")});
  OnnxModel mean = reduction_by_input("ReduceMean", 18, {2}, {{"keepdims", 0}});
  mean.node("Softmax", {"y"}, {"z"});  // which needs the extents that ONNX's inference gets wrong
  EXPECT_THAT(lines_of(mean.read()), ElementsAre(line("reduce x=f32:2x3x5:ncw axes=2 mode=mean"),
                                                 line("softmax_forward x=f32:2x3:nc axis=1")));
  EXPECT_THAT(lines_of(reduction_by_input("ReduceMax", 18, {}, {}).read()),
              ElementsAre(line("reduce x=f32:2x3x5:ncw axes=0,1,2 mode=max")));
  const ModelListing none = reduction_by_input("ReduceMax", 18, {}, {{"noop_with_empty_axes", 1}}).read();
  EXPECT_THAT(none.layers, IsEmpty());
  EXPECT_THAT(none.uncovered, IsEmpty());
}

TEST(OnnxReduce, ChecksItsAxes) {
  expect_error(reduction("ReduceMax", {2, 3}, {{"axes", Ints{2}}}),
               "node 'y' (ReduceMax): axis is 2, expected -2 to 1");
  expect_error(reduction("ReduceMax", {2, 3}, {{"axes", Ints{1, -1}}}), "node 'y' (ReduceMax): axis 1 stands twice");
  EXPECT_THAT(uncovered_of(reduction("ReduceMax", {4, 3}).read({.batch = 4, .dynamic_batch = true})),
              ElementsAre("ReduceMax *1: it reduces the batch, which is dynamic"));
  OnnxModel computed(18);
  computed.input("x", {2, 3}).input("axes", {1}, onnx::TensorProto::INT64);
  computed.node("ReduceMax", {"x", "axes"}, {"y"});
  EXPECT_THAT(uncovered_of(computed.read()), ElementsAre("ReduceMax *1: its axes do not stand in the file"));
}

TEST(OnnxArgMax, IsTheIndexOfAReduction) {
  EXPECT_THAT(lines_of(reduction("ArgMax", {2, 3, 5}, {{"axis", 1}}).read({.dtype = DType::f16})),
              ElementsAre(line("reduce x=f16:2x3x5:ncw indices=i32:2x1x5:ncw axes=1 mode=max")));
  EXPECT_THAT(
      lines_of(reduction("ArgMin", {2, 3, 5, 7}, {{"axis", -1}, {"keepdims", 0}}).read({.order = MemoryOrder::nhwc})),
      ElementsAre(line("reduce x=f32:2x3x5x7:nhwc y=f32:2x3x5x1:15,1,3,1 indices=i32:2x3x5x1:15,1,3,1 "
                       "axes=3 mode=min")));
  EXPECT_THAT(lines_of(reduction("ArgMax", {2, 3}).read()),
              ElementsAre(line("reduce x=f32:2x3:nc indices=i32:1x3:nc axes=0 mode=max")));
  EXPECT_THAT(uncovered_of(reduction("ArgMax", {2, 3}, {{"select_last_index", 1}}, 13).read()),
              ElementsAre("ArgMax *1: of equal elements it takes the last"));
}

}  // namespace
}  // namespace kiln::test
