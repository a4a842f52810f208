// The default configuration of Winograd's algorithms against the reference, on shapes that are awkward in one way each;
// and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithm_cases.h"
#include "kiln/templates/catalogue.h"
#include "variant_check.h"

namespace kiln::testing_support::winograd_test {
namespace {

const std::vector<std::string> forward = {"conv_winograd_2x2", "conv_winograd_4x4", "conv_winograd_2x2_fused",
                                          "conv_winograd_4x4_fused"};
const std::vector<std::string> backward = {"conv_backward_data_winograd_2x2", "conv_backward_data_winograd_4x4",
                                           "conv_backward_data_winograd_2x2_fused",
                                           "conv_backward_data_winograd_4x4_fused"};

class WinogradDefaults : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(WinogradDefaults, MatchTheReference) {
  expect_some_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Forward, WinogradDefaults,
    testing::Values(
        AlgorithmCase{"Primes", "conv_forward x=f32:2x5x11x13 w=f32:7x5x3x3 pad=1 fast", forward},
        AlgorithmCase{"PrimesWithConstantWeights",
                      "conv_forward x=f32:2x5x11x13 w=f32:7x5x3x3 pad=1 fast constant_weights", forward},
        AlgorithmCase{"PrimesChannelsLast",
                      "conv_forward x=f32:2x5x11x13:nhwc w=f32:7x5x3x3:nhwc pad=1 fast deterministic", forward},
        AlgorithmCase{"OneElement", "conv_forward x=f32:1x1x3x3 w=f32:1x1x3x3 fast", forward},
        AlgorithmCase{"OneRow", "conv_forward x=f32:2x3x1x9:nhwc w=f32:4x3x3x3:nhwc pad=1 fast", forward},
        AlgorithmCase{"NoPadding", "conv_forward x=f32:1x9x7x10 w=f32:5x9x3x3 fast epilogue=clip", forward},
        AlgorithmCase{"PaddingBeyondTheFilter",
                      "conv_forward x=f32:1x4x3x5 w=f32:6x4x3x3 pad=4,0,3,5 epilogue=bias+relu fast", forward},
        AlgorithmCase{"Groups",
                      "conv_forward x=f32:2x12x6x7 w=f32:9x4x3x3 groups=3 mode=convolution pad=1 fast epilogue=bias",
                      forward},
        AlgorithmCase{"AllStages",
                      "conv_forward x=f32:2x8x6x8 w=f32:12x8x3x3 pad=1 epilogue=bias+add+relu+clip alpha=any beta=any "
                      "fast",
                      forward},
        AlgorithmCase{
            "StagesInAnotherOrder",
            "conv_forward x=f32:2x8x5x6:nhwc w=f32:20x8x3x3:nhwc pad=1 epilogue=relu+add+bias alpha=any beta=1 "
            "fast",
            forward},
        AlgorithmCase{"SubRegions",
                      "conv_forward x=f32:2x8x6x8:1600,160,16,1 w=f32:6x8x3x3:200,20,5,1 y=f32:2x6x6x8:2000,160,20,2 "
                      "pad=1 fast",
                      forward},
        AlgorithmCase{"FromChannelsFirstToLast",
                      "conv_forward x=f32:2x6x7x9 w=f32:20x6x3x3:nhwc y=f32:2x20x7x9:nhwc pad=1 residual=f32:2x20x7x9 "
                      "epilogue=add fast",
                      forward},
        AlgorithmCase{"MixedTypes",
                      "conv_forward x=f32:1x6x6x8 w=f16:12x6x3x3 y=bf16:1x12x6x8 bias=f16:12 pad=1 epilogue=bias fast",
                      forward},
        AlgorithmCase{"EmptyBatch", "conv_forward x=f32:0x8x6x6 w=f32:8x8x3x3 pad=1 fast", forward},
        AlgorithmCase{"PlanesOfAVolume",
                      "conv_forward x=f32:1x4x3x6x5 w=f32:6x4x1x3x3 pad=0,1,1 epilogue=bias+relu fast", forward},
        AlgorithmCase{"ManyChannels", "conv_forward x=f32:1x67x5x6 w=f32:35x67x3x3 pad=1 fast tf32", forward}),
    [](const auto& one) { return one.param.name; });

INSTANTIATE_TEST_SUITE_P(
    BackwardData, WinogradDefaults,
    testing::Values(AlgorithmCase{"Primes", "conv_backward_data dy=f32:2x7x11x13 w=f32:7x5x3x3 pad=1 fast", backward},
                    AlgorithmCase{"PrimesWithConstantWeights",
                                  "conv_backward_data dy=f32:2x7x11x13 w=f32:7x5x3x3 pad=1 fast constant_weights",
                                  backward},
                    AlgorithmCase{"ChannelsLast",
                                  "conv_backward_data dy=f32:1x20x6x7:nhwc w=f32:20x12x3x3:nhwc pad=1 fast", backward},
                    AlgorithmCase{"OneElement", "conv_backward_data dy=f32:1x1x1x1 w=f32:1x1x3x3 fast", backward},
                    AlgorithmCase{"AsymmetricPads",
                                  "conv_backward_data dy=f32:1x6x5x8 w=f32:6x9x3x3 pad=0,2,1,1 alpha=any beta=any fast "
                                  "epilogue=bias+add+relu residual=f16:1x9x6x7:nhwc",
                                  backward},
                    AlgorithmCase{"PaddingBeyondTheFilter",
                                  "conv_backward_data dy=f32:1x3x10x11 w=f32:3x4x3x3 pad=3,4,5,3 fast", backward},
                    AlgorithmCase{"MirroredGroups",
                                  "conv_backward_data dy=f32:1x8x5x6:nhwc w=f32:8x6x3x3 dx=f32:1x12x5x6 groups=2 pad=1 "
                                  "mode=convolution beta=1 fast",
                                  backward},
                    AlgorithmCase{"SubRegions",
                                  "conv_backward_data dy=f32:2x4x6x8:1600,160,16,1 w=f32:4x6x3x3:200,20,5,1 "
                                  "dx=f32:2x6x6x8:2000,160,20,2 pad=1 fast",
                                  backward}),
    [](const auto& one) { return one.param.name; });

TEST(WinogradRefusals, SayWhatIsInTheWay) {
  const Target& target = TestDevice::get().target;
  const auto why = [&](const std::string& line) {
    const Request request = Request::parse(line);
    const bool is_forward = request.operation == "conv_forward";
    const Algorithm& steps = *built_in_catalogue().find(is_forward ? forward[0] : backward[0]);
    const Algorithm& fused = *built_in_catalogue().find(is_forward ? forward[3] : backward[3]);
    const std::optional<std::string> refusal = fused.on(request, target).refusal();
    EXPECT_EQ(steps.on(request, target).refusal(), refusal);
    return refusal.value_or("");
  };
  using testing::HasSubstr;
  EXPECT_THAT(why("conv_forward x=f32:1x4x8x8 w=f32:4x4x3x3"), HasSubstr("`fast` permits them"));
  EXPECT_THAT(why("conv_backward_data dy=f32:1x4x8x8 w=f32:4x4x3x3 tf32"), HasSubstr("`fast` permits them"));
  EXPECT_THAT(why("conv_forward x=f16:1x4x8x8 w=f16:4x4x3x3 fast"), HasSubstr("x is f16"));
  EXPECT_THAT(why("conv_backward_data dy=bf16:1x4x8x8 w=bf16:4x4x3x3 fast"), HasSubstr("dy is bf16"));
  EXPECT_THAT(why("conv_forward x=f32:1x4x8 w=f32:4x4x3 fast"), HasSubstr("not 3x3"));
  EXPECT_THAT(why("conv_forward x=f32:1x4x8x8 w=f32:4x4x3x5 fast"), HasSubstr("not 3x3"));
  EXPECT_THAT(why("conv_forward x=f32:1x4x8x8x8 w=f32:4x4x3x3x3 fast"), HasSubstr("more than a plane"));
  EXPECT_THAT(why("conv_forward x=f32:1x4x8x8 w=f32:4x4x3x3 stride=2,1 fast"), HasSubstr("stride"));
  EXPECT_THAT(why("conv_backward_data dy=f32:1x4x8x8 w=f32:4x4x3x3 dilation=2 fast"), HasSubstr("dilation"));
  EXPECT_THAT(why("conv_forward x=f32:1x4x8x8 w=f32:4x4x3x3 alpha=0 fast"), HasSubstr("alpha is zero"));
  EXPECT_EQ(why("conv_forward x=f32:1x4x8x8 w=f16:4x4x3x3 fast"), "");
}

}  // namespace
}  // namespace kiln::testing_support::winograd_test
