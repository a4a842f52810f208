// The examples as programs.
#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "program.h"

namespace kiln::cli::examples_test {
namespace {

using testing::HasSubstr;

TEST_F(ProgramTest, TheConvolutionExampleAgreesWithItsOwnLoop) {
  const Outcome outcome = run(std::string(KILN_EXAMPLES) + "/example_conv_forward", {});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("largest error"));
  EXPECT_THAT(outcome.out, HasSubstr("\nplan: conv_"));
}

// Every ninth channel at four places, as the C example.
TEST_F(ProgramTest, TheConvolutionExampleFindsAWrongOutputWhereItLooks) {
  environment_["KILN_DRIVER"] = KILN_WATCHED_DRIVER;
  environment_["KILN_KERNEL_STORE"] = path("kernels");
  const auto exit_code = [&](int k, int p, int q) {
    environment_["SPOILED_DOWNLOAD"] = "1:" + std::to_string((k * 224 + p) * 224 + q);
    return run(std::string(KILN_EXAMPLES) + "/example_conv_forward", {}).exit_code;
  };
  for (const auto& [k, p] : {std::pair(0, 0), std::pair(9, 5), std::pair(36, 111), std::pair(63, 223)}) {
    EXPECT_EQ(exit_code(k, p, 223 - p), 1) << k << " " << p;
  }
  EXPECT_EQ(exit_code(10, 5, 218), 0) << "no sample";
}

TEST_F(ProgramTest, TheEngineExampleComputesWithItsOwnPool) {
  const Outcome outcome = run(std::string(KILN_EXAMPLES) + "/example_engine", {});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("output in the middle: 144, expected 144\n"
                                     "softmax of equal logits: 0.003125, expected 0.003125\n"
                                     "a request that makes no sense: refused\n"
                                     "the pool allocated 0 times\n"));
  EXPECT_THAT(outcome.err, HasSubstr("engine: "));
}

TEST_F(ProgramTest, TheEngineExampleFindsWrongOutputs) {
  environment_["KILN_DRIVER"] = KILN_WATCHED_DRIVER;
  for (const char* download : {"1:210", "2:0"}) {  // in the middle of the convolution's, the first of softmax
    environment_["SPOILED_DOWNLOAD"] = download;
    EXPECT_EQ(run(std::string(KILN_EXAMPLES) + "/example_engine", {}).exit_code, 1) << download;
  }
}

// All workspace of the winner is its transformed weights: once these are prepared, the pool has nothing more to give.
TEST_F(ProgramTest, TheEngineExampleTakesNoWorkspaceForPreparedWeights) {
  const std::string layer =
      "conv_forward x=f32:1x16x20x20 w=f32:16x16x3x3 y=f32:1x16x20x20 pad=1 epilogue=relu fast constant_weights";
  ASSERT_EQ(kiln({"tune", layer, "--db", path("engine.db"), "--candidates", "3", "--quiet"}).exit_code, 0);
  ASSERT_THAT(kiln({"explain", layer, "--db", path("engine.db")}).out, HasSubstr("chosen: conv_winograd_2x2_fused"));
  environment_["KILN_CACHE"] = path("engine.db");
  const Outcome outcome = run(std::string(KILN_EXAMPLES) + "/example_engine", {});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("output in the middle: 144, expected 144"));
  EXPECT_THAT(outcome.out, HasSubstr("the pool allocated 1 times"));
}

TEST_F(ProgramTest, TheShippingExampleUsesThePackBesideIt) {
  const std::string layer = "conv_forward x=f32:1x3x224x224 w=f32:64x3x3x3 pad=1 epilogue=bias+relu";
  ASSERT_EQ(kiln({"tune", layer, "--db", path("conv.db"), "--candidates", "1"}).exit_code, 0);
  ASSERT_EQ(kiln({"cache", "export", "--winners", "--db", path("conv.db"), path("conv.pack")}).exit_code, 0);
  const Outcome outcome = run(std::string(KILN_EXAMPLES) + "/example_ship_a_pack", {path("conv.pack")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("every layer uses what the pack names"));
}

TEST_F(ProgramTest, TheShippingExampleSaysWhatIsInNoPack) {
  ASSERT_EQ(kiln({"tune", "softmax_forward x=f32:3x100", "--db", path("other.db"), "--candidates", "1"}).exit_code, 0);
  ASSERT_EQ(kiln({"cache", "export", "--winners", "--db", path("other.db"), path("other.pack")}).exit_code, 0);
  const Outcome outcome = run(std::string(KILN_EXAMPLES) + "/example_ship_a_pack", {path("other.pack")});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("some layers are not in the pack"));
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{}, {"a.pack", "b.pack"}}) {
    const Outcome usage = run(std::string(KILN_EXAMPLES) + "/example_ship_a_pack", arguments);
    EXPECT_EQ(usage.exit_code, 2);
    EXPECT_THAT(usage.err, HasSubstr("usage: "));
  }
}

}  // namespace
}  // namespace kiln::cli::examples_test
