// The commands beside tune, and the examples.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "kiln/cache/database.h"
#include "kiln/generator/operation.h"
#include "kiln/timing/card.h"
#include "kiln/timing/time_model.h"
#include "kiln/timing/user_card.h"
#include "program.h"

namespace kiln::cli {
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
  EXPECT_THAT(kiln({"describe", "dropout"}).out, AllOf(HasSubstr("seed"), HasSubstr("the key of the random sequence")));
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

TEST_F(ProgramTest, RunSaysWhatBoundsEachKernel) {
  const std::string layer = "softmax_forward x=f32:512x200";
  const Outcome table = kiln({"run", layer});
  EXPECT_THAT(table.out, AllOf(HasSubstr("bound by"), HasSubstr("latency"))) << table.err;
  const nlohmann::json run = nlohmann::json::parse(kiln({"run", "--check", "--json", layer}).out);
  const nlohmann::json launches = run.at("layers").at(0).at("launches");
  ASSERT_EQ(launches.size(), 1) << "those of one run, and none of the check";
  EXPECT_THAT(launches[0].at("kernel").get<std::string>(), testing::StartsWith("softmax"));
  EXPECT_EQ(launches[0].at("modelled_time").at("clock"), "ptx");
  EXPECT_NEAR(launches[0].at("modelled_time").at("seconds").get<double>(),
              run.at("layers").at(0).at("seconds").get<double>(), 1e-9);
}

TEST_F(ProgramTest, ExplainSaysWhatBoundsTheLaunchesOfWhatIsChosen) {
  environment_["KILN_EMULATOR_CLOCK"] = "machine";
  environment_["VIRTUAL_ENV"] = std::string(KILN_SOURCE_DIR) + "/build/python";
  const std::string layer = "conv_forward x=f32:1x64x14x14 w=f32:64x64x3x3 pad=1";
  const Outcome text = kiln({"explain", "--brief", "--launches", layer});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.err, HasSubstr("timing conv 1x64x14x14 -> 64, 3x3, pad 1"));
  for (const char* part : {"modelled by machine code", "bound by ", "busy ", "warps wait for ", "limited by ",
                           "of the sectors that are loaded", "blocks of an SM", "guessed        nothing"}) {
    EXPECT_THAT(text.out, HasSubstr(part));
  }
  const auto json = nlohmann::json::parse(kiln({"explain", "--launches", "--json", layer}).out)["layers"][0];
  const auto run = nlohmann::json::parse(kiln({"run", "--json", layer}).out)["layers"][0];
  EXPECT_EQ(json.at("launches"), run.at("launches")) << "one clock";
  double waits = 0;
  for (const auto& [cause, share] : json["launches"][0]["modelled_time"]["waits"].items()) waits += share.get<double>();
  EXPECT_NEAR(waits, 1, 1e-9);
  EXPECT_FALSE(nlohmann::json::parse(kiln({"explain", "--json", layer}).out)["layers"][0].contains("launches"));
}

TEST_F(ProgramTest, AReportSaysWhatBoundsTheWinner) {
  const auto tune = [&] {
    const Outcome tuned =
        kiln({"tune", softmax, "--db", path("a.db"), "--candidates", "1", "--report", path("a.html")});
    EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
    return read("a.html");
  };
  EXPECT_THAT(tune(), Not(HasSubstr("Bound by "))) << "by PTX layers would have to be run for it";
  environment_["KILN_EMULATOR_CLOCK"] = "machine";
  environment_["VIRTUAL_ENV"] = std::string(KILN_SOURCE_DIR) + "/build/python";
  const std::string page = tune();
  const auto launch = nlohmann::json::parse(
      kiln({"explain", softmax, "--db", path("a.db"), "--launches", "--json"}).out)["layers"][0]["launches"][0];
  EXPECT_THAT(page, HasSubstr("<summary>Bound by " + launch["modelled_time"]["bound"].get<std::string>()));
  EXPECT_THAT(page, AllOf(HasSubstr("modelled by machine code"), HasSubstr("  warps wait for ")));
}

TEST_F(ProgramTest, ExplainWritesATimelineOfOneSm) {
  environment_["KILN_EMULATOR_CLOCK"] = "machine";
  environment_["VIRTUAL_ENV"] = std::string(KILN_SOURCE_DIR) + "/build/python";
  const std::string layer = "conv_forward x=f32:1x64x14x14 w=f32:64x64x3x3 pad=1";
  const Outcome first = kiln({"explain", "--brief", "--timeline", path("a.json"), layer});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr(" instructions of conv_"));
  const std::string text = read("a.json");
  const auto trace = nlohmann::json::parse(text);
  EXPECT_THAT(trace["otherData"]["request"].get<std::string>(), testing::StartsWith("conv_forward x=f32:1x64x14x14"));
  uint64_t issued = 0;
  for (const auto& event : trace["traceEvents"]) {
    issued += event["pid"] == 1 && event["ph"] == "X" && event["tid"] >= 101 && event["tid"] <= 104 ? 1 : 0;
  }
  EXPECT_THAT(first.err, HasSubstr(std::to_string(issued) + " instructions of "));
  ASSERT_EQ(kiln({"explain", "--brief", "--timeline", path("b.json"), layer}).exit_code, 0);
  EXPECT_TRUE(read("b.json") == text) << "the same in every process";
}

TEST_F(ProgramTest, ExplainSaysWhyThereIsNoTimeline) {
  const Outcome by_ptx = kiln({"explain", "--timeline", path("a.json"), softmax});
  EXPECT_EQ(by_ptx.exit_code, 1);
  EXPECT_THAT(by_ptx.err, AllOf(HasSubstr("no timeline: "), HasSubstr("nvdisasm")));
  EXPECT_FALSE(std::filesystem::exists(path("a.json")));
  EXPECT_EQ(kiln({"explain", "--timeline", path("none/a.json"), softmax}).exit_code, 4);
  const std::string two = write("two.txt", std::string(softmax) + "\nsoftmax_forward x=f32:4x7\n");
  const Outcome of_two = kiln({"explain", "--timeline", path("a.json"), two});
  EXPECT_EQ(of_two.exit_code, 2);
  EXPECT_THAT(of_two.err, HasSubstr("there are 2 layers"));
}

TEST_F(ProgramTest, ExplainSaysWhyLaunchesAreNotTimed) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer ends a process that asks for more memory than there is";
#endif
  const std::string huge = "conv_forward x=f32:1x1x1x1 w=f32:1x1x1x1 pad=2000000";
  const Outcome outcome = kiln({"explain", "--brief", "--launches", huge});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("launches are not timed: "), HasSubstr("memory")));
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
}

TEST_F(ProgramTest, DevicesListsTheEmulatedDeviceAndTheCompiler) {
  const Outcome outcome = kiln({"devices"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("emulator:0"));
  EXPECT_THAT(outcome.out, HasSubstr("NVRTC"));
}

TEST_F(ProgramTest, CalibrateSaysWhatTheDeviceReachesAndPredictionsAreDrawnFromIt) {
  const std::string pool = "pool_forward x=f32:8x64x56x56 mode=max window=2 stride=2";
  EXPECT_THAT(kiln({"explain", pool, "--db", path("a.db")}).out, HasSubstr("predictions: assumed"));
  const Outcome calibrated = kiln({"devices", "--calibrate", "--db", path("a.db"), "--json"});
  ASSERT_EQ(calibrated.exit_code, 0) << calibrated.err;
  EXPECT_THAT(calibrated.out, HasSubstr("\"time\": \"modelled\""));
  EXPECT_THAT(calibrated.out, HasSubstr("\"fma_flops_per_second\": "));
  const std::string figures = nlohmann::json::parse(calibrated.out)["calibration"];
  EXPECT_THAT(figures, HasSubstr("copy_efficiency="));
  EXPECT_THAT(kiln({"explain", pool, "--db", path("a.db")}).out,
              HasSubstr("predictions: calibrated on this device: " + figures));
  EXPECT_THAT(kiln({"explain", pool, "--db", path("b.db")}).out, HasSubstr("predictions: assumed"));
  const Outcome tuned = kiln({"tune", softmax, "--db", path("a.db"), "--candidates", "1", "--json"});
  EXPECT_EQ(nlohmann::json::parse(tuned.out)["calibration"], figures);
  EXPECT_EQ(kiln({"devices", "--calibrate", "--db", "/proc/no/a.db"}).exit_code, 4) << "it was not kept";
}

// What machine code models is found as it is modelled: the card that is written tells the times of the one in use.
TEST_F(ProgramTest, CalibrateWritesTheCardThatTimesAreToldBy) {
  environment_["KILN_EMULATOR_CLOCK"] = "machine";
  environment_["KILN_EMULATOR_DEVICE"] = "a100";
  environment_["VIRTUAL_ENV"] = std::string(KILN_SOURCE_DIR) + "/build/python";
  const auto seconds = [&] {
    const Outcome run = kiln({"run", "activation_forward x=f32:64x256x56x56 mode=relu", "--json"});
    return nlohmann::json::parse(run.out)["layers"][0]["seconds"].get<double>();
  };
  const double built_in = seconds();
  const timing::UserCard altered = timing::user_card(
      "a100", {{"sms", 54, "-"}, {"dram_gbs", 700, "-"}, {"l2_bytes_per_clock", 20, "-"}, {"launch_us", 7, "-"}}, "-");
  environment_["KILN_EMULATOR_CARD"] = write("altered.card", altered.text);
  const double slow = seconds();
  EXPECT_GT(slow, 1.8 * built_in);

  const Outcome outcome =
      kiln({"devices", "--calibrate", "--card", path("written.card"), "--db", path("a.db"), "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const timing::Card card = timing::read_card(path("written.card"));
  EXPECT_EQ(card.sms, 54U);
  EXPECT_NEAR(card.dram_gbs, 700, 0.02 * 700);
  EXPECT_NEAR(card.l2_bytes_per_clock, 20, 1);
  EXPECT_EQ(card.launch_us, 7U);
  EXPECT_EQ(card.dram_latency, timing::find_card("a100").dram_latency);
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["card"]["base"], "a100");
  const double clocks = 54 * 1.41e9;
  EXPECT_NEAR(json["shared_bytes_per_second"].get<double>(), 128 * clocks, 0.03 * 128 * clocks);
  EXPECT_NEAR(json["fma_flops_per_second"].get<double>(), 2 * 64 * clocks, 0.03 * 2 * 64 * clocks);

  environment_["KILN_EMULATOR_CARD"] = path("written.card");
  EXPECT_NEAR(seconds(), slow, 0.03 * slow);
}

TEST_F(ProgramTest, CalibrateWritesNoCardWhereThereIsNone) {
  const auto refused = [&](const std::vector<std::string>& arguments, int exit_code, const char* message) {
    const Outcome outcome = kiln(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_THAT(outcome.out, Not(HasSubstr("launch"))) << "nothing was measured";
  };
  const std::string card = path("a.card"), folder = std::filesystem::path(card).parent_path();
  refused({"devices", "--card", card}, 2, "--card requires --calibrate");
  refused({"devices", "--calibrate", "--card", card}, 2, "come from PTX alone");
  environment_["KILN_EMULATOR_CLOCK"] = "machine";
  environment_["VIRTUAL_ENV"] = std::string(KILN_SOURCE_DIR) + "/build/python";
  refused({"devices", "--calibrate", "--card", folder}, 4, "it is a folder");
  refused({"devices", "--calibrate", "--card", path("none/a.card")}, 4, "a.card");
  EXPECT_FALSE(std::filesystem::exists(card));
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

  environment_["KILN_NVRTC"] = path("there-is-no-nvrtc");
  environment_["KILN_BUNDLE_PATH"] = path("a.kiln");
  const Outcome run = kiln({"run", "--check", softmax, "--db", path("empty.db")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("bundle " + path("a.kiln")));
  EXPECT_THAT(run.out, HasSubstr("1 layers agree"));
  const Outcome missing = kiln({"run", "softmax_forward x=f32:3x101", "--db", path("empty.db")});
  EXPECT_EQ(missing.exit_code, 1) << "a layer that fails is not the end of the others";
  EXPECT_THAT(missing.out, HasSubstr("softmax_forward x=f32:3x101:nc"));
}

TEST_F(ProgramTest, ABundleNamesTheRequestsThatNothingIsStoredFor) {
  const Outcome outcome = kiln({"bundle", softmax, "--arch", "80,sm_90", "-o", path("a.kiln")});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("softmax_forward x=f32:3x100:nc y=f32:3x100:nc"));
  EXPECT_THAT(outcome.err, HasSubstr("for sm_80: nothing is stored"));
  EXPECT_THAT(outcome.err, HasSubstr("for sm_90: nothing is stored"));
  EXPECT_FALSE(std::filesystem::exists(path("a.kiln")));
}

TEST_F(ProgramTest, TuneSaysWhatItCheckedWithASmallerBatch) {
  environment_["KILN_EMULATOR_CLOCK"] = "machine";
  environment_["VIRTUAL_ENV"] = std::string(KILN_SOURCE_DIR) + "/build/python";
  const std::string large = "softmax_forward x=f32:100000x100", small = "softmax_forward x=f32:10x100";
  std::ofstream(path("requests.txt")) << large << "\n" << small << "\n";
  const Outcome text = kiln({"tune", "--db", path("a.db"), "--candidates", "2", path("requests.txt")});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out,
              HasSubstr("\n1 of 2 layers are too large to be run here: results were checked with smaller batches\n"));
  const Outcome again = kiln({"tune", "--db", path("a.db"), "--candidates", "2", "--json", path("requests.txt")});
  for (const auto& layer : nlohmann::json::parse(again.out)["layers"]) {
    const auto request = layer["request"].get<std::string>(), checked = layer["checked"].get<std::string>();
    const bool is_large = request.find(":100000x100") != std::string::npos;
    EXPECT_EQ(checked == request, !is_large) << checked;
    EXPECT_THAT(checked, HasSubstr(is_large ? "x=f32:24992x100" : "x=f32:10x100")) << "20 MB, and a multiple of 16";
    EXPECT_EQ(layer["best"]["check"].get<std::string>().find("with a batch of 24992") != std::string::npos, is_large);
  }
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

TEST_F(ProgramTest, WhatMachineCodePredictedIsMarkedInAPackAndCalledSoWhereItIsUsed) {
  ASSERT_EQ(kiln({"tune", softmax, "--candidates", "3", "--db", path("ptx.db")}).exit_code, 0);
  ASSERT_EQ(kiln({"cache", "export", "--db", path("ptx.db"), path("ptx.pack")}).exit_code, 0);
  std::string text = read("ptx.pack");
  EXPECT_THAT(text, AllOf(testing::StartsWith("kiln-pack\t1\t"), Not(HasSubstr("\npredicted\t"))));
  const std::string clock = "machine-code clock " + std::to_string(timing::model_version);
  const std::string name = "Kiln emulated NVIDIA H200", other = name + " (" + clock + ")";
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + other.size())) {
    text.replace(at, name.size(), other);
  }
  write("machine.pack", text);
  ASSERT_EQ(kiln({"cache", "import", "--db", path("machine.db"), path("machine.pack")}).exit_code, 0);
  ASSERT_EQ(kiln({"cache", "export", "--winners", "--db", path("machine.db"), path("marked.pack")}).exit_code, 0);
  const std::string accuracy = "not judged by measured times on this card";
  EXPECT_THAT(read("marked.pack"), AllOf(testing::StartsWith("kiln-pack\t2\t"),
                                         HasSubstr("\npredicted\t" + clock + "\t" + accuracy + "\nrequest\t")));
  EXPECT_THAT(kiln({"cache", "stats", path("marked.pack")}).out, HasSubstr("the pack says of that clock: " + accuracy));
  EXPECT_THAT(kiln({"cache", "list", "--db", path("machine.db")}).out,
              HasSubstr("modelled by " + clock + ": " + accuracy));

  const std::string source = "predicted by " + clock + ", from pack " + path("marked.pack");
  const std::string note = "predicted by " + clock + ": " + accuracy;
  EXPECT_THAT(kiln({"explain", softmax, "--db", "off", "--pack", path("marked.pack")}).out,
              AllOf(HasSubstr("modelled from PTX alone, uncalibrated\n"), HasSubstr(source), HasSubstr(note)));
  const auto run =
      nlohmann::json::parse(kiln({"run", softmax, "--db", "off", "--pack", path("marked.pack"), "--json"}).out);
  EXPECT_EQ(run["layers"][0]["choice"], source);
  EXPECT_EQ(run["predicted_by"], nlohmann::json::array({note}));
  EXPECT_EQ(run["modelled_by"]["clock"], "PTX");
  const auto tuned = nlohmann::json::parse(
      kiln({"run", softmax, "--db", path("ptx.db"), "--pack", path("marked.pack"), "--json"}).out);
  EXPECT_EQ(tuned["layers"][0]["choice"], "modelled on this device") << "its own times come first";
  EXPECT_TRUE(tuned["predicted_by"].empty());
}

TEST_F(ProgramTest, TheConvolutionExampleAgreesWithItsOwnLoop) {
  const Outcome outcome = run(std::string(KILN_EXAMPLES) + "/example_conv_forward", {});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("largest error"));
}

TEST_F(ProgramTest, TheEngineExampleComputesWithItsOwnPool) {
  const Outcome outcome = run(std::string(KILN_EXAMPLES) + "/example_engine", {});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("output in the middle: 144, expected 144"));
}

TEST_F(ProgramTest, TheShippingExampleUsesThePackBesideIt) {
  const std::string layer = "conv_forward x=f32:1x3x224x224 w=f32:64x3x3x3 pad=1 epilogue=bias+relu";
  ASSERT_EQ(kiln({"tune", layer, "--db", path("conv.db"), "--candidates", "1"}).exit_code, 0);
  ASSERT_EQ(kiln({"cache", "export", "--winners", "--db", path("conv.db"), path("conv.pack")}).exit_code, 0);
  const Outcome outcome = run(std::string(KILN_EXAMPLES) + "/example_ship_a_pack", {path("conv.pack")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("every layer uses what the pack names"));
}

}  // namespace
}  // namespace kiln::cli
