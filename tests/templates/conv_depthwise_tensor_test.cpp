// Depthwise convolution on tensor cores, and its gradients, against the reference: defaults on shapes that
// are awkward in a few ways each, pairwise covers of the configurations, 64-bit offsets; infinities; refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "algorithm_cases.h"
#include "kiln/device/memory.h"
#include "variant_check.h"

namespace kiln::testing_support::conv_depthwise_tensor_test {
namespace {

using Names = std::vector<std::string>;

const Names forward = {"conv_depthwise_tensor"};
const Names by_input = {"conv_backward_data_depthwise_tensor"};
const Names by_filter = {"conv_backward_filter_depthwise_tensor"};

class ConvDepthwiseTensor : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ConvDepthwiseTensor, MatchesTheReference) {
  expect_some_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Forward, ConvDepthwiseTensor,
    testing::Values(
        AlgorithmCase{"RowsOfSeven",
                      "conv_forward x=f16:2x12x11x19:nhwc w=f16:12x1x7x7 groups=12 pad=3 epilogue=bias+add+relu",
                      forward},
        AlgorithmCase{"OddChannels",
                      "conv_forward x=bf16:1x5x9x37:nhwc w=bf16:5x1x4x9:nhwc y=bf16:1x5x8x37 groups=5 pad=1,4 "
                      "epilogue=clip alpha=any beta=any",
                      forward},
        AlgorithmCase{"LargerThanTheImage",
                      "conv_forward x=f16:1x8x6x5:nhwc w=f16:8x1x13x15 y=f32:1x8x6x5:nhwc groups=8 pad=6,7", forward},
        AlgorithmCase{"DilatedRows",
                      "conv_forward x=f16:1x16x29x18:nhwc w=f16:16x1x5x8:nhwc groups=16 pad=4,2 dilation=3,1", forward},
        AlgorithmCase{"Mirrored",
                      "conv_forward x=bf16:2x7x13x21:nhwc w=bf16:7x1x3x8 groups=7 pad=3,1,2,5 mode=convolution",
                      forward},
        AlgorithmCase{"Regions",
                      "conv_forward x=f16:2x24x9x17:9000,1,800,32@8 w=f16:24x1x7x7:200,100,14,2@2 "
                      "y=f16:2x24x9x17:8000,1,700,28@4 groups=24 pad=3 epilogue=bias",
                      forward},
        AlgorithmCase{"AnyBatch", "conv_forward x=f16:3x8x20x33:nhwc w=f16:8x1x9x9:nhwc groups=8 pad=4 n=?", forward},
        AlgorithmCase{"OneD", "conv_forward x=f16:2x16x70:nwc w=f16:16x1x31 groups=16 pad=15 epilogue=bias", forward},
        AlgorithmCase{"Planes", "conv_forward x=bf16:1x8x4x9x12:ndhwc w=bf16:8x1x1x3x8 groups=8 pad=1,1,4 stride=2,1,1",
                      forward},
        AlgorithmCase{"LongestRows", "conv_forward x=f16:1x4x3x140:nhwc w=f16:4x1x2x128 groups=4 pad=0,3", forward}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ByInput, ConvDepthwiseTensor,
    testing::Values(
        AlgorithmCase{"RowsOfThirteen", "conv_backward_data dy=f16:2x6x17x18:nhwc w=f16:6x1x13x13 groups=6 pad=6",
                      by_input},
        AlgorithmCase{"AsymmetricPads",
                      "conv_backward_data dy=bf16:1x24x9x20:nhwc w=bf16:24x1x4x7:nhwc groups=24 pad=3,1,0,5 "
                      "mode=convolution epilogue=bias+add beta=any",
                      by_input},
        AlgorithmCase{"DilatedRowsInRegions",
                      "conv_backward_data dy=f16:2x16x9x17:9000,1,800,32@8 w=f16:16x1x3x9 "
                      "dx=f16:2x16x13x17:9000,1,600,32@16 groups=16 pad=0,4 dilation=2,1",
                      by_input},
        AlgorithmCase{"RegionsOfBF16",
                      "conv_backward_data dy=bf16:2x5x9x17:9000,1,800,32@2 w=bf16:5x1x2x7:200,100,14,2@2 "
                      "dx=bf16:2x5x10x17:9000,1,600,32@2 groups=5 pad=0,3",
                      by_input},
        AlgorithmCase{"ClassesOfAStride",
                      "conv_backward_data dy=f16:1x8x7x9:nhwc w=f16:8x1x15x15 dx=f16:1x8x14x18:nhwc groups=8 "
                      "pad=7,7,6,6 stride=2 n=?",
                      by_input}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ByFilter, ConvDepthwiseTensor,
    testing::Values(
        AlgorithmCase{"RowsOfThirteen",
                      "conv_backward_filter x=f16:2x6x17x18:nhwc dy=f16:2x6x17x18:nhwc dw=f16:6x1x13x13 groups=6 pad=6",
                      by_filter},
        AlgorithmCase{
            "OddChannels",
            "conv_backward_filter x=bf16:3x5x9x37:nhwc dy=bf16:3x5x9x36 dw=f32:5x1x5x10:nhwc groups=5 pad=2,4 "
            "alpha=any beta=any",
            by_filter},
        AlgorithmCase{"LargerThanTheImage",
                      "conv_backward_filter x=f16:1x8x6x5:nhwc dy=f16:1x8x6x5:nhwc dw=f16:8x1x13x15 groups=8 pad=6,7 "
                      "mode=convolution",
                      by_filter},
        AlgorithmCase{"DilatedRowsInRegions",
                      "conv_backward_filter x=f16:2x16x19x17:9000,1,400,20@8 dy=f16:2x16x15x17:9000,1,500,24@16 "
                      "dw=f16:16x1x3x9:200,100,20,2@4 groups=16 pad=0,4 dilation=2,1",
                      by_filter},
        AlgorithmCase{"RegionsOfBF16",
                      "conv_backward_filter x=bf16:2x5x9x17:9000,1,800,32@2 dy=bf16:2x5x9x17:9000,1,600,32@2 "
                      "dw=bf16:5x1x1x7:200,100,14,2@2 groups=5 pad=0,3",
                      by_filter},
        AlgorithmCase{"OneD",
                      "conv_backward_filter x=f16:2x16x70:nwc dy=f16:2x16x70:nwc dw=f16:16x1x31 groups=16 pad=15",
                      by_filter},
        AlgorithmCase{"AnyBatchOfPlanes",
                      "conv_backward_filter x=f16:2x8x4x9x12:ndhwc dy=f16:2x8x3x10x13:ndhwc dw=f16:8x1x1x2x8 groups=8 "
                      "pad=1,1,4 stride=2,1,1 n=?",
                      by_filter}),
    case_name);

// The bytes of a number of 16 bits.
uint16_t bits_of(DType type, float value) {
  const auto word = std::bit_cast<uint32_t>(value);
  if (type == DType::bf16) return static_cast<uint16_t>(word >> 16);
  return value == 1.0f ? 0x3C00 : value == 0.5f ? 0x3800 : std::isinf(value) ? 0x7C00 : 0x7E00;
}

// A band is zero beside its taps, and zero times infinity is no zero.
TEST(ConvDepthwiseTensor, KeepsInfinityAndNanInTheirWindows) {
  constexpr int64_t channels = 8, height = 21, width = 40, row = 9, column = 19, radius = 3;
  const TestDevice& device = TestDevice::get();
  for (const DType type : {DType::f16, DType::bf16}) {
    const std::string name{to_string(type)};
    const Request request = Request::parse("conv_forward x=" + name + ":1x8x21x40:nhwc w=" + name +
                                           ":8x1x7x7 y=f32:1x8x21x40:nhwc groups=8 pad=3");
    const BoundAlgorithm bound = built_in_catalogue().find("conv_depthwise_tensor")->on(request, device.target);
    if (const auto why = bound.refusal()) {
      ASSERT_EQ(type, DType::bf16) << *why;
      continue;
    }
    const Program program =
        built_in_catalogue().program(request, device.target, {"conv_depthwise_tensor", bound.first_legal().value()});
    const execution::Executable executable = device.load(program, device.target, {"x", "w", "y"});
    const device::Buffer w = device::upload(device.context, std::vector<uint16_t>(channels * 49, bits_of(type, 0.5f)));
    const auto run = [&](float special) {
      std::vector<uint16_t> x(channels * height * width, bits_of(type, 1.0f));
      x[(row * width + column) * channels + 2] = bits_of(type, special);
      const device::Buffer on_x = device::upload(device.context, x);
      const device::Buffer y(device.context, channels * height * width * sizeof(float));
      executable.run(nullptr, std::vector{on_x.address(), w.address(), y.address()}, {}, 1, 0);
      return device::download<float>(*device.context, y.address(), channels * height * width);
    };
    const std::vector<float> before = run(1.0f), infinite = run(std::numeric_limits<float>::infinity()),
                             nan = run(std::numeric_limits<float>::quiet_NaN());
    for (int64_t i = 0; i < channels * height * width; ++i) {
      const int64_t channel = i % channels, q = i / channels % width, p = i / channels / width;
      const bool meets = channel == 2 && std::abs(p - row) <= radius && std::abs(q - column) <= radius;
      const auto at = static_cast<size_t>(i);
      EXPECT_EQ(infinite[at], meets ? std::numeric_limits<float>::infinity() : before[at]) << name << p << "," << q;
      EXPECT_TRUE(meets ? std::isnan(nan[at]) : nan[at] == before[at]) << name << p << "," << q;
    }
  }
}

// The same of the gradient by the filter, whose bands are rows of dy. The outputs that a tile has and the image has not
// meet the infinity too.
TEST(ConvDepthwiseTensorByFilter, LeavesInfinityWhereNoOutputMeetsIt) {
  constexpr int64_t channels = 8, height = 9, width = 19, taps = 7;
  const TestDevice& device = TestDevice::get();
  const Request request =
      Request::parse("conv_backward_filter x=f16:1x8x9x19:nhwc dy=f16:1x8x3x13:nhwc dw=f32:8x1x7x7 groups=8");
  const std::string algorithm = "conv_backward_filter_depthwise_tensor";
  const BoundAlgorithm bound = built_in_catalogue().find(algorithm)->on(request, device.target);
  const Program program =
      built_in_catalogue().program(request, device.target, {algorithm, bound.first_legal().value()});
  const execution::Executable executable = device.load(program, device.target, {"x", "dy", "dw"});
  const device::Buffer dy =
      device::upload(device.context, std::vector<uint16_t>(channels * 3 * 13, bits_of(DType::f16, 0.5f)));
  const auto run = [&](int64_t row, int64_t column, float special) {
    std::vector<uint16_t> x(channels * height * width, bits_of(DType::f16, 1.0f));
    x[static_cast<size_t>((row * width + column) * channels + 3)] = bits_of(DType::f16, special);
    const device::Buffer on_x = device::upload(device.context, x);
    const device::Buffer dw(device.context, channels * taps * taps * sizeof(float));
    executable.run(nullptr, std::vector{on_x.address(), dy.address(), dw.address()}, {}, 1, 0);
    return device::download<float>(*device.context, dw.address(), channels * taps * taps);
  };
  for (const auto& [row, column] : {std::pair{1, 2}, std::pair{8, 18}}) {
    const std::vector<float> got = run(row, column, std::numeric_limits<float>::infinity());
    for (int64_t i = 0; i < channels * taps * taps; ++i) {
      const int64_t s = i % taps, r = i / taps % taps, channel = i / taps / taps;
      const bool meets = channel == 3 && row - r >= 0 && row - r < 3 && column - s >= 0 && column - s < 13;
      EXPECT_EQ(got[static_cast<size_t>(i)], meets ? std::numeric_limits<float>::infinity() : 19.5f)
          << row << "," << column << ": " << i;
    }
  }
}

TEST(ConvDepthwiseTensorRefusals, NameTheReason) {
  const auto refusal = [](const std::string& request) {
    return refusal_of("conv_depthwise_tensor", "conv_forward " + request);
  };
  EXPECT_EQ(refusal("x=f16:1x8x9x9:nhwc w=f16:8x1x7x7 groups=8 pad=3"), "none");
  EXPECT_EQ(refusal("x=f16:1x8x9x9 w=f16:8x1x7x7 groups=8"), "pixels of x stand closer together than its channels");
  EXPECT_EQ(refusal("x=f16:1x8x9x9:nhwc w=f16:16x1x7x7 groups=8"), "channels have several filters");
  EXPECT_EQ(refusal("x=f16:1x8x9x9:nhwc w=f16:8x2x7x7 groups=4"),
            "it is not depthwise: groups is not the number of channels of x");
  EXPECT_EQ(refusal("x=f32:1x8x9x9:nhwc w=f32:8x1x7x7 groups=8 tf32"), "bands are of f16 and bf16");
  EXPECT_EQ(refusal("x=f16:1x8x9x9:nhwc w=bf16:8x1x7x7 groups=8"),
            "tensor cores multiply f16 by f16, bf16 by bf16 and, with tf32, f32 by f32");
  EXPECT_EQ(refusal("x=f16:1x8x9x9:nhwc w=f16:8x1x9x5 groups=8"),
            "rows of fewer than 7 taps leave most of a band empty");
  EXPECT_EQ(refusal("x=f16:1x8x9x9:nhwc w=f16:8x1x7x7 groups=8 stride=1,2"),
            "the stride keeps neighbouring outputs apart");
  EXPECT_EQ(refusal("x=f16:1x8x29x29:nhwc w=f16:8x1x7x7 groups=8 dilation=1,2"),
            "dilation keeps the taps of a row apart");
  EXPECT_EQ(refusal("x=f16:1x8x9x9x9:ndhwc w=f16:8x1x2x7x7 groups=8"), "filters have several planes");
  EXPECT_EQ(refusal("x=f16:1x8x9x200:nhwc w=f16:8x1x1x129 groups=8"),
            "a row or a column of a filter has more than 128 taps");
}

INSTANTIATE_TEST_SUITE_P(
    ConvDepthwiseTensorConfigs, PairwiseMatch,
    testing::Values(cover("conv_depthwise_tensor",
                          "conv_forward x=f16:2x18x35x67:nhwc w=f16:18x1x7x9:nhwc groups=18 pad=3,4 epilogue=bias+add"),
                    cover("conv_depthwise_tensor",
                          "conv_forward x=bf16:1x34x18x33:2200000,1,1300,36@4 w=bf16:34x1x4x7 y=bf16:1x34x17x31 "
                          "groups=34 pad=1,2 epilogue=relu alpha=any"),
                    cover("conv_backward_filter_depthwise_tensor",
                          "conv_backward_filter x=f16:3x18x35x40:nhwc dy=f16:3x18x35x40:nhwc dw=f16:18x1x7x9:nhwc "
                          "groups=18 pad=3,4"),
                    cover("conv_backward_filter_depthwise_tensor",
                          "conv_backward_filter x=bf16:2x6x20x33:nhwc dy=bf16:2x6x17x31 dw=f32:6x1x18x7 groups=6 "
                          "pad=7,2 beta=any"),
                    cover("conv_backward_data_depthwise_tensor",
                          "conv_backward_data dy=f16:2x6x17x66:nhwc w=f16:6x1x13x7 groups=6 pad=6,3 epilogue=bias"),
                    cover("conv_backward_data_depthwise_tensor",
                          "conv_backward_data dy=bf16:1x20x33x40:nhwc w=bf16:20x1x3x11 groups=20 pad=1,2 beta=any")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    ConvDepthwiseTensorWithWideOffsets, WideIndexMatch,
    testing::Values(
        wide({"conv_depthwise_tensor"},
             "conv_forward x=f16:2x8x9x11:nhwc w=f16:8x1x3x7:nhwc groups=8 pad=1,3 n=? "
             "epilogue=bias+add alpha=any beta=any"),
        wide({"conv_backward_filter_depthwise_tensor"},
             "conv_backward_filter x=f16:2x8x9x11:nhwc dy=f16:2x8x9x11:nhwc dw=f16:8x1x3x7 groups=8 pad=1,3"),
        wide({"conv_backward_data_depthwise_tensor"},
             "conv_backward_data dy=f16:2x8x5x17:nhwc w=f16:8x1x3x8:nhwc groups=8 pad=1,3")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::conv_depthwise_tensor_test
