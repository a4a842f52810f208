// The commands beside tune.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "kiln/cache/database.h"
#include "kiln/cache/pack.h"
#include "kiln/generator/operation.h"
#include "program.h"

namespace kiln::cli::commands_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const char* const softmax = "softmax_forward x=f32:3x100";

TEST_F(ProgramTest, EmitPrintsOneSelfContainedSource) {
  const Outcome outcome = kiln({"emit", "conv_forward x=f16:1x8x9x9 w=f16:4x8x3x3 pad=1", "--arch", "sm_80"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("// conv_forward x=f16:1x8x9x9"));
  EXPECT_THAT(outcome.out, HasSubstr("__global__"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("#include")));
}

TEST_F(ProgramTest, EmitSaysInJsonHowKernelsAreLaunched) {
  const Outcome outcome = kiln({"emit", "gemm a=f32:64x32 b=f32:32x64", "--algorithm", "gemm_splitk", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const nlohmann::json emitted = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(emitted["launches"].size(), 2) << outcome.out;
  for (const nlohmann::json& launch : emitted["launches"]) {
    const std::string source = emitted["sources"][launch["source"].get<size_t>()];
    EXPECT_THAT(source, HasSubstr(launch["kernel"].get<std::string>()));
    EXPECT_EQ(launch["grid"].size(), 3);
    EXPECT_EQ(launch["block"].size(), 3);
  }
  EXPECT_GT(emitted["launches"][0]["dynamic_shared_bytes"], 0);
}

TEST_F(ProgramTest, DescribeListsTheOperations) {
  const Outcome outcome = kiln({"describe"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const Operation* one : operations()) {
    EXPECT_THAT(outcome.out, AllOf(HasSubstr(std::string(one->name())), HasSubstr(std::string(one->summary()))));
  }
}

TEST_F(ProgramTest, DescribeSaysWhatRequestsOfAnOperationMayHave) {
  const std::string norm = kiln({"describe", "norm_backward"}).out;
  EXPECT_THAT(norm, AllOf(HasSubstr("inv_deviation"), HasSubstr("dresidual_alpha"), HasSubstr("standard, rms"),
                          HasSubstr("hard_sigmoid"), HasSubstr("a prologue on dy"), Not(HasSubstr("tf32"))));
  EXPECT_THAT(norm, HasSubstr("example: kiln explain 'norm_backward "));
  const std::string gemm = kiln({"describe", "gemm"}).out;
  EXPECT_THAT(gemm, AllOf(HasSubstr("bias, add, relu, clip"), HasSubstr("tf32"), HasSubstr("it calls n;"),
                          Not(HasSubstr("attribute"))));
  EXPECT_THAT(kiln({"describe", "tensor_set"}).out, HasSubstr("no prologue"));
  EXPECT_THAT(kiln({"describe", "dropout"}).out,
              AllOf(HasSubstr("seed"), HasSubstr("integer: the key of the random sequence")));
}

TEST_F(ProgramTest, DescribePrintsJsonWithARequestOfEachOperation) {
  const nlohmann::json all = nlohmann::json::parse(kiln({"describe", "--json"}).out)["operations"];
  ASSERT_EQ(all.size(), operations().size());
  for (const nlohmann::json& one : all) {
    EXPECT_EQ(Request::parse(std::string(one["example"])).operation, one["operation"]);
  }
  const nlohmann::json pool = nlohmann::json::parse(kiln({"describe", "pool_forward", "--json"}).out)["operations"][0];
  EXPECT_EQ(pool["operands"][2]["name"], "indices");
  EXPECT_EQ(pool["operands"][2]["dtypes"], nlohmann::json::array({"i32"}));
  EXPECT_EQ(pool["operands"][0]["left_out"], nullptr);
  EXPECT_EQ(pool["operands"][1]["optional"], false) << "y is inferred, and every call has it";
  EXPECT_EQ(pool["operands"][2]["optional"], true);
  EXPECT_EQ(pool["attributes"][0]["default"], "max");
  EXPECT_EQ(pool["attributes"][1]["default"], nullptr) << "the window has to be given";
  EXPECT_EQ(pool["prologue"], "x");
  EXPECT_EQ(pool["channel"], "c");
}

TEST_F(ProgramTest, ExplainNamesTheChoiceTheEstimatesAndTheRefusals) {
  const Outcome outcome = kiln({"explain", "conv_forward x=f32:1x8x9x9 w=f32:4x8x3x3 pad=1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("chosen: "));
  EXPECT_THAT(outcome.out, HasSubstr("best estimates"));
  EXPECT_THAT(outcome.out, HasSubstr("does not apply"));
  EXPECT_THAT(outcome.out, HasSubstr("conv_depthwise"));
}

TEST_F(ProgramTest, ExplainSaysWhatOneOrderOfSumsCosts) {
  const Outcome outcome = kiln({"explain", "gemm a=f32:1x2048 b=f32:2048x512 batch_invariant"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::ContainsRegex("batch_invariant: f32 lanes, one product after the other; "
                                                  "[0-9.]+x the time without \\(estimate\\)\n"));
}

TEST_F(ProgramTest, ExplainShowsEveryCandidateThatWasTriedAndWhyItLost) {
  ASSERT_EQ(kiln({"tune", softmax, "--db", path("a.db"), "--candidates", "3"}).exit_code, 0);
  const Outcome full = kiln({"explain", softmax, "--db", path("a.db")});
  EXPECT_EQ(full.exit_code, 0) << full.err;
  EXPECT_THAT(full.out, HasSubstr("tried on this device"));
  EXPECT_THAT(full.out, HasSubstr("wins"));
  EXPECT_THAT(full.out, testing::AnyOf(HasSubstr("% slower"), HasSubstr("a tie")));
  EXPECT_THAT(kiln({"explain", softmax, "--db", path("a.db"), "--brief"}).out, Not(HasSubstr("tried on this device")));
}

TEST_F(ProgramTest, VerifyChecksOneVariantPerAlgorithm) {
  const Outcome outcome = kiln({"verify", softmax});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("softmax_simple"));
  EXPECT_THAT(outcome.out, HasSubstr(" agree with the reference, 0 do not"));
}

TEST_F(ProgramTest, VerifyPrintsEachRowAsSoonAsItIsKnown) {
  const pid_t process = start(KILN_PROGRAM, {"verify", softmax, "--sample", "40"});
  const auto has_ended = [process] {
    siginfo_t state{};
    return waitid(P_PID, static_cast<id_t>(process), &state, WEXITED | WNOHANG | WNOWAIT) != 0 || state.si_pid != 0;
  };
  std::string before_the_end, now;
  while (before_the_end.find("  ok ") == std::string::npos) {
    now = read("out.txt");
    if (has_ended()) break;
    before_the_end = now;
  }
  const Outcome outcome = wait(process);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(before_the_end, HasSubstr("  ok "));
  EXPECT_LT(before_the_end.size(), outcome.out.size());
}

TEST_F(ProgramTest, VerifyTakesASampleOfTheVariantsOrAll) {
  const Outcome three = kiln({"verify", softmax, "--sample", "3"});
  EXPECT_EQ(three.exit_code, 0) << three.out << three.err;
  EXPECT_THAT(three.out, HasSubstr("3 variants of 1 requests agree with the reference, 0 do not"));
  const Outcome all = kiln({"verify", "activation_forward x=f32:1x16 mode=relu", "--sample", "all", "--quiet"});
  EXPECT_EQ(all.exit_code, 0) << all.out << all.err;
  EXPECT_GE(std::stoi(all.out), 5) << all.out;
}

TEST_F(ProgramTest, VerifyTakesAVariantThatExceedsTheGivenLimitForHung) {
  const Outcome outcome = kiln({"verify", "softmax_forward x=f32:512x4096", "--run-limit", "0.001"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("timed_out: the worker process exceeded the time limit of 0.001 s"));
}

TEST_F(ProgramTest, RunGoesOnAfterALayerThatDoesNotFitIntoMemory) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer ends a process that asks for more memory than there is";
#endif
  const std::string file = write("requests.txt",
                                 "conv_forward x=f32:1x1x1x1 w=f32:1x1x1x1 pad=2000000\n"
                                 "softmax_forward x=f32:3x100\n");
  const Outcome outcome = kiln({"run", "--check", file});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("FAILED: "));
  EXPECT_THAT(outcome.out, HasSubstr("memory"));
  EXPECT_THAT(outcome.out, HasSubstr("1 layers agree with the reference, 1 do not"));
}

// Large layers are compared with another kernel, for which a compiler is needed; without one, with the reference alone.
TEST_F(ProgramTest, RunChecksWhatABundleHoldsWithoutACompiler) {
  const std::string large = "softmax_forward x=f32:1024x512", bundle = path("app.kiln");
  ASSERT_EQ(kiln({"bundle", large, "--untuned", "--emulated", "--arch", "90", "-o", bundle}).exit_code, 0);
  const std::vector<std::string> run = {"run", "--check", large, "--bundle", bundle};
  EXPECT_THAT(kiln(run).out, AllOf(HasSubstr("1 layers agree"), Not(HasSubstr("ok at"))));
  environment_["KILN_NVRTC"] = path("none.so");
  const Outcome without = kiln(run);
  EXPECT_EQ(without.exit_code, 0) << without.out << without.err;
  EXPECT_THAT(without.out, AllOf(HasSubstr("1 layers agree"), HasSubstr("ok at 200 of 524288")));
  environment_["KILN_NVRTC"] = KILN_FAKE_NVRTC;
  environment_["FAKE_NVRTC_VERSION"] = "12.0";
  environment_["FAKE_NVRTC_ARCHS"] = "75";
  EXPECT_EQ(kiln(run).out, without.out) << "one that does not know the device's architecture";
}

TEST_F(ProgramTest, DevicesListsTheEmulatedDeviceAndTheCompiler) {
  const Outcome outcome = kiln({"devices"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("emulator:0"));
  EXPECT_THAT(outcome.out, HasSubstr("NVRTC"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("KILN_KEPT_PLANS")));
}

TEST_F(ProgramTest, DevicesSaysHowManyPlansAreKept) {
  environment_["KILN_KEPT_PLANS"] = "77";
  const Outcome outcome = kiln({"devices", "--verbose"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("keeps 77 plans that nobody holds, with 512 MiB"));
  EXPECT_THAT(kiln({"devices", "--json"}).out, HasSubstr("\"kept_plans\": 77"));
}

TEST_F(ProgramTest, APackCarriesTheWinnersToAnotherDatabase) {
  ASSERT_EQ(kiln({"tune", softmax, "--db", path("a.db"), "--candidates", "3"}).exit_code, 0);
  const Outcome exported = kiln({"cache", "export", "--winners", "--db", path("a.db"), path("tuned.pack")});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  const Outcome imported = kiln({"cache", "import", "--db", path("b.db"), path("tuned.pack")});
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("0 lines refused"));
  const Outcome listed = kiln({"cache", "list", "--db", path("b.db")});
  EXPECT_THAT(listed.out, HasSubstr("softmax_forward x=f32:3x100:nc"));
  const Outcome merged = kiln({"cache", "merge", "--db", path("a.db"), path("b.db")});
  EXPECT_THAT(merged.out, HasSubstr("0 records added"));
  const Outcome run = kiln({"run", softmax, "--db", path("b.db")});
  EXPECT_THAT(run.out, HasSubstr("on this device"));
}

TEST_F(ProgramTest, MergeTakesPacksAndDatabases) {
  for (const std::string name : {"a", "b"}) {
    const std::string layer = name == "a" ? softmax : "softmax_forward x=f32:2x50";
    ASSERT_EQ(kiln({"tune", layer, "--db", path(name + ".db"), "--candidates", "1"}).exit_code, 0);
    ASSERT_EQ(kiln({"cache", "export", "--db", path(name + ".db"), path(name + ".pack")}).exit_code, 0);
  }
  const Outcome merged =
      kiln({"cache", "merge", "--db", path("both.db"), path("a.pack"), path("b.db"), path("b.pack")});
  EXPECT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_THAT(merged.out, HasSubstr(path("a.pack") + ": 1 records added, 0 replaced, 0 kept as they were, 0 lines"));
  EXPECT_THAT(merged.out, HasSubstr(path("b.db") + ": 1 records added, 0 replaced, 0 kept as they were\n"));
  EXPECT_THAT(merged.out, HasSubstr(path("b.pack") + ": 0 records added, 0 replaced, 1 kept as they were"));
  const Outcome listed = kiln({"cache", "list", "--db", path("both.db")});
  EXPECT_THAT(listed.out, AllOf(HasSubstr("x=f32:3x100"), HasSubstr("x=f32:2x50")));
  write("neither.txt", "neither a pack nor a database");
  EXPECT_EQ(kiln({"cache", "merge", "--db", path("both.db"), path("neither.txt")}).exit_code, 4);
}

TEST_F(ProgramTest, APackWithAnAlteredChoiceIsRefusedWithItsLine) {
  ASSERT_EQ(kiln({"tune", softmax, "--db", path("a.db"), "--candidates", "1"}).exit_code, 0);
  ASSERT_EQ(kiln({"cache", "export", "--db", path("a.db"), path("tuned.pack")}).exit_code, 0);
  std::string text = read("tuned.pack");
  const size_t at = text.find("axis=1");
  ASSERT_NE(at, std::string::npos);
  write("altered.pack", text.replace(at, 6, "axis=7"));
  const Outcome imported = kiln({"cache", "import", "--db", path("b.db"), path("altered.pack")});
  EXPECT_EQ(imported.exit_code, 1);
  EXPECT_THAT(imported.err, HasSubstr("refused: line "));
  EXPECT_THAT(imported.err, HasSubstr("axis 7 is outside"));
  const Outcome merged = kiln({"cache", "merge", "--db", path("b.db"), path("altered.pack")});
  EXPECT_EQ(merged.exit_code, 1);
  EXPECT_EQ(merged.err, imported.err);
}

TEST_F(ProgramTest, ABundleCarriesTheWinnersToAMachineWithoutNvrtc) {
  ASSERT_EQ(kiln({"tune", softmax, "--db", path("a.db"), "--candidates", "3"}).exit_code, 0);
  const Outcome made =
      kiln({"bundle", softmax, "--arch", "90", "--emulated", "--db", path("a.db"), "-o", path("a.kiln")});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("modelled on this device"));
  EXPECT_THAT(made.out, HasSubstr("1 variants of 1 requests"));
  EXPECT_THAT(kiln({"bundle", "--list", path("a.kiln")}).out, HasSubstr("sm_90a emulated"));
  const Outcome real = kiln({"bundle", softmax, "--arch", "90", "--db", path("a.db"), "-o", path("b.kiln")});
  EXPECT_NE(real.exit_code, 0);
  EXPECT_THAT(real.err, AllOf(HasSubstr("only of the emulated one"), HasSubstr("--emulated")));

  environment_["KILN_NVRTC"] = path("there-is-no-nvrtc");
  environment_["KILN_BUNDLE_PATH"] = path("a.kiln");
  const Outcome run = kiln({"run", "--check", softmax, "--db", "off"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("bundle " + path("a.kiln")));
  EXPECT_THAT(run.out, HasSubstr("1 layers agree"));
  const Outcome missing = kiln({"run", "softmax_forward x=f32:3x101", "--db", "off"});
  EXPECT_EQ(missing.exit_code, 1) << "a layer that fails is not the end of the others";
  EXPECT_THAT(missing.out, HasSubstr("softmax_forward x=f32:3x101:nc"));
}

TEST_F(ProgramTest, ABundleOfOpenKernelsServesSizesThatNobodyNamed) {
  write("open.txt", "softmax_forward x=f32:?8x?8 *3  # rows of any length\n");
  const Outcome made = kiln({"bundle", "--open", path("open.txt"), "--arch", "90", "--emulated", "-o", path("a.kiln")});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("open kernel"), HasSubstr("of 1 requests"), HasSubstr("?8x?8")));
  EXPECT_THAT(kiln({"bundle", "--list", path("a.kiln")}).out, HasSubstr("softmax_forward x=f32:?8x?8"));

  environment_["KILN_NVRTC"] = path("there-is-no-nvrtc");
  environment_["KILN_BUNDLE_PATH"] = path("a.kiln");
  const Outcome why = kiln({"explain", "softmax_forward x=f32:5x7", "--db", "off"});
  EXPECT_THAT(why.out, HasSubstr("(open kernel)")) << why.err;
  const Outcome run = kiln({"run", "--check", "softmax_forward x=f32:5x7", "--db", "off"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("1 layers agree"));
}

TEST_F(ProgramTest, OpenKernelsAreOfLinesWithoutModelsAndUserCode) {
  write("code.txt", "expression twice (;)\n  2 * acc\nend\nsoftmax_forward x=f32:?x?\n");
  write("none.txt", "# nothing\n");
  const auto error_of = [&](const std::vector<std::string>& input) {
    std::vector<std::string> arguments = {"bundle", "--open", "--arch", "90", "-o", path("a.kiln")};
    arguments.insert(arguments.end(), input.begin(), input.end());
    const Outcome outcome = kiln(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(error_of({"net.onnx"}), HasSubstr("takes requests, not a model"));
  EXPECT_THAT(error_of({path("code.txt")}), HasSubstr("line 1: user code is refused here"));
  EXPECT_THAT(error_of({"softmax_forward x=f32:?x?", "--expression", path("code.txt")}), HasSubstr("no user code"));
  EXPECT_THAT(error_of({"softmax_forward x=f32:?x?", "--dtype", "f16"}), HasSubstr("apply to ONNX models"));
  EXPECT_THAT(error_of({path("none.txt")}), HasSubstr("holds no request"));
  EXPECT_THAT(error_of({"softmax_forward x=f32:?-1x?"}), HasSubstr("is no open extent"));
  EXPECT_THAT(error_of({"softmax_forward x=f32:?0x?"}), HasSubstr("give at least 1"));
  EXPECT_THAT(error_of({"softmax_forward x=f32:?x? *0"}), HasSubstr("'*0' is not a count"));
  EXPECT_FALSE(std::filesystem::exists(path("a.kiln")));
}

TEST_F(ProgramTest, ABundleNamesTheRequestsThatNothingIsStoredFor) {
  const Outcome outcome = kiln({"bundle", softmax, "--arch", "80,sm_90", "-o", path("a.kiln")});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("softmax_forward x=f32:3x100:nc y=f32:3x100:nc"));
  EXPECT_THAT(outcome.err, HasSubstr("for sm_80: nothing is stored"));
  EXPECT_THAT(outcome.err, HasSubstr("for sm_90: nothing is stored"));
  EXPECT_FALSE(std::filesystem::exists(path("a.kiln")));
}

TEST_F(ProgramTest, ABundleThatIsNotWrittenSumsUpWhatIsMissing) {
  std::string requests;
  for (int i = 0; i < 12; ++i) requests += "softmax_forward x=f32:3x" + std::to_string(100 + i) + "\n";
  std::ofstream(path("requests.txt")) << requests;
  const Outcome outcome = kiln({"bundle", path("requests.txt"), "--arch", "80,90", "-o", path("a.kiln")});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(outcome.err.starts_with("kiln: no bundle is written: 12 of 12 requests have no variant")) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("      and 14 more\n"));
  EXPECT_LE(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 13);
}

TEST_F(ProgramTest, ABundleSaysWhatItLacks) {
  const auto error_of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"bundle", softmax, "--untuned"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = kiln(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  EXPECT_THAT(error_of({"-o", path("a.kiln")}), HasSubstr("--arch is missing"));
  EXPECT_THAT(error_of({"--emulated", "-o", path("a.kiln")}), HasSubstr("the emulated device has an architecture too"));
  EXPECT_THAT(error_of({"--arch", "90"}), HasSubstr("-o is missing"));
}

// Had the run compiled anything that tuning has not, the store would hold it afterwards.
TEST_F(ProgramTest, RunTakesTheKernelsThatTuneCompiled) {
  environment_["KILN_KERNEL_STORE"] = path("kernels");
  ASSERT_EQ(kiln({"tune", softmax, "--db", path("a.db"), "--candidates", "2"}).exit_code, 0);
  const auto entries = [&] {
    std::set<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(path("kernels"))) names.insert(file.path().filename());
    return names;
  };
  const auto tuned = entries();
  EXPECT_GE(tuned.size(), 3U) << "two variants and the lock";
  ASSERT_EQ(kiln({"run", "--check", softmax, "--db", path("a.db")}).exit_code, 0);
  EXPECT_EQ(entries(), tuned);
}

TEST_F(ProgramTest, TuneSaysOnceThatItCannotKeepKernels) {
  write("file", "not a folder");
  environment_["KILN_KERNEL_STORE"] = path("file");
  const Outcome tuned = kiln({"tune", softmax, "--candidates", "1", "--quiet", "--db", "off"});
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
  const std::string expected = "the store of compiled kernels in " + path("file") + " cannot be written";
  const size_t first = tuned.err.find(expected);
  ASSERT_NE(first, std::string::npos) << tuned.err;
  EXPECT_EQ(tuned.err.find("the store of compiled kernels", first + 1), std::string::npos) << tuned.err;
}

TEST_F(ProgramTest, VerifyCountsWhatItCouldNotRunByItself) {
  const Outcome outcome = kiln({"verify", "tensor_set y=u8:1x1x1048576x1048576"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out,
              HasSubstr("0 variants of 1 requests agree with the reference, 0 do not; 1 could not be checked"));
}

TEST_F(ProgramTest, CacheVerifyTriesWhatIsStoredAgainAndSeesWhatNoLongerHolds) {
  ASSERT_EQ(kiln({"tune", softmax, "--db", path("a.db"), "--candidates", "2"}).exit_code, 0);
  const Outcome holds = kiln({"cache", "verify", "--db", path("a.db"), "--sample", "all"});
  EXPECT_EQ(holds.exit_code, 0) << holds.out << holds.err;
  EXPECT_THAT(holds.out, HasSubstr("2 of 2 candidates"));
  EXPECT_THAT(holds.out, HasSubstr(" 0 differ by more than 5%, 0 failed"));

  ASSERT_EQ(kiln({"cache", "export", "--db", path("a.db"), path("a.pack")}).exit_code, 0);
  std::string text = read("a.pack");
  const std::string before = "\ttimed\tmodelled\t";
  const size_t at = text.find(before);
  ASSERT_NE(at, std::string::npos);
  text.insert(at + before.size(), "1");  // another first digit: another time
  write("wrong.pack", text);
  const Outcome wrong = kiln({"cache", "verify", path("wrong.pack"), "--sample", "all"});
  EXPECT_EQ(wrong.exit_code, 1) << wrong.out;
  EXPECT_THAT(wrong.out, HasSubstr(" 1 differ by more than 5%, 0 failed"));
}

TEST_F(ProgramTest, CacheDiffReadsLikeAReview) {
  ASSERT_EQ(kiln({"tune", softmax, "--db", path("a.db"), "--candidates", "3"}).exit_code, 0);
  ASSERT_EQ(kiln({"cache", "export", "--db", path("a.db"), path("a.pack")}).exit_code, 0);
  const Outcome same = kiln({"cache", "diff", path("a.pack"), path("a.db")});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("the same: 1"));

  write("empty.pack", "kiln-pack\t1\t0\nend\n");
  const Outcome fresh = kiln({"cache", "diff", path("empty.pack"), path("a.db")});
  EXPECT_THAT(fresh.out, HasSubstr("+ device "));
  EXPECT_THAT(fresh.out, HasSubstr("+ softmax_forward x=f32:3x100:nc"));
  EXPECT_THAT(fresh.out, HasSubstr("requests added: 1, removed: 0"));

  std::string text = read("a.pack");  // every candidate under another name: another winner
  for (size_t at = 0; (at = text.find("record\tsoftmax", at)) != std::string::npos; at += 7)
    text.insert(at + 7, "old_");
  write("renamed.pack", text);
  const Outcome renamed = kiln({"cache", "diff", path("renamed.pack"), path("a.pack")});
  EXPECT_THAT(renamed.out, HasSubstr("-   old_softmax"));
  EXPECT_THAT(renamed.out, HasSubstr("+   softmax"));
  EXPECT_THAT(renamed.out, HasSubstr("winners changed: 1"));
}

/// A pack of variants of one layer, by their tiles and seconds.
std::string pack_of(const std::vector<std::pair<int, double>>& variants) {
  std::vector<cache::Record> records;
  for (const auto& [tile, seconds] : variants) {
    cache::Record record;
    record.request = Request::parse(softmax).key();
    record.device = "a device";
    record.algorithm = "softmax_block";
    record.algorithm_digest = "a";
    record.config = "TILE=" + std::to_string(tile);
    record.outcome = std::string(cache::outcome::timed);
    record.kind = cache::TimeKind::measured;
    record.seconds = seconds;
    record.driver_version = record.nvrtc_version = "13.0";
    record.kiln_version = "1";
    record.source_digest = "b";
    records.push_back(record);
  }
  return cache::print_pack(cache::make_pack({{"a device", "Device", 9, 0, 100, false}}, records), "1");
}

TEST_F(ProgramTest, CacheDiffSaysWhatBecameOfWinnersAndCandidates) {
  using Variants = std::vector<std::pair<int, double>>;
  struct Row {
    Variants before, after;
    std::vector<std::string> lines;
  };
  const Variants two = {{1, 1e-3}, {2, 2e-3}};
  const std::vector<Row> rows = {
      {two,
       {{1, 1e-3}, {2, 2e-3}, {3, 3e-3}},
       {"the winner stays; candidates: 1 added\n", "other candidates only: 1;"}},
      {two, {{1, 1e-3}}, {"the winner stays; candidates: 1 removed\n"}},
      {two, {{1, 1e-3}, {2, 3e-3}}, {"the winner stays; candidates: 1 changed\n"}},
      {two, {{1, 1e-3}, {3, 3e-3}, {4, 3e-3}}, {"the winner stays; candidates: 2 added, 1 removed\n"}},
      {two,
       {{1, 5e-4}, {2, 2e-3}},
       {"1.00 ms measured\n", "500.00 us measured  2.00x faster\n",
        "times of the same winner: 1 (1 faster, 0 slower);"}},
      {two,
       {{1, 1.25e-3}, {2, 2e-3}},
       {"1.25 ms measured  1.25x slower\n", "times of the same winner: 1 (0 faster, 1 slower);"}},
      {two,
       {{1, 1e-3}, {2, 5e-4}},
       {"-   softmax_block TILE=1 ", "+   softmax_block TILE=2 ", "2.00x faster\n",
        "winners changed: 1 (1 faster, 0 slower);"}},
      {{}, two, {"  new\n", "requests added: 1, removed: 0;"}},
      {two, {}, {"  gone\n", "requests added: 0, removed: 1;"}},
  };
  for (const Row& row : rows) {
    write("before.pack", pack_of(row.before));
    write("after.pack", pack_of(row.after));
    const Outcome outcome = kiln({"cache", "diff", "--all", path("before.pack"), path("after.pack")});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    for (const std::string& line : row.lines) EXPECT_THAT(outcome.out, HasSubstr(line));
    const bool winner_stays = row.lines[0].starts_with("the winner stays");
    const std::string shorter = kiln({"cache", "diff", path("before.pack"), path("after.pack")}).out;
    EXPECT_EQ(shorter.find("softmax_forward") == std::string::npos, winner_stays) << shorter;
  }
}

TEST_F(ProgramTest, CacheStatsCountsAndPruneTakesOut) {
  ASSERT_EQ(kiln({"tune", softmax, "--db", path("a.db"), "--candidates", "3"}).exit_code, 0);
  const Outcome stats = kiln({"cache", "stats", path("a.db")});
  EXPECT_EQ(stats.exit_code, 0) << stats.err;
  EXPECT_THAT(stats.out, HasSubstr("1 requests, 0 of them with nothing to use; 3 records, 0 of them stale"));
  EXPECT_THAT(stats.out, HasSubstr("outcomes: 3 timed"));
  EXPECT_THAT(kiln({"cache", "prune", "--stale", "--db", path("a.db")}).out, HasSubstr("gone: 0 records, 0 requests"));
  const std::vector<std::string> everything = {"cache", "prune", "--older-than", "1e-9", "--db", path("a.db")};
  std::vector<std::string> dry = everything;
  dry.emplace_back("--dry-run");
  EXPECT_THAT(kiln(dry).out, HasSubstr("would go: 3 records, 1 requests"));
  EXPECT_THAT(kiln(everything).out, HasSubstr("gone: 3 records, 1 requests"));
  EXPECT_THAT(kiln({"cache", "stats", path("a.db")}).out, HasSubstr("0 requests"));
  const Outcome nothing = kiln({"cache", "prune", "--db", path("a.db")});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("--stale"));
}

TEST_F(ProgramTest, CacheQuarantineListsAndClears) {
  cache::Database database = cache::Database::open(path("q.db"));
  database.add_quarantine({"abc1", "device a", "13000", "13.0", "hung twice", 5});
  database.add_quarantine({"abc2", "device b", "13000", "13.0", "crashed twice", 6});
  database.add_quarantine({"def", "device a", "13000", "13.0", "crashed twice", 7});
  const auto quarantine = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"cache", "quarantine", "--db", path("q.db")});
    return kiln(arguments);
  };
  const Outcome all = quarantine({});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("hung twice"));
  EXPECT_THAT(all.out, HasSubstr("in quarantine: 3"));
  EXPECT_THAT(quarantine({"abc"}).out, HasSubstr("in quarantine: 2"));
  EXPECT_THAT(quarantine({"abc", "--of-device", "device b", "--clear"}).out, HasSubstr("may run again: 1"));
  EXPECT_THAT(quarantine({}).out, HasSubstr("in quarantine: 2"));
  const Outcome unknown = quarantine({"abd", "--clear"});
  EXPECT_NE(unknown.exit_code, 0);
  EXPECT_THAT(unknown.err, HasSubstr("no source in quarantine has that digest"));
  EXPECT_THAT(quarantine({"--clear"}).out, HasSubstr("may run again: 2"));
  EXPECT_THAT(quarantine({}).out, HasSubstr("in quarantine: 0"));
}

}  // namespace
}  // namespace kiln::cli::commands_test
