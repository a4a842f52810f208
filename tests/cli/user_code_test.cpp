// User code and user templates through the program: tuned, checked, run, explained and emitted like everything else.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "program.h"

namespace kiln::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string example = std::string(KILN_SOURCE_DIR) + "/examples/user_template";

using UserCodeProgram = ProgramTest;

TEST_F(UserCodeProgram, TunesAUserTemplateToItsEnd) {
  environment_["KILN_USER_TEMPLATES"] = example;
  const Outcome tuned = kiln({"tune", example + "/requests.txt", "--db", path("t.db"), "--json", "--quiet"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const auto report = nlohmann::json::parse(tuned.out);
  bool timed = false;
  for (const auto& trial : report["layers"][0]["trials"]) {
    if (trial["algorithm"] == "conv_stem") timed = timed || trial["outcome"] == "timed";
  }
  EXPECT_TRUE(timed) << tuned.out;

  const Outcome run = kiln({"run", "--check", example + "/requests.txt", "--db", path("t.db")});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("1 layers agree"), HasSubstr("conv_stem")));
  EXPECT_THAT(kiln({"explain", example + "/requests.txt", "--db", path("t.db")}).out, HasSubstr("chosen: conv_stem"));

  // Whoever has not got the template uses another variant.
  environment_.erase("KILN_USER_TEMPLATES");
  const Outcome without = kiln({"explain", example + "/requests.txt", "--db", path("t.db")});
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.out, Not(HasSubstr("conv_stem")));
}

const char* const leaky = "expression leaky(; slope)\nleaky_relu(acc, slope)\nend expression\n";

TEST_F(UserCodeProgram, VerifiesAndEmitsASingleRequest) {
  const std::string file = write("leaky.txt", leaky), request = "softmax_forward x=f32:3x40 epilogue=user:leaky";
  const Outcome verified = kiln({"verify", "--expression", file, request});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("of 1 requests agree with the reference, 0 do not"));
  const Outcome emitted = kiln({"emit", "--expression", file, request});
  EXPECT_THAT(emitted.out, HasSubstr("#line 1 \"user code\"\nleaky_relu(acc, slope)\n"));
}

TEST_F(UserCodeProgram, ShowsMistakesInTheUsersLines) {
  const std::string file = write("bad.txt", "expression bad\nacc +\n  nothing\nend expression\n");
  const std::string request = "softmax_forward x=f32:3x40 epilogue=user:bad";
  EXPECT_THAT(kiln({"emit", "softmax_forward x=f32:3x40 epilogue=user:bad"}).err,
              HasSubstr("there is no expression 'bad'"));
  const Outcome verified = kiln({"verify", "--expression", file, request});
  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_THAT(verified.out + verified.err, HasSubstr("line 2, column 3: identifier \"nothing\" is undefined"));
  const Outcome tuned = kiln({"tune", "--expression", file, request, "--db", path("t.db"), "--quiet"});
  EXPECT_EQ(tuned.exit_code, 1);
  EXPECT_THAT(tuned.out + tuned.err, HasSubstr("line 2, column 3"));
}

TEST_F(UserCodeProgram, RefusesAFolderWithoutTemplates) {
  environment_["KILN_USER_TEMPLATES"] = path(".");
  const Outcome outcome = kiln({"emit", "softmax_forward x=f32:3x40"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("holds no user template"));
}

}  // namespace
}  // namespace kiln::cli
