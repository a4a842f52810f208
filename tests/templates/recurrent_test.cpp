// Every algorithm for recurrent layers against the reference.
#include <gtest/gtest.h>

#include "algorithm_cases.h"
#include "kiln/templates/catalogue.h"
#include "variant_check.h"

namespace kiln::testing_support::recurrent_test {
namespace {

const std::vector<std::string> all = {"recurrent_simple", "recurrent_block"};

class RecurrentTest : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(RecurrentTest, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

// Two blocks of a team have work from 16 units on: of 17 they have 9 and 8, in both directions.
constexpr auto lstm_with_all =
    "recurrent_forward gates=f32:3x5x2x68 r=f32:2x68x17 r_bias=f32:2x68 peepholes=f32:2x51 h0=f32:3x2x17 c0=f32:3x2x17 "
    "lengths=i32:3 y=f32:3x5x2x17 hn=f32:3x2x17 cn=f32:3x2x17 saved=f32:3x5x2x85 cell=lstm direction=both";
constexpr auto gru_before =
    "recurrent_forward gates=f32:2x4x2x51 r=f32:2x51x17 r_bias=f32:2x51 h0=f32:2x2x17 lengths=i32:2 y=f32:2x4x2x17 "
    "hn=f32:2x2x17 saved=f32:2x4x2x68 cell=gru direction=both reset=before order=iofc";

INSTANTIATE_TEST_SUITE_P(
    Shapes, RecurrentTest,
    testing::Values(
        AlgorithmCase{"Lstm", "recurrent_forward gates=f32:2x6x1x64 r=f32:1x64x16 cell=lstm", all},
        AlgorithmCase{"LstmWithAll", lstm_with_all, all},
        AlgorithmCase{
            "LstmInOnnxOrder",
            "recurrent_forward gates=f32:2x3x1x20 r=f32:1x20x5 h0=f32:2x1x5 cn=f32:2x1x5 cell=lstm order=iofc", all},
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

const std::vector<std::string> gradients = {"recurrent_backward_simple", "recurrent_backward_block"};

constexpr auto lstm_gradient_with_all =
    "recurrent_backward dy=f32:3x5x2x17 r=f32:2x68x17 saved=f32:3x5x2x85 peepholes=f32:2x51 c0=f32:3x2x17 "
    "lengths=i32:3 dhn=f32:3x2x17 dcn=f32:3x2x17 dh0=f32:3x2x17 dc0=f32:3x2x17 cell=lstm direction=both";
constexpr auto gru_gradient_before =
    "recurrent_backward dy=f32:2x4x2x17 r=f32:2x51x17 saved=f32:2x4x2x68 y=f32:2x4x2x17 h0=f32:2x2x17 lengths=i32:2 "
    "dh0=f32:2x2x17 cell=gru direction=both reset=before order=iofc";

INSTANTIATE_TEST_SUITE_P(
    Gradients, RecurrentTest,
    testing::Values(
        AlgorithmCase{"Lstm", "recurrent_backward dy=f32:2x6x1x16 r=f32:1x64x16 saved=f32:2x6x1x80 cell=lstm",
                      gradients},
        AlgorithmCase{"LstmWithAll", lstm_gradient_with_all, gradients},
        AlgorithmCase{"LstmInOnnxOrder",
                      "recurrent_backward dy=f32:2x3x1x5 r=f32:1x20x5 saved=f32:2x3x1x25 dc0=f32:2x1x5 cell=lstm "
                      "order=iofc",
                      gradients},
        AlgorithmCase{"Gru",
                      "recurrent_backward dy=f32:3x5x1x13 r=f32:1x39x13 saved=f32:3x5x1x52 y=f32:3x5x1x13 "
                      "dproducts=f32:3x5x1x39 dh0=f32:3x1x13 cell=gru",
                      gradients},
        AlgorithmCase{"GruWithResetBefore", gru_gradient_before, gradients},
        AlgorithmCase{"Tanh",
                      "recurrent_backward dy=f32:3x5x1x7 r=f32:1x7x7 saved=f32:3x5x1x7 cell=tanh direction=reverse",
                      gradients},
        AlgorithmCase{"Relu",
                      "recurrent_backward dy=f32:3x5x2x7 r=f32:2x7x7 saved=f32:3x5x2x7 lengths=i32:3 cell=relu "
                      "direction=both",
                      gradients},
        AlgorithmCase{"OneUnit", "recurrent_backward dy=f32:1x1x1x1 r=f32:1x4x1 saved=f32:1x1x1x5 cell=lstm",
                      gradients},
        AlgorithmCase{"Regions",
                      "recurrent_backward dy=f32:2x3x1x6:40,9,8,1 r=f32:1x24x6:200,8,1 saved=f32:2x3x1x30:120,40,33,1 "
                      "dgates=f32:2x3x1x24:90,30,27,1 dhn=f32:2x1x6:9,8,1 dh0=f32:2x1x6:9,8,1 cell=lstm alpha=any "
                      "beta=any",
                      gradients},
        AlgorithmCase{"RegionsInF16",
                      "recurrent_backward dy=f16:2x3x1x6:40,9,8,1 r=f16:1x24x6:200,8,1 saved=f16:2x3x1x30:120,40,33,1 "
                      "dgates=f16:2x3x1x24:90,30,27,1 cell=lstm",
                      gradients},
        AlgorithmCase{"RegionsInBF16",
                      "recurrent_backward dy=bf16:2x3x1x6:40,9,8,1 r=bf16:1x24x6:200,8,1 "
                      "saved=bf16:2x3x1x30:120,40,33,1 dgates=bf16:2x3x1x24:90,30,27,1 cell=lstm",
                      gradients},
        AlgorithmCase{"Half",
                      "recurrent_backward dy=f16:3x6x2x16 r=f16:2x64x16 saved=f16:3x6x2x80 c0=f32:3x2x16 "
                      "dcn=f16:3x2x16 dh0=f16:3x2x16 cell=lstm direction=both",
                      gradients},
        AlgorithmCase{"BF16",
                      "recurrent_backward dy=bf16:2x5x1x12 r=bf16:1x36x12 saved=bf16:2x5x1x48 y=bf16:2x5x1x12 cell=gru",
                      gradients},
        AlgorithmCase{"ManyUnits", "recurrent_backward dy=f32:2x2x1x150 r=f32:1x600x150 saved=f32:2x2x1x750 cell=lstm",
                      gradients},
        AlgorithmCase{"EmptyBatch", "recurrent_backward dy=f32:0x3x1x2 r=f32:1x8x2 saved=f32:0x3x1x10 cell=lstm",
                      gradients},
        AlgorithmCase{"DynamicBatch",
                      "recurrent_backward dy=f32:8x3x2x6 r=f32:2x24x6 saved=f32:8x3x2x30 lengths=i32:8 dc0=f32:8x2x6 "
                      "cell=lstm direction=both n=?",
                      gradients}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    RecurrentConfigs, PairwiseMatch,
    testing::Values(cover("recurrent_simple", lstm_with_all), cover("recurrent_simple", gru_before),
                    cover("recurrent_backward_simple", lstm_gradient_with_all),
                    cover("recurrent_backward_simple", gru_gradient_before),
                    cover("recurrent_backward_block", lstm_gradient_with_all),
                    cover("recurrent_backward_block", gru_gradient_before),
                    cover("recurrent_backward_block",
                          "recurrent_backward dy=f16:5x3x1x40 r=f16:1x160x40 saved=f16:5x3x1x200 dh0=f16:5x1x40 "
                          "cell=lstm"),
                    cover("recurrent_backward_block",
                          "recurrent_backward dy=f32:3x2x1x130 r=f32:1x130x130 saved=f32:3x2x1x130 cell=tanh"),
                    cover("recurrent_block", lstm_with_all), cover("recurrent_block", gru_before),
                    cover("recurrent_block",
                          "recurrent_forward gates=f16:5x3x1x160 r=f16:1x160x40 hn=f16:5x1x40 cell=lstm"),
                    cover("recurrent_block", "recurrent_forward gates=f32:3x2x1x130 r=f32:1x130x130 cell=tanh")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    RecurrentWithWideOffsets, WideIndexMatch,
    testing::Values(
        wide(all, "recurrent_forward gates=f32:4x3x1x24 r=f32:1x24x6 h0=f32:4x1x6 hn=f32:4x1x6 cell=lstm n=?"),
        wide(gradients,
             "recurrent_backward dy=f32:4x3x1x6 r=f32:1x24x6 saved=f32:4x3x1x30 dh0=f32:4x1x6 cell=lstm n=?")),
    cover_name);

// Blocks of a team run at once: a team that the device has no room for is not chosen, whatever it would gain.
TEST(RecurrentTeams, FitTheDeviceThatTheyAreChosenFor) {
  const Request request =
      Request::parse("recurrent_forward gates=f32:1x9x2x1024 r=f32:2x1024x256 cell=lstm direction=both");
  std::vector<int64_t> teams;
  for (const int sms : {1, 6, 40, 108}) {
    const DeviceFigures figures{sms, 1.4e9, 5e11, int64_t{4} << 20};
    const Choice choice = built_in_catalogue().heuristic(request, Target{Arch::of(8, 0), 13, 0}, figures);
    EXPECT_EQ(choice.algorithm, "recurrent_block");
    teams.push_back(choice.config.find("TEAM").value_or(0));
    EXPECT_TRUE(teams.back() == 1 || 2 * teams.back() <= sms) << teams.back() << " of " << sms;
  }
  EXPECT_EQ(teams.front(), 1);
  EXPECT_GT(teams.back(), 8);
}

// The memory of a block leaves room for one on each of 132 multiprocessors: four teams, which have five times 8 images.
TEST(RecurrentTeams, TakeFurtherImagesWhenTheyAreDone) {
  const std::string config = "IMAGES=8,KEEP=0,LANES=4,TEAM=32,THREADS=128,UNITS=1";
  for (const auto& [algorithm, line] :
       {std::pair("recurrent_block",
                  "recurrent_forward gates=f32:33x1x1x768 r=f32:1x768x768 hn=f32:33x1x768 cell=tanh"),
        std::pair("recurrent_backward_block",
                  "recurrent_backward dy=f32:33x1x1x768 r=f32:1x768x768 saved=f32:33x1x1x768 dh0=f32:33x1x768 "
                  "cell=tanh")}) {
    EXPECT_TRUE(matches_reference(built_in_catalogue(), Request::parse(line), {algorithm, Config::parse(config)},
                                  checking::CheckOptions{}));  // one fill: this takes seconds
  }
}

}  // namespace
}  // namespace kiln::testing_support::recurrent_test
