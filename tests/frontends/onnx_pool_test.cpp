#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx_model.h"

namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

OnnxModel one_pool(const std::string& type, const Attributes& attributes, int64_t opset = 13) {
  OnnxModel model(opset);
  model.input("x", {2, 3, 6, 7});
  model.node(type, {"x"}, {"y"}, attributes);
  model.output("y");
  return model;
}

const std::string x = " x=f32:2x3x6x7:nchw ";

TEST(OnnxPool, HasTheDefaultsOfTheSpecification) {
  EXPECT_THAT(lines_of(one_pool("MaxPool", {{"kernel_shape", Ints{2, 3}}}).read()),
              ElementsAre(line("pool_forward mode=max window=2,3" + x + "y=f32:2x3x5x5:nchw")));
  EXPECT_THAT(lines_of(one_pool("AveragePool", {{"kernel_shape", Ints{2, 3}}}).read()),
              ElementsAre(line("pool_forward mode=avg window=2,3" + x)));
}

TEST(OnnxPool, TakesEveryAttribute) {
  EXPECT_THAT(lines_of(one_pool("MaxPool", {{"kernel_shape", Ints{2, 3}},
                                            {"strides", Ints{2, 1}},
                                            {"pads", Ints{1, 0, 0, 2}},
                                            {"dilations", Ints{1, 2}},
                                            {"storage_order", 1}})
                           .read()),
              ElementsAre(line("pool_forward mode=max window=2,3 stride=2,1 pad=1,0,0,2 dilation=1,2" + x)));
  EXPECT_THAT(lines_of(one_pool("AveragePool",
                                {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"count_include_pad", 1}})
                           .read()),
              ElementsAre(line("pool_forward mode=avg_padded window=3,3 pad=1,1" + x)));
  EXPECT_THAT(lines_of(one_pool("AveragePool",
                                {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"auto_pad", "SAME_LOWER"}})
                           .read()),
              ElementsAre(line("pool_forward mode=avg window=3,3 stride=2,2 pad=1,1,0,1" + x)));
}

TEST(OnnxPool, RoundsUpInCeilMode) {
  EXPECT_THAT(
      lines_of(one_pool("MaxPool", {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", 1}}).read()),
      ElementsAre(line("pool_forward mode=max window=3,3 stride=2,2 ceil=1 y=f32:2x3x3x3:nchw" + x)));
}

// The last window would start where the input ends: in the padding, or, of two, in its first element.
TEST(OnnxPool, CountsNoWindowThatStartsWhereTheInputEnds) {
  const auto width_of = [](int64_t extent, const Ints& pads) {
    OnnxModel model(13);
    model.input("x", {1, 1, 1, extent});
    model.node("MaxPool", {"x"}, {"y"},
               {{"kernel_shape", Ints{1, 2}}, {"strides", Ints{1, 2}}, {"pads", pads}, {"ceil_mode", 1}});
    model.output("y");
    const ModelListing listing = model.read();
    return listing.layers.size() == 1 ? listing.layers.front().request.at("y").extents.back() : -1;
  };
  EXPECT_EQ(width_of(4, {0, 0, 0, 1}), 2);
  EXPECT_EQ(width_of(5, {0, 0, 0, 1}), 3);
  EXPECT_EQ(width_of(4, {0, 1, 0, 0}), 3);  // the last starts in the last element
  EXPECT_EQ(width_of(3, {0, 1, 0, 1}), 2);
}

TEST(OnnxPool, DropsWindowsThatStartInThePaddingFromItsShapeAndThoseBehindIt) {
  // Along w, 7 elements and 2 of padding hold windows of 1 at 0, 4 and 8; the last starts in the padding. ONNX's own
  // shape inference counts it.
  OnnxModel model = one_pool(
      "MaxPool", {{"kernel_shape", Ints{1, 1}}, {"strides", Ints{1, 4}}, {"pads", Ints{0, 0, 0, 2}}, {"ceil_mode", 1}});
  model.weights("w", {1, 3, 1, 1});
  model.node("Conv", {"y", "w"}, {"z"});
  model.output("z");
  EXPECT_THAT(lines_of(model.read()),
              ElementsAre(line("pool_forward mode=max window=1,1 stride=1,4 pad=0,0,0,2 y=f32:2x3x6x2:nchw ceil=1" + x),
                          line("conv_forward x=f32:2x3x6x2:nchw w=f32:1x3x1x1:nchw")));
}

TEST(OnnxPool, SkipsElementsInAveragesSinceOpset19) {
  OnnxModel model = one_pool("AveragePool", {{"kernel_shape", Ints{2, 2}}, {"dilations", Ints{3, 2}}}, 19);
  model.node("GlobalMaxPool", {"y"}, {"z"});
  model.output("z");
  EXPECT_THAT(lines_of(model.read()),
              ElementsAre(line("pool_forward mode=avg window=2,2 dilation=3,2 y=f32:2x3x3x5:nchw" + x),
                          line("pool_forward mode=max window=3,5 x=f32:2x3x3x5:nchw")));
}

TEST(OnnxPool, SpansTheWholeInputWhenGlobal) {
  EXPECT_THAT(lines_of(one_pool("GlobalAveragePool", {}).read()),
              ElementsAre(line("pool_forward mode=avg window=global" + x)));
  EXPECT_THAT(lines_of(one_pool("GlobalMaxPool", {}).read({.order = MemoryOrder::nhwc})),
              ElementsAre(line("pool_forward mode=max window=global x=f32:2x3x6x7:nhwc y=f32:2x3x1x1:nhwc")));
}

TEST(OnnxPool, IsNotCoveredWhereItsIndicesShowThatTheyCountThroughAChannel) {
  OnnxModel unused(13), used(13), single(13);
  for (OnnxModel* model : {&unused, &used, &single}) {
    model->input("x", model == &single ? std::vector<Extent>{1, 1, 6, 7} : std::vector<Extent>{2, 3, 6, 7});
    model->node("MaxPool", {"x"}, {"y", "indices"}, {{"kernel_shape", Ints{2, 2}}});
    model->output("y");
  }
  used.output("indices");
  EXPECT_EQ(unused.read().layers.size(), 1u);
  EXPECT_THAT(used.read().layers, IsEmpty());
  EXPECT_THAT(uncovered_of(used.read()),
              ElementsAre("MaxPool *1: its indices count through all channels, and those of pool_forward through one"));
  single.output("indices");
  EXPECT_THAT(lines_of(single.read()),
              ElementsAre(line("pool_forward x=f32:1x1x6x7:nchw indices=i32:1x1x5x6:nchw mode=max window=2,2")));
}

OnnxModel unpooling(const Attributes& pool, const Attributes& unpool, const Ints& shape = {}) {
  OnnxModel model(13);
  model.input("x", {2, 3, 6, 7});
  model.node("MaxPool", {"x"}, {"y", "indices"}, pool);
  std::vector<std::string> inputs{"y", "indices"};
  if (!shape.empty()) {
    model.integers("shape", shape);
    inputs.emplace_back("shape");
  }
  model.node("MaxUnpool", inputs, {"z"}, unpool);
  model.output("z");
  return model;
}

TEST(OnnxUnpool, PutsMaximaBackByTheIndicesOfItsPooling) {
  const Attributes rows{{"kernel_shape", Ints{2, 1}}, {"strides", Ints{2, 1}}};
  EXPECT_THAT(
      lines_of(unpooling(rows, rows).read({.order = MemoryOrder::nhwc})),
      ElementsAre(line("pool_forward x=f32:2x3x6x7:nhwc indices=i32:2x3x3x7:nhwc mode=max window=2,1 stride=2,1"),
                  line("pool_backward dy=f32:2x3x3x7:nhwc indices=i32:2x3x3x7:nhwc dx=f32:2x3x6x7:nhwc mode=max "
                       "window=2,1 stride=2,1")));
  const Attributes squares{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};  // which leave the last column out
  EXPECT_EQ(unpooling(squares, squares, {2, 3, 6, 7}).read().layers.size(), 2u);
  EXPECT_THAT(uncovered_of(unpooling(squares, squares).read()),
              ElementsAre("MaxUnpool *1: its extents are not those of its MaxPool"));
}

// ONNX's own inference of shapes reads memory that is not there for such a node.
TEST(OnnxUnpool, IsReadBehindANodeWhoseResultsHaveNoTypes) {
  OnnxModel model(13);
  model.input("x", {1, 1, 4, 4});
  model.node("Mystery", {"x"}, {"y", "indices"}).set_domain("elsewhere");
  auto& import = *model.proto().add_opset_import();
  import.set_domain("elsewhere");
  import.set_version(1);
  model.node("MaxUnpool", {"x", "indices"}, {"z"}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  model.output("z");
  EXPECT_THAT(uncovered_of(model.read()),
              testing::Contains("MaxUnpool *1: its indices are not those of a MaxPool that nothing else uses"));
}

TEST(OnnxUnpool, IsNotCoveredForIndicesFromElsewhere) {
  OnnxModel model(13);
  model.input("y", {2, 3, 3, 3}).input("indices", {2, 3, 3, 3}, onnx::TensorProto::INT64);
  model.node("MaxUnpool", {"y", "indices"}, {"z"}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  EXPECT_THAT(uncovered_of(model.read()),
              ElementsAre("MaxUnpool *1: its indices are not those of a MaxPool that nothing else uses"));
}

TEST(OnnxPool, HasOneToThreeDimensions) {
  OnnxModel model;
  model.input("line", {1, 2, 9}).input("volume", {1, 2, 9, 8, 7});
  model.node("MaxPool", {"line"}, {"a"}, {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"ceil_mode", int64_t{1}}});
  model.node("AveragePool", {"volume"}, {"b"}, {{"kernel_shape", Ints{3, 2, 2}}, {"pads", Ints{1, 0, 1, 1, 0, 0}}});
  model.node("GlobalAveragePool", {"volume"}, {"c"});
  model.output("a").output("b").output("c");
  EXPECT_THAT(lines_of(model.read()),
              ElementsAre(line("pool_forward x=f32:1x2x9:ncw mode=max window=3 stride=2"),
                          line("pool_forward x=f32:1x2x9x8x7:ncdhw mode=avg window=3,2,2 pad=1,0,1,1,0,0"),
                          line("pool_forward x=f32:1x2x9x8x7:ncdhw mode=avg window=global")));
}

TEST(OnnxPool, IsNotCoveredForIntegersAndOtherRanks) {
  OnnxModel model;
  model.input("bytes", {1, 2, 8, 8}, onnx::TensorProto::UINT8).input("rows", {1, 2});
  model.node("MaxPool", {"bytes"}, {"a"}, {{"kernel_shape", Ints{2, 2}}});
  model.node("GlobalAveragePool", {"rows"}, {"b"});
  model.output("a").output("b");
  EXPECT_THAT(uncovered_of(model.read()), ElementsAre("MaxPool *1: its elements are not floating-point numbers",
                                                      "GlobalAveragePool *1: its input has no spatial dimensions"));
}

}  // namespace
}  // namespace kiln::test
