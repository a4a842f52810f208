// Commands on requests with open extents: what they say of the open kernels of all sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.h"

namespace kiln::cli::open_extents_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using OpenExtentsProgram = ProgramTest;

const std::string softmax = "softmax_forward x=f32:?40x?200";

TEST_F(OpenExtentsProgram, ExplainListsTheOpenKernelsOfALineAndTheirSizes) {
  const Outcome text = kiln({"explain", softmax});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr(softmax), HasSubstr("open kernels for "), HasSubstr("_open ")));
  const Outcome json = kiln({"explain", softmax, "--json"});
  const nlohmann::json request = nlohmann::json::parse(json.out).at("requests").at(0);
  EXPECT_EQ(request.at("open_line"), softmax);
  ASSERT_FALSE(request.at("open_kernels").empty());
  for (const nlohmann::json& kernel : request.at("open_kernels")) {
    EXPECT_THAT(kernel.at("algorithm").get<std::string>(), HasSubstr("_open"));
    ASSERT_FALSE(kernel.at("sizes").empty());
    EXPECT_THAT(kernel.at("sizes").at(0).get<std::string>(), HasSubstr("softmax_forward x=f32:"));
  }
}

TEST_F(OpenExtentsProgram, VerifyChecksOpenKernelsAtSizesThatAreDrawn) {
  const std::string requests =
      write("open.txt", "# two lines\n" + softmax + "\nactivation_forward x=f16:?90x?70 mode=relu\n");
  const Outcome outcome = kiln({"verify", requests, "--sample", "2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("  ok    softmax_"), HasSubstr("  ok    activation_"), HasSubstr("_open "),
                                 HasSubstr("agree with the reference, 0 do not")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("0 variants")));
}

TEST_F(OpenExtentsProgram, EmitPrintsAnOpenKernel) {
  const Outcome most = kiln({"emit", softmax});
  EXPECT_EQ(most.exit_code, 0) << most.err;
  EXPECT_THAT(most.out, AllOf(HasSubstr("__global__"), HasSubstr("__constant__")));
  EXPECT_THAT(most.err, HasSubstr("open kernels that sizes of the line take"));
  const Outcome named = kiln({"emit", softmax, "--algorithm", "softmax_warp_open", "--json"});
  ASSERT_EQ(named.exit_code, 0) << named.err;
  EXPECT_EQ(nlohmann::json::parse(named.out).at("algorithm"), "softmax_warp_open");
  const Outcome missing = kiln({"emit", softmax, "--algorithm", "softmax_warp"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("no open kernel of the line"), HasSubstr("softmax_warp_open")));
  const Outcome stored = kiln({"emit", softmax, "--db", "any.db"});
  EXPECT_EQ(stored.exit_code, 2);
  EXPECT_THAT(stored.err, HasSubstr("leaves extents open"));
}

TEST_F(OpenExtentsProgram, OpenExtentsAreRefusedWhereSizesAreMeant) {
  const auto refusal = [&](const std::vector<std::string>& arguments) {
    const Outcome outcome = kiln(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  for (const char* const flag : {"--launches", "--why-miss"})
    EXPECT_THAT(refusal({"explain", softmax, flag}), HasSubstr(std::string(flag) + " is of a size"));
  EXPECT_THAT(refusal({"explain", softmax, "--timeline", path("a.json")}), HasSubstr("--timeline is of a size"));
  EXPECT_THAT(refusal({"run", softmax}), AllOf(HasSubstr("has no name"), HasSubstr("--sweep")));
  const std::string mixed = write("mixed.txt", softmax + "\nsoftmax_forward x=f32:2x3\n");
  EXPECT_THAT(refusal({"verify", mixed}), HasSubstr("with open extents and without: 'softmax_forward x=f32:2x3'"));
  const std::string code = write("code.txt", "expression twice\n  2 * acc\nend\nsoftmax_forward x=f32:?x?\n");
  EXPECT_THAT(refusal({"explain", code}), HasSubstr(code + ": line 1: user code is refused here"));
  EXPECT_THAT(refusal({"explain", "softmax_forward x=f32:?x? axis=7"}), HasSubstr("makes a request; '"));
  EXPECT_THAT(refusal({"verify", "softmax_forward x=f32:?x?x"}), HasSubstr("makes a request; '"));
  for (const char* const flag : {"--db", "--pack"})
    EXPECT_THAT(refusal({"explain", softmax, flag, "none"}), HasSubstr(std::string(flag) + " is of a size"));
  EXPECT_THAT(refusal({"explain", softmax, "--brief"}), HasSubstr("--brief is of a size"));
  const Outcome none = kiln({"explain", "local_conv_forward x=f32:?x4x6x6 w=f32:16x4x3x3 pad=1 grid=2"});
  EXPECT_EQ(none.exit_code, 1) << none.err;
  EXPECT_THAT(none.err, HasSubstr("has no open kernels"));
}

// A shell's <(...) is one.
TEST_F(OpenExtentsProgram, APipeIsReadOnce) {
  for (const std::string& line : {std::string("softmax_forward x=f32:3x7"), softmax}) {
    for (const std::string command : {"explain", "verify"}) {
      const std::string piped = "printf '" + line + "\\n' | '" KILN_PROGRAM "' " + command + " /dev/stdin";
      const Outcome outcome = run("/bin/sh", {"-c", piped});
      EXPECT_EQ(outcome.exit_code, 0) << piped << outcome.err;
      EXPECT_THAT(outcome.out, HasSubstr("softmax_")) << piped;
    }
  }
}

TEST_F(OpenExtentsProgram, LinesOfWhichFewSizesFitAreRemarkedOn) {
  const std::string line = "pool_backward dy=f32:2x3x?px?p x=f32:2x3x?hx?h mode=max window=3 stride=2 pad=1";
  EXPECT_THAT(kiln({"explain", line}).out, HasSubstr("extents of it depend on each other"));
  EXPECT_THAT(kiln({"verify", line, "--sample", "1", "--quiet"}).err, HasSubstr("extents of it depend on each other"));
  const nlohmann::json json = nlohmann::json::parse(kiln({"explain", line, "--json"}).out);
  EXPECT_THAT(json.at("requests").at(0).at("remark").get<std::string>(), HasSubstr("depend on each other"));
  const Outcome bundle = kiln({"bundle", "--open", line, "--arch", "80,90", "-o", path("a.kiln")});
  EXPECT_EQ(bundle.exit_code, 0) << bundle.err;
  EXPECT_THAT(bundle.err, HasSubstr("depend on each other"));
  EXPECT_EQ(bundle.err.find("depend on each other"), bundle.err.rfind("depend on each other")) << "once";
}

TEST_F(OpenExtentsProgram, NamedExtentsWithASweepAreSizes) {
  const Outcome outcome = kiln({"explain", "softmax_forward x=f32:?nx100", "--sweep", "n=3", "--db", "off", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("layers").size(), 1U);
}

TEST_F(OpenExtentsProgram, AnExtentFollowsFromOthers) {
  const std::string line =
      "pool_backward dy=f32:2x3x?(h-1)/2+1x?(h-1)/2+1 x=f32:2x3x?hx?h mode=max window=3 stride=2 pad=1";
  EXPECT_THAT(kiln({"explain", line}).out, Not(HasSubstr("depend on each other")));
  const Outcome checked = kiln({"verify", line, "--sample", "2"});
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("agree"));
  const Outcome sizes = kiln({"explain", line, "--sweep", "h=9,20001", "--db", "off", "--json"});
  ASSERT_EQ(sizes.exit_code, 0) << sizes.err;
  EXPECT_THAT(sizes.out, AllOf(HasSubstr("f32:2x3x5x5"), HasSubstr("f32:2x3x10001x10001")));
  const Outcome none = kiln({"explain", line, "--sweep", "h=0"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, AllOf(HasSubstr("with h=0: "), HasSubstr("-1 divided by 2")));
}

}  // namespace
}  // namespace kiln::cli::open_extents_test
