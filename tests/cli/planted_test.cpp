// Commands that check must be seen to fail: a template with a planted bug, through the whole program.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "program.h"

namespace kiln::cli::planted_test {
namespace {

using testing::HasSubstr;

const char* const softmax = "softmax_forward x=f32:3x100";

class PlantedBug : public ProgramTest {
 protected:
  // Makes the program use the built-in template `name` with the first `from` replaced by `to`.
  void plant(const std::string& name, const std::string& from, const std::string& to) {
    std::ifstream stream(std::string(KILN_SOURCE_DIR) + "/templates/" + name);
    std::string text((std::istreambuf_iterator<char>(stream)), {});
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << name << " does not hold " << from;
    write_template(name, text.replace(at, from.size(), to));
  }

  void write_template(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path("templates/" + name)).parent_path());
    write("templates/" + name, text);
    environment_["KILN_TEMPLATE_PATH"] = path("templates");
  }

  // Every softmax algorithm but the trusted one is off by a thousandth.
  void plant_wrong_result() {
    plant("lib/softmax.cuh", "return quick_exp(element - maximum) * term;",
          "return quick_exp(element - maximum) * term * 1.001f;");
  }
  // Plants a crash in softmax_warp.
  void plant_crash() {
    write_template(
        "softmax/softmax_warp.cu",
        "#include \"lib/user_code.cuh\"\n"
        "extern \"C\" __global__ void softmax_warp(const TX* x, TY* y, float alpha, float beta, UserArguments user,\n"
        "                                        long long n) {\n"
        "  y[1ll << 40] = x[0];\n"
        "}\n");
  }
};

TEST_F(PlantedBug, VerifyNamesEveryVariantThatIsWrong) {
  plant_wrong_result();
  const Outcome outcome = kiln({"verify", softmax});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("ok    softmax_simple"));
  EXPECT_THAT(outcome.out, HasSubstr("WRONG softmax_warp"));
  EXPECT_THAT(outcome.out, HasSubstr("wrong_result"));
  EXPECT_THAT(outcome.out, HasSubstr("1 variants of 1 requests agree with the reference, 3 do not"));
}

TEST_F(PlantedBug, VerifyReportsAVariantThatCrashesAndGoesOn) {
  plant_crash();
  const Outcome outcome = kiln({"verify", softmax});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("FAILED softmax_warp"));
  EXPECT_THAT(outcome.out, HasSubstr("crashed"));
  EXPECT_THAT(outcome.out, HasSubstr("ok    softmax_simple"));
  EXPECT_THAT(outcome.out, HasSubstr("ok    softmax_online"));
  EXPECT_THAT(outcome.out, HasSubstr("agree with the reference, 1 do not"));
}

TEST_F(PlantedBug, RunWithCheckSaysWhichElementIsWrong) {
  plant_wrong_result();
  const Outcome outcome = kiln({"run", "--check", softmax});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("WRONG: "));
  EXPECT_THAT(outcome.out, HasSubstr("the reference has"));
  EXPECT_THAT(outcome.out, HasSubstr("0 layers agree with the reference, 1 do not"));
}

// The database of the environment is used as far as it can be.
TEST_F(PlantedBug, RunWithCheckSaysWhatItFoundWhereItCannotBeStored) {
  plant_wrong_result();
  environment_["KILN_CACHE"] = write("notes.txt", "no database\n");
  const Outcome outcome = kiln({"run", "--check", softmax});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("WRONG: "));
  EXPECT_THAT(outcome.out, HasSubstr("0 layers agree with the reference, 1 do not"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("not used any more")));
  EXPECT_THAT(outcome.err, HasSubstr("kiln: the findings are not stored: "));
  const Outcome as_json = kiln({"run", "--check", "--json", softmax});
  EXPECT_EQ(nlohmann::json::parse(as_json.out)["barred"], 0) << as_json.err;
}

TEST_F(PlantedBug, TuneStoresNoWrongWinnerAndSaysWhatWasWrong) {
  plant_wrong_result();
  const std::vector<std::string> tune = {"tune", softmax, "--candidates", "2", "--quiet", "--db", path("tuning.db")};
  const Outcome table = kiln(tune);
  EXPECT_EQ(table.exit_code, 1) << table.out << table.err;
  EXPECT_THAT(table.out, HasSubstr("none: wrong: "));
  EXPECT_THAT(table.out, HasSubstr("of these: 4 wrong\n")) << "each that failed is replaced once";
  std::vector<std::string> again = tune;
  again.emplace_back("--json");
  const auto layer = nlohmann::json::parse(kiln(again).out)["layers"][0];
  EXPECT_TRUE(layer["best"].is_null());
  ASSERT_EQ(layer["trials"].size(), 8u) << "the same command tries what comes behind those that are known to fail";
  for (const auto& trial : layer["trials"]) EXPECT_EQ(trial["outcome"], "wrong_result");
}

TEST_F(PlantedBug, WhatCrashedIsTriedAgainOnceItIsLetOutOfQuarantine) {
  plant_crash();
  const std::vector<std::string> arguments = {"tune", softmax, "--candidates", "6", "--quiet", "--db", path("t.db")};
  const auto tune = [&] { return kiln(arguments).out; };
  const std::string first = tune();
  EXPECT_THAT(first, HasSubstr(" candidates tried, 0 of them known from before"));
  EXPECT_THAT(first,
              testing::ContainsRegex("crashed: cuStreamSynchronize of a stream failed: [^\n]*: no allocation is near"))
      << "the reason is in the table, not in standard error alone";
  std::vector<std::string> as_json = arguments;
  as_json.emplace_back("--json");
  int crashed = 0;
  const auto report = nlohmann::json::parse(kiln(as_json).out);
  for (const auto& trial : report["layers"][0]["trials"]) crashed += trial["outcome"] == "crashed" ? 1 : 0;
  ASSERT_GT(crashed, 0);
  const size_t tried = report["layers"][0]["trials"].size();
  EXPECT_EQ(tried, 6U + static_cast<size_t>(crashed)) << "those that crashed are replaced";
  EXPECT_THAT(tune(), HasSubstr(fmt::format("{0} candidates tried, {0} of them known from before", tried)));
  const Outcome cleared = kiln({"cache", "quarantine", "--clear", "--db", path("t.db")});
  EXPECT_THAT(cleared.out, HasSubstr("may run again: ")) << cleared.err;
  EXPECT_THAT(tune(), HasSubstr(fmt::format("{} candidates tried, 6 of them known from before", tried)))
      << "those that were let go, and no others, run again";
}

TEST_F(PlantedBug, TuneSaysWhatDidNotCompileAndServesTheLayerWithTheRest) {
  plant("softmax/softmax_block.cu", "__global__", "__global__ this is not CUDA");
  const Outcome outcome =
      kiln({"tune", "softmax_forward x=f32:3x1031", "--search", "exhaustive", "--quiet", "--db", path("tuning.db")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(" did not compile\n"));
  EXPECT_THAT(outcome.out, HasSubstr("softmax_block"));
}

}  // namespace
}  // namespace kiln::cli::planted_test
