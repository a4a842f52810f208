// Bad input gets a clear error and its exit code.
#include <gmock/gmock.h>

#include "program.h"

namespace kiln::cli {
namespace {

using testing::HasSubstr;

struct Bad {
  std::vector<std::string> arguments;
  int exit_code;
  std::string message;
};

class BadUsage : public ProgramTest, public testing::WithParamInterface<Bad> {};

TEST_P(BadUsage, IsExplained) {
  const Outcome outcome = kiln(GetParam().arguments);
  EXPECT_EQ(outcome.exit_code, GetParam().exit_code) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().message));
  EXPECT_THAT(outcome.err, Not(HasSubstr("internal error")));
  EXPECT_EQ(outcome.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    Program, BadUsage,
    testing::Values(Bad{{}, 2, "subcommand is required"}, Bad{{"tune"}, 2, "input is required"},
                    Bad{{"dance"}, 2, "there is no command 'dance'"}, Bad{{"tune", "missing.onnx"}, 4, "missing.onnx"},
                    Bad{{"tune", "softmax_forward x=f32:1x"}, 2, "column 17"},
                    Bad{{"tune", "softmax_forward x=f32:1x10", "--search", "magic"}, 2, "--search"},
                    Bad{{"tune", "softmax_forward x=f32:1x10", "--budget", "-3"}, 2, "--budget"},
                    Bad{{"tune", "softmax_forward x=f32:1x10", "--shard", "3/2"}, 2, "3/2"},
                    Bad{{"tune", "softmax_forward x=f32:1x10", "--device", "toaster"}, 2, "--device toaster"},
                    Bad{{"run", "softmax_forward x=f32:1x10", "--device", "9"}, 2, "9"},
                    Bad{{"run", "conv_forward x=f32:1x3x2x2 w=f32:4x3x3x3"}, 2, "the filter does not fit"},
                    Bad{{"verify", "softmax_forward x=f32:1x10", "--sample", "0"}, 2, "--sample 0"},
                    Bad{{"emit", "softmax_forward x=f32:1x10", "--arch", "sm_70"}, 1, "7.0 is not supported"},
                    Bad{{"emit", "softmax_forward x=f32:1x10", "--algorithm", "none"}, 2, "no algorithm none"},
                    Bad{{"emit", "softmax_forward x=f32:1x10", "--algorithm", "conv_simple"}, 2, "serves conv_forward"},
                    Bad{{"tune", "softmax_forward x=f32:1x10", "--budget", "nan"}, 2, "--budget"},
                    Bad{{"tune", "softmax_forward x=f32:1x10", "--seed", "-1"}, 2, "--seed"},
                    Bad{{"tune", "softmax_forward x=f32:1x10", "--db", "/"}, 4, "--db / cannot be written"},
                    Bad{{"tune", "/"}, 4, "/ is a folder"},
                    Bad{{"emit", "softmax_forward x=f32:1x10", "--config", "A=1"}, 2, "--config needs --algorithm"},
                    Bad{{"cache", "import", "missing.pack"}, 4, "missing.pack"}));

TEST_F(ProgramTest, AMisspeltVariableIsNamed) {
  environment_["KILN_DRIVR"] = "cuda";
  const Outcome outcome = kiln({"devices"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("KILN_DRIVR"));
}

TEST_F(ProgramTest, ADriverThatIsNotThereIsNamed) {
  environment_["KILN_DRIVER"] = "/nonexistent/libcuda.so";
  const Outcome outcome = kiln({"run", "softmax_forward x=f32:1x10"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/libcuda.so"));
}

TEST_F(ProgramTest, TuningWithoutAWorkerIsRefusedWithAHint) {
  environment_["KILN_WORKER"] = "/nonexistent/kiln";
  const Outcome outcome = kiln({"tune", "softmax_forward x=f32:1x10"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/kiln"));
}

TEST_F(ProgramTest, HelpShowsExamplesAndExitCodes) {
  const Outcome outcome = kiln({"--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("Examples:"));
  EXPECT_THAT(outcome.out, HasSubstr("Exit codes:"));
  EXPECT_THAT(kiln({"--version"}).out, testing::StartsWith("kiln "));
}

}  // namespace
}  // namespace kiln::cli
