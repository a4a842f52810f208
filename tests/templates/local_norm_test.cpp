// Every algorithm of local normalisations against the reference, on shapes that are awkward in one way each.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::local_norm_test {
namespace {

using Names = std::vector<std::string>;

// By where the axis of the window stands: there may be several, it is the innermost, it is not, or some operands
// differ.
Names names(const std::string& operation, std::initializer_list<const char*> kinds) {
  Names all;
  for (const char* kind : kinds) all.push_back("local_norm_" + operation + "_" + kind);
  return all;
}

const Names forward_simple = names("forward", {"simple"});
const Names forward_tiled = names("forward", {"simple", "tile"});
const Names forward_inner = names("forward", {"simple", "segments", "tile"});
const Names forward = names("forward", {"simple", "columns", "tile"});
const Names forward_all = names("forward", {"simple", "columns", "segments", "tile"});
const Names backward_simple = names("backward", {"simple"});
const Names backward_tiled = names("backward", {"simple", "tile"});
const Names backward_inner = names("backward", {"simple", "segments", "tile"});
const Names backward = names("backward", {"simple", "columns", "tile"});
const Names backward_all = names("backward", {"simple", "columns", "segments", "tile"});

class LocalNormDefaults : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(LocalNormDefaults, MatchTheReference) {
  expect_defaults_match(GetParam());
}

// Windows along the channels.
INSTANTIATE_TEST_SUITE_P(
    Channels, LocalNormDefaults,
    testing::Values(
        AlgorithmCase{"SingleElement", "local_norm_forward x=f32:1x1", forward_inner},
        AlgorithmCase{"Primes", "local_norm_forward x=f32:3x7x5x11", forward},
        AlgorithmCase{"FewerThanTheWindow", "local_norm_forward x=f16:2x3x5x8@2 y=f32:2x3x5x8@4 size=9", forward},
        AlgorithmCase{"EvenWindow", "local_norm_forward x=f32:2x13x12 size=4 alpha=any beta=any", forward},
        AlgorithmCase{"WindowOfOne", "local_norm_forward x=bf16:4x13x12 size=1 n=?", forward},
        AlgorithmCase{"WindowOfTwo", "local_norm_forward x=f16:2x40x6x7:nhwc size=2", forward_inner},
        AlgorithmCase{"ManyChannelsLast", "local_norm_forward x=f32:2x300x3:nwc", forward_inner},
        AlgorithmCase{"Means", "local_norm_forward x=bf16:2x9x6x8:480,52,8,1 means=f32:2x9x6x8:nhwc", forward_all},
        AlgorithmCase{"AlphaZero", "local_norm_forward x=f32:2x9x8 alpha=0 beta=1", forward},
        AlgorithmCase{"DynamicBatchOfRows", "local_norm_forward x=f32:4x37 n=?", forward_inner},
        AlgorithmCase{"EmptyBatch", "local_norm_forward x=f32:0x9x4", forward_simple},
        AlgorithmCase{"NoChannels", "local_norm_forward x=f32:2x0x4", forward_simple},
        AlgorithmCase{"MixedLayoutsAndTypes", "local_norm_forward x=f16:2x8x3x4:120,14,4,1 y=f16:2x8x3x4:nhwc",
                      forward_all},
        AlgorithmCase{"ASubRegion", "local_norm_forward x=f32:3x4x5x6:300,70,12,1 y=f32:3x4x5x6:1,3,12,60", forward},
        AlgorithmCase{"Gradient", "local_norm_backward x=f32:3x7x5x11", backward},
        AlgorithmCase{"GradientFewerThanTheWindow", "local_norm_backward x=f16:2x3x5x8 size=9 n=?", backward},
        AlgorithmCase{"GradientEvenWindow", "local_norm_backward x=bf16:2x13x12 size=4 alpha=any beta=any", backward},
        AlgorithmCase{"GradientChannelsLast", "local_norm_backward x=f16:2x40x6x7:nhwc", backward_inner},
        AlgorithmCase{
            "GradientByMeans",
            "local_norm_backward x=bf16:2x9x6x8:480,52,8,1 means=f32:2x9x6x8 dmeans=f16:2x9x6x8:nhwc dmeans_beta=1",
            backward_all},
        AlgorithmCase{"GradientByNoMeans",
                      "local_norm_backward x=f32:2x9x8 dmeans=f32:2x9x8 alpha=0 beta=1 dmeans_alpha=0 dmeans_beta=any",
                      backward},
        AlgorithmCase{
            "GradientBlend",
            "local_norm_backward x=f32:2x9x3x8 dmeans=f32:2x9x3x8 alpha=any beta=any dmeans_alpha=any dmeans_beta=any",
            backward},
        AlgorithmCase{"GradientEmptyBatch", "local_norm_backward x=f32:0x9x4", backward_simple},
        AlgorithmCase{"GradientASubRegion",
                      "local_norm_backward x=f32:3x4x5x6:300,70,12,1 dy=f32:3x4x5x6:1,3,12,60 "
                      "dx=f32:3x4x5x6:400,100,16,1",
                      backward},
        AlgorithmCase{"GradientMixedLayoutsAndTypes",
                      "local_norm_backward x=f16:2x8x3x4:120,14,4,1 dy=f16:2x8x3x4:nhwc dx=bf16:2x8x3x4",
                      backward_all}),
    case_name);

// Windows over spatial dimensions.
INSTANTIATE_TEST_SUITE_P(
    Space, LocalNormDefaults,
    testing::Values(
        AlgorithmCase{"Primes", "local_norm_forward x=f32:2x3x11x13 axes=2,3", forward_tiled},
        AlgorithmCase{"EvenWindowAndMeans", "local_norm_forward x=f16:2x3x6x40 means=f16:2x3x6x40 axes=2,3 size=4",
                      forward_tiled},
        AlgorithmCase{"ChannelsLast", "local_norm_forward x=f16:2x24x6x7:nhwc means=f32:2x24x6x7:nhwc axes=2,3",
                      forward_tiled},
        AlgorithmCase{"OneDimension", "local_norm_forward x=f32:2x3x70:256,80,1 axes=2 size=7", forward_inner},
        AlgorithmCase{"ThreeDimensionsChannelsLast", "local_norm_forward x=bf16:1x8x4x5x6:ndhwc axes=2,3,4 n=?",
                      forward_tiled},
        AlgorithmCase{"LargerThanTheImage", "local_norm_forward x=f32:2x5x3x2 axes=2,3 size=9", forward_tiled},
        AlgorithmCase{"Gradient", "local_norm_backward x=f32:2x3x11x13 axes=2,3", backward_tiled},
        AlgorithmCase{"GradientEvenWindowAndMeans",
                      "local_norm_backward x=f16:2x3x6x40 means=f16:2x3x6x40 dmeans=f32:2x3x6x40 axes=2,3 size=4 "
                      "dmeans_alpha=any dmeans_beta=any",
                      backward_tiled},
        AlgorithmCase{"GradientChannelsLast", "local_norm_backward x=f16:2x24x6x7:nhwc axes=2,3 size=3 n=?",
                      backward_tiled},
        AlgorithmCase{"GradientThreeDimensions", "local_norm_backward x=f32:1x2x5x6x7 axes=2,3,4 size=3",
                      backward_tiled},
        AlgorithmCase{"GradientLargerThanTheImage", "local_norm_backward x=f32:2x5x3x2 axes=2,3 size=9",
                      backward_tiled}),
    case_name);

TEST(LocalNormOn, OtherArchitecturesMatchesTheReference) {
  for (const auto& [major, minor] : {std::pair{7, 5}, std::pair{12, 0}}) {
    const Target target = target_of(major, minor);
    expect_defaults_match({"", "local_norm_forward x=bf16:2x7x3x8", forward}, target);
  }
}

INSTANTIATE_TEST_SUITE_P(
    LocalNormConfigs, PairwiseMatch,
    testing::Values(
        // Every pair of values of the parameters.
        cover("local_norm_forward_columns", "local_norm_forward x=f32:1x21x5x7"),
        cover("local_norm_backward_columns",
              "local_norm_backward x=f16:2x17x3x8 means=f16:2x17x3x8 dmeans=f16:2x17x3x8"),
        cover("local_norm_forward_segments", "local_norm_forward x=f32:3x21x5:nwc size=4"),
        cover("local_norm_backward_segments", "local_norm_backward x=bf16:2x35x5:nwc"),
        cover("local_norm_forward_tile", "local_norm_forward x=f32:1x3x5x7 size=3 axes=2,3"),
        cover("local_norm_backward_tile", "local_norm_backward x=f32:2x3x5x7 axes=2,3"),
        cover("local_norm_forward_simple", "local_norm_forward x=f32:1x21x5x7"),
        cover("local_norm_forward_simple", "local_norm_forward x=f16:2x9x5:nwc means=f32:2x9x5:nwc size=4"),
        cover("local_norm_backward_simple", "local_norm_backward x=f32:1x21x5x7"),
        cover("local_norm_backward_simple", "local_norm_backward x=f16:2x9x5:nwc size=4 beta=1"),
        cover("local_norm_forward_columns", "local_norm_forward x=f16:2x37x6x12 means=f16:2x37x6x12"),
        cover("local_norm_backward_columns", "local_norm_backward x=f32:1x21x5x8 size=4"),
        cover("local_norm_forward_segments", "local_norm_forward x=bf16:2x48x5:nwc means=f32:2x48x5:nwc"),
        cover("local_norm_backward_segments", "local_norm_backward x=f32:3x48x5:nwc size=4 beta=1"),
        cover("local_norm_forward_tile", "local_norm_forward x=f16:2x10x5x7:nhwc axes=2,3"),
        cover("local_norm_backward_tile", "local_norm_backward x=bf16:3x14x5:nwc size=4")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(LocalNormWithWideOffsets, WideIndexMatch,
                         testing::Values(wide({"local_norm_forward_simple"}, "local_norm_forward x=f16:2x11x8"),
                                         wide({"local_norm_backward_simple"}, "local_norm_backward x=f16:2x11x8"),
                                         wide({"local_norm_forward_columns"}, "local_norm_forward x=f32:11x6 axes=0"),
                                         wide({"local_norm_backward_columns"}, "local_norm_backward x=f16:2x11x8"),
                                         wide({"local_norm_forward_segments"}, "local_norm_forward x=f16:2x8x11:nwc"),
                                         wide({"local_norm_backward_segments"}, "local_norm_backward x=f16:2x8x11:nwc"),
                                         wide({"local_norm_forward_tile"}, "local_norm_forward x=f16:2x11x8:nwc"),
                                         wide({"local_norm_backward_tile"}, "local_norm_backward x=f16:2x11x8:nwc")),
                         cover_name);

}  // namespace
}  // namespace kiln::testing_support::local_norm_test
