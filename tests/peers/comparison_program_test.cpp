// bench_vs_peers as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "peer_kernels.h"
#include "program.h"

namespace kiln::bench::comparison_program_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class ComparisonProgramTest : public cli::ProgramTest {
 protected:
  ComparisonProgramTest() {
    environment_["KILN_DRIVER"] = "emulator";
    environment_["KILN_EMULATOR_DEVICE"] = "a100";
    environment_["KILN_EMULATOR_CLOCK"] = "machine";
    environment_["KILN_CACHE"] = "off";
  }

  cli::Outcome compare(const std::string& requests, const std::string& tiles) const {
    return run(KILN_BENCH_VS_PEERS,
               {"--verbose", "--candidates", "1", "--tiles", tiles, write("requests.txt", requests)});
  }
};

bool has_no_peers(const cli::Outcome& outcome) {
  return outcome.err.find("scripts/setup") != std::string::npos || outcome.err.find("nvdisasm") != std::string::npos ||
         outcome.err.find("does not tell times by machine code") != std::string::npos;
}

TEST_F(ComparisonProgramTest, HasARowForTheBestOfEachSideAndOneForKilnWithTheTilesOfCutlass) {
  const cli::Outcome outcome = compare("gemm a=bf16:128x256 b=bf16:256x128\n", "64x128x64x3");
  if (has_no_peers(outcome)) GTEST_SKIP() << outcome.err;
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(ContainsRegex("  CUTLASS  .* right 64x128x64 32x64x64 m16n8k16 stages=3 slices=1"),
                                 ContainsRegex("  Kiln  .* right gemm_"),
                                 ContainsRegex("  at tiles .* right gemm_tensor "
                                               "BLOCK_K=64,BLOCK_M=64,BLOCK_N=128,STAGES=3,WARP_M=32,WARP_N=64,"),
                                 ContainsRegex("x of CUTLASS's speed, modelled: .*x with CUTLASS's tiles tried too"),
                                 HasSubstr("1 rows: geometric mean"), Not(HasSubstr("WRONG"))));
  // All variants: CUTLASS's, a candidate, and the one with the tile.
  EXPECT_THAT(outcome.out, ContainsRegex("    .* us .* 64x128x64 .*\n    .* us .* gemm_.*\n    .* us .* gemm_tensor"));
}

TEST_F(ComparisonProgramTest, LeavesOutTheRowOfATileThatKilnDoesNotHave) {
  const cli::Outcome outcome = compare("gemm a=bf16:128x256 b=bf16:256x128\n", "64x64x64x5");
  if (has_no_peers(outcome)) GTEST_SKIP() << outcome.err;
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("stages=5"), Not(HasSubstr("  at tiles "))));
}

// A tile for the whole product is too large for the smaller one that is run.
TEST_F(ComparisonProgramTest, ChecksALargeTileByASmallerRequest) {
  const cli::Outcome outcome = compare("gemm a=bf16:8192x1024 b=bf16:1024x4096\n", "256x128x64x3");
  if (has_no_peers(outcome)) GTEST_SKIP() << outcome.err;
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(ContainsRegex("  at tiles .* right gemm_tensor BLOCK_K=64,BLOCK_M=256,BLOCK_N=128,"),
                                 Not(HasSubstr("WRONG"))));
}

TEST_F(ComparisonProgramTest, HasARowForTheBestOfTritonForAttention) {
  const cli::Outcome outcome = run(KILN_BENCH_VS_PEERS, {"--verbose", "--candidates", "1", "--triton",
                                                         KILN_TRITON_ATTENTION, KILN_ATTENTION_REQUESTS});
  if (has_no_peers(outcome) || outcome.out.find("no kernel of Triton") != std::string::npos) {
    GTEST_SKIP() << outcome.err << why_no_triton();
  }
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(
      outcome.out,
      AllOf(ContainsRegex("  Triton .* right attention_0_.*\n  Kiln .* right attention_.*\n.*x of Triton's speed"),
            ContainsRegex("  Triton .* right attention_1_"), HasSubstr("2 rows: geometric mean"),
            ContainsRegex("    .* us .* attention_0_64x64_stages=3_warps=4"), Not(HasSubstr("WRONG"))));
}

}  // namespace
}  // namespace kiln::bench::comparison_program_test
