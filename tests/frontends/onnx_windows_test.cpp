// Windows of convolutions and pooling: what attributes mean beyond ONNX's own node tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "listing.h"

namespace kiln::test::onnx_windows_test {
namespace {

using testing::ElementsAre;

struct Case {
  Attributes attributes;
  std::string words;  ///< Words of the request, behind the operands that go in.
};

/// One node over x of 1x4x9x10 with 6 filters of 3x2 along it, or for ConvTranspose over 1x6x4x5.
std::string filtered(const std::string& type, const Attributes& attributes) {
  const bool transposed = type == "ConvTranspose";
  const int64_t group = attributes.empty() || attributes.back().first != "group" ? 1 : 2;
  OnnxModel model;
  model.input("x", transposed ? std::vector<Extent>{1, 6, 4, 5} : std::vector<Extent>{1, 4, 9, 10});
  model.input("w", {6, 4 / (transposed ? 1 : group), 3, 2});
  model.node(type, {"x", "w"}, {"y"}, attributes);
  model.output("y");
  return steps_of(model).at(0);
}

TEST(OnnxWindows, OfConv) {
  const std::vector<Case> cases = {
      {{}, "w=f32:6x4x3x2 y=f32:1x6x7x9"},
      {{{"auto_pad", "VALID"}}, "w=f32:6x4x3x2 y=f32:1x6x7x9"},
      {{{"kernel_shape", Ints{3, 2}},
        {"strides", Ints{2, 3}},
        {"pads", Ints{1, 0, 2, 1}},
        {"dilations", Ints{2, 1}},
        {"group", 2}},
       "w=f32:6x2x3x2 stride=2,3 pad=1,0,2,1 dilation=2,1 groups=2"},
      // h: ceil(9/2) = 5 outputs span 11, 2 more than there are; w: ceil(10/1) = 10 span 11, 1 more.
      {{{"auto_pad", "SAME_UPPER"}, {"strides", Ints{2, 1}}}, "w=f32:6x4x3x2 stride=2,1 pad=1,0,1,1 y=f32:1x6x5x10"},
      {{{"auto_pad", "SAME_LOWER"}, {"strides", Ints{2, 1}}}, "w=f32:6x4x3x2 stride=2,1 pad=1,1,1,0 y=f32:1x6x5x10"},
      {{{"auto_pad", "SAME_UPPER"}, {"dilations", Ints{3, 4}}},
       "w=f32:6x4x3x2 dilation=3,4 pad=3,2,3,2 y=f32:1x6x9x10"},
      // The stride leaves gaps.
      {{{"auto_pad", "SAME_UPPER"}, {"strides", Ints{5, 4}}}, "w=f32:6x4x3x2 stride=5,4 y=f32:1x6x2x3"}};
  for (const Case& each : cases) {
    EXPECT_EQ(filtered("Conv", each.attributes), line("conv_forward x=f32:1x4x9x10 " + each.words));
  }
}

TEST(OnnxWindows, OfConvTranspose) {
  const std::vector<Case> cases = {
      {{}, "dx=f32:1x4x6x6"},
      {{{"auto_pad", "VALID"}}, "dx=f32:1x4x6x6"},
      {{{"kernel_shape", Ints{3, 2}},
        {"strides", Ints{2, 3}},
        {"pads", Ints{1, 0, 2, 1}},
        {"dilations", Ints{2, 1}},
        {"output_padding", Ints{1, 2}},
        {"group", 2}},
       "stride=2,3 pad=1,0,2,1 dilation=2,1 groups=2 output_pad=1,2 dx=f32:1x8x9x15"},
      // To the stride times the input. h: 2 * 3 + 3 = 9, 1 more than 8; w: 4 + 2 = 6, 1 more than 5.
      {{{"auto_pad", "SAME_UPPER"}, {"strides", Ints{2, 1}}}, "stride=2,1 pad=0,0,1,1 dx=f32:1x4x8x5"},
      {{{"auto_pad", "SAME_LOWER"}, {"strides", Ints{2, 1}}}, "stride=2,1 pad=1,1,0,0 dx=f32:1x4x8x5"},
      // Unpadded 9 x 6: 3 and 1 to take off.
      {{{"output_shape", Ints{6, 5}}, {"strides", Ints{2, 1}}}, "stride=2,1 pad=2,1,1,0 dx=f32:1x4x6x5"}};
  for (const Case& each : cases) {
    EXPECT_EQ(filtered("ConvTranspose", each.attributes),
              line("conv_backward_data dy=f32:1x6x4x5 w=f32:6x4x3x2 " + each.words));
  }
}

TEST(OnnxWindows, OfPooling) {
  const std::vector<std::pair<std::string, Case>> cases = {
      {"MaxPool", {{{"kernel_shape", Ints{2, 3}}}, "mode=max window=2,3"}},
      {"MaxPool",
       {{{"kernel_shape", Ints{2, 3}},
         {"strides", Ints{2, 1}},
         {"pads", Ints{1, 0, 0, 2}},
         {"dilations", Ints{1, 2}},
         {"storage_order", 1}},
        "mode=max window=2,3 stride=2,1 pad=1,0,0,2 dilation=1,2"}},
      {"MaxPool",
       {{{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", 1}},
        "mode=max window=3,3 stride=2,2 ceil=1 y=f32:2x3x3x3"}},
      {"AveragePool", {{{"kernel_shape", Ints{2, 3}}}, "mode=avg window=2,3"}},
      {"AveragePool",
       {{{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"count_include_pad", 1}},
        "mode=avg_padded window=3,3 pad=1,1"}},
      {"AveragePool",
       {{{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"auto_pad", "SAME_LOWER"}},
        "mode=avg window=3,3 stride=2,2 pad=1,1,0,1"}},
      {"GlobalAveragePool", {{}, "mode=avg window=6,7"}}};
  for (const auto& [type, each] : cases) {
    EXPECT_THAT(steps_of(one_node(type, {{2, 3, 6, 7}}, each.attributes)),
                ElementsAre(line("pool_forward x=f32:2x3x6x7 " + each.words)));
  }
}

// The last window would start where the input ends: in the padding, or, of two, in its first element. ONNX's own shape
// inference counts it.
TEST(OnnxWindows, NoneStartsWhereTheInputEnds) {
  const auto width_of = [](int64_t extent, const Ints& pads) {
    const OnnxModel model =
        one_node("MaxPool", {{1, 1, 1, extent}},
                 {{"kernel_shape", Ints{1, 2}}, {"strides", Ints{1, 2}}, {"pads", pads}, {"ceil_mode", 1}});
    return lowered(model).schedule.steps.at(0).request.at("y").extents.back();
  };
  EXPECT_EQ(width_of(4, {0, 0, 0, 1}), 2);
  EXPECT_EQ(width_of(5, {0, 0, 0, 1}), 3);
  EXPECT_EQ(width_of(4, {0, 1, 0, 0}), 3);  // the last starts in the last element
  EXPECT_EQ(width_of(3, {0, 1, 0, 1}), 2);
}

TEST(OnnxWindows, HaveOneToThreeDimensions) {
  OnnxModel model;
  model.input("line", {1, 2, 9}).input("volume", {1, 2, 9, 8, 7}).input("w1", {4, 2, 3}).input("w3", {4, 2, 3, 2, 3});
  model.node("Conv", {"line", "w1"}, {"a"}, {{"pads", Ints{1, 2}}, {"strides", Ints{2}}});
  model.node("Conv", {"volume", "w3"}, {"b"}, {{"pads", Ints{1, 0, 2, 0, 1, 1}}, {"dilations", Ints{2, 1, 1}}});
  model.output("a").output("b");
  EXPECT_THAT(steps_of(model),
              ElementsAre(line("conv_forward x=f32:1x2x9 w=f32:4x2x3 pad=1,2 stride=2"),
                          line("conv_forward x=f32:1x2x9x8x7 w=f32:4x2x3x2x3 pad=1,0,2,0,1,1 dilation=2,1,1")));
}

}  // namespace
}  // namespace kiln::test::onnx_windows_test
