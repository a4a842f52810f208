// Every algorithm for recurrent layers against the reference.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support {
namespace {

const std::vector<std::string> all = {"recurrent_simple", "recurrent_block"};

class RecurrentTest : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(RecurrentTest, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

constexpr auto lstm_with_all =
    "recurrent_forward gates=f32:3x5x2x44 r=f32:2x44x11 r_bias=f32:2x44 peepholes=f32:2x33 h0=f32:3x2x11 c0=f32:3x2x11 "
    "lengths=i32:3 y=f32:3x5x2x11 hn=f32:3x2x11 cn=f32:3x2x11 cell=lstm direction=both";
constexpr auto gru_before =
    "recurrent_forward gates=f32:2x4x2x21 r=f32:2x21x7 r_bias=f32:2x21 h0=f32:2x2x7 lengths=i32:2 y=f32:2x4x2x7 "
    "hn=f32:2x2x7 cell=gru direction=both reset=before order=iofc";

INSTANTIATE_TEST_SUITE_P(
    Shapes, RecurrentTest,
    testing::Values(
        AlgorithmCase{"Lstm", "recurrent_forward gates=f32:2x6x1x64 r=f32:1x64x16 cell=lstm", all},
        AlgorithmCase{"LstmWithAll", lstm_with_all, all},
        AlgorithmCase{"LstmInOnnxOrder",
                      "recurrent_forward gates=f32:2x3x1x20 r=f32:1x20x5 h0=f32:2x1x5 cn=f32:2x1x5 cell=lstm order=iofc",
                      all},
        AlgorithmCase{"Gru", "recurrent_forward gates=f32:3x5x1x39 r=f32:1x39x13 r_bias=f32:1x39 cell=gru", all},
        AlgorithmCase{"GruWithResetBefore", gru_before, all},
        AlgorithmCase{"GruWithResetBeforeInTorchOrder",
                      "recurrent_forward gates=f32:2x4x1x21 r=f32:1x21x7 cell=gru reset=before", all},
        AlgorithmCase{"Tanh", "recurrent_forward gates=f32:3x5x1x7 r=f32:1x7x7 cell=tanh direction=reverse", all},
        AlgorithmCase{"Relu", "recurrent_forward gates=f32:3x5x2x7 r=f32:2x7x7 lengths=i32:3 cell=relu direction=both",
                      all},
        AlgorithmCase{"OneUnit", "recurrent_forward gates=f32:1x1x1x4 r=f32:1x4x1 cell=lstm", all},
        AlgorithmCase{"ReverseLengths",
                      "recurrent_forward gates=f32:5x4x1x12 r=f32:1x12x3 lengths=i32:5 hn=f32:5x1x3 cn=f32:5x1x3 "
                      "cell=lstm direction=reverse",
                      all},
        AlgorithmCase{"TimeFirst",  // as ONNX and PyTorch have it: T,N,... in memory
                      "recurrent_forward gates=f32:3x4x2x20:40,120,20,1 r=f32:2x20x5 y=f32:3x4x2x5:5,30,15,1 cell=lstm "
                      "direction=both",
                      all},
        AlgorithmCase{"Regions",
                      "recurrent_forward gates=f32:2x3x1x24:90,30,27,1 r=f32:1x24x6:200,8,1 h0=f32:2x1x6:9,8,1 "
                      "y=f32:2x3x1x6:40,9,8,1 hn=f32:2x1x6:9,8,1 cell=lstm alpha=any beta=any",
                      all},
        AlgorithmCase{"RegionsInF16",
                      "recurrent_forward gates=f16:2x3x1x24:90,30,27,1 r=f16:1x24x6:200,8,1 y=f16:2x3x1x6:40,9,8,1 "
                      "cell=lstm alpha=any beta=any",
                      all},
        AlgorithmCase{"RegionsInBF16",
                      "recurrent_forward gates=bf16:2x3x1x24:90,30,27,1 r=bf16:1x24x6:200,8,1 y=bf16:2x3x1x6:40,9,8,1 "
                      "cell=lstm alpha=any beta=any",
                      all},
        AlgorithmCase{"WeightsTransposed", "recurrent_forward gates=f32:2x3x1x24 r=f32:1x24x6:144,1,24 cell=lstm", all},
        AlgorithmCase{"Half",
                      "recurrent_forward gates=f16:3x6x2x64 r=f16:2x64x16 r_bias=f16:2x64 h0=f16:3x2x16 c0=f32:3x2x16 "
                      "hn=f16:3x2x16 cn=f16:3x2x16 cell=lstm direction=both",
                      all},
        AlgorithmCase{"BF16", "recurrent_forward gates=bf16:2x5x1x36 r=bf16:1x36x12 hn=bf16:2x1x12 cell=gru", all},
        AlgorithmCase{"MixedTypes",
                      "recurrent_forward gates=f32:2x4x1x24 r=bf16:1x24x8 y=f16:2x4x1x8 hn=bf16:2x1x8 cell=gru", all},
        AlgorithmCase{"ManyUnits", "recurrent_forward gates=f32:2x2x1x600 r=f32:1x600x150 cell=lstm", all},
        AlgorithmCase{"EmptyBatch", "recurrent_forward gates=f32:0x3x1x8 r=f32:1x8x2 cell=lstm", all},
        AlgorithmCase{"DynamicBatch",
                      "recurrent_forward gates=f32:8x3x2x24 r=f32:2x24x6 lengths=i32:8 cn=f32:8x2x6 cell=lstm "
                      "direction=both n=?",
                      all}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    RecurrentConfigs, PairwiseMatch,
    testing::Values(cover("recurrent_simple", lstm_with_all), cover("recurrent_simple", gru_before),
                    cover("recurrent_block", lstm_with_all), cover("recurrent_block", gru_before),
                    cover("recurrent_block",
                          "recurrent_forward gates=f16:5x3x1x160 r=f16:1x160x40 hn=f16:5x1x40 cell=lstm"),
                    cover("recurrent_block", "recurrent_forward gates=f32:3x2x1x130 r=f32:1x130x130 cell=tanh")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    RecurrentWithWideOffsets, WideIndexMatch,
    testing::Values(wide(all,
                         "recurrent_forward gates=f32:4x3x1x24 r=f32:1x24x6 h0=f32:4x1x6 hn=f32:4x1x6 cell=lstm n=?")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support
