// Output of the program about modelled times: what bounds launches, timelines, cards, smaller batches and predictions.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kiln/timing/accuracy.h"
#include "kiln/timing/card.h"
#include "kiln/timing/time_model.h"
#include "kiln/timing/user_card.h"
#include "program.h"

namespace kiln::cli::clock_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const char* const softmax = "softmax_forward x=f32:3x100";

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
                           "of the sectors asked of it", "blocks of an SM", "guessed        nothing"}) {
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

// A bundle for the emulated device holds PTX, which its clock for machine code has nothing to read in.
TEST_F(ProgramTest, RunSaysByWhichClockLaunchesWereTimed) {
  ASSERT_EQ(kiln({"bundle", softmax, "--untuned", "--arch", "90", "--emulated", "--db", "off", "-o", path("a.kiln")})
                .exit_code,
            0);
  environment_["KILN_EMULATOR_CLOCK"] = "machine";
  environment_["VIRTUAL_ENV"] = std::string(KILN_SOURCE_DIR) + "/build/python";
  const std::vector<std::string> run = {"run", softmax, "--bundle", path("a.kiln"), "--db", "off"};
  const Outcome text = kiln(run);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("\nmodelled from PTX alone, uncalibrated: "));
  EXPECT_THAT(text.out, Not(HasSubstr("modelled by machine-code clock")));
  std::vector<std::string> as_json = run;
  as_json.emplace_back("--json");
  const auto modelled_by = nlohmann::json::parse(kiln(as_json).out)["modelled_by"];
  EXPECT_EQ(modelled_by["clock"], "PTX");
  EXPECT_EQ(modelled_by["by_ptx_alone"]["launches"], modelled_by["by_ptx_alone"]["of"]);
  const Outcome compiled = kiln({"run", softmax, "--db", "off"});
  EXPECT_THAT(compiled.out, HasSubstr("\nmodelled by machine-code clock"));
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

// The tests' clock sees PTX alone, which tells no time of tensor instructions.
TEST_F(ProgramTest, RunChecksWhatTheClockKnowsNoTimeOf) {
  const std::string line = "conv_forward x=f16:2x64x9x9:nhwc w=f16:64x64x3x3:nhwc pad=1";
  const Outcome table = kiln({"run", "--check", line, "--db", "off"});
  EXPECT_EQ(table.exit_code, 0) << table.out << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("tensor"), HasSubstr("not timed: tensor instructions need nvdisasm"),
                               HasSubstr("1 layers agree")));
  const nlohmann::json run = nlohmann::json::parse(kiln({"run", "--json", line, "--db", "off"}).out)["layers"][0];
  EXPECT_TRUE(run["seconds"].is_null());
  EXPECT_EQ(run["error"], "");
}

TEST_F(ProgramTest, CalibrateSaysWhatTheDeviceReachesAndPredictionsAreDrawnFromIt) {
  const std::string pool = "pool_forward x=f32:8x64x56x56 mode=max window=2 stride=2";
  EXPECT_THAT(kiln({"explain", pool, "--db", "off"}).out, HasSubstr("predictions: assumed"));
  const Outcome calibrated = kiln({"devices", "--calibrate", "--db", path("a.db"), "--json"});
  ASSERT_EQ(calibrated.exit_code, 0) << calibrated.err;
  EXPECT_THAT(calibrated.out, HasSubstr("\"time\": \"modelled\""));
  EXPECT_THAT(calibrated.out, HasSubstr("\"fma_flops_per_second\": "));
  const std::string figures = nlohmann::json::parse(calibrated.out)["calibration"];
  EXPECT_THAT(figures, HasSubstr("copy_efficiency="));
  EXPECT_THAT(kiln({"explain", pool, "--db", path("a.db")}).out,
              HasSubstr("predictions: calibrated on this device: " + figures));
  EXPECT_THAT(kiln({"explain", pool, "--db", "off"}).out, HasSubstr("predictions: assumed"));
  const Outcome tuned = kiln({"tune", softmax, "--db", path("a.db"), "--candidates", "1", "--json"});
  EXPECT_EQ(nlohmann::json::parse(tuned.out)["calibration"], figures);
  EXPECT_EQ(kiln({"devices", "--calibrate", "--db", "/proc/no/a.db"}).exit_code, 4) << "it was not kept";
}

// Figures that machine code models are found as they are modelled: the card that is written tells the times of the one
// in use.
TEST_F(ProgramTest, CalibrateWritesTheCardThatTimesAreToldBy) {
  environment_["KILN_EMULATOR_CLOCK"] = "machine";
  environment_["KILN_EMULATOR_DEVICE"] = "a100";
  environment_["VIRTUAL_ENV"] = std::string(KILN_SOURCE_DIR) + "/build/python";
  const auto seconds = [&] {
    const Outcome run = kiln({"run", "activation_forward x=f32:64x256x56x56 mode=relu", "--json"});
    return nlohmann::json::parse(run.out)["layers"][0]["seconds"].get<double>();
  };
  const double built_in = seconds();
  const timing::UserCard altered = timing::user_card("a100",
                                                     {{"sms", 54, "-"},
                                                      {"dram_gbs", 700, "-"},
                                                      {"l2_bytes_per_clock", 20, "-"},
                                                      {"launch_ns", 7000, "-"},
                                                      {"tensor_float", 128, "-"},
                                                      {"tensor_tf32", 100, "-"}},
                                                     "-");
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
  EXPECT_NEAR(card.launch_ns, 7200, 100) << "the empty kernel takes 0.2 us itself";
  EXPECT_NEAR(card.tensor_half, 256, 5);
  EXPECT_NEAR(card.tensor_float, 128, 3);
  EXPECT_NEAR(card.tensor_tf32, 100, 2);
  EXPECT_NEAR(card.tensor_byte, 512, 10);
  EXPECT_EQ(card.tensor_fp8, 256U) << "8.0 has none to measure";
  EXPECT_EQ(card.dram_latency, timing::find_card("a100").dram_latency);
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["card"]["base"], "a100");
  const double clocks = 54 * 1.41e9;
  EXPECT_NEAR(json["shared_bytes_per_second"].get<double>(), 128 * clocks, 0.03 * 128 * clocks);
  EXPECT_NEAR(json["fma_flops_per_second"].get<double>(), 2 * 64 * clocks, 0.03 * 2 * 64 * clocks);
  ASSERT_EQ(json["tensor"].size(), 4U);
  EXPECT_EQ(json["tensor"][0]["factors"], "f16");
  EXPECT_EQ(json["tensor"][0]["sums"], "f32");
  EXPECT_NEAR(json["tensor"][0]["operations_per_second"].get<double>(), 2 * 512 * clocks, 0.05 * 2 * 512 * clocks);
  EXPECT_THAT(std::string(json["calibration"]), HasSubstr(" f16_efficiency=0.4"));

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

TEST_F(ProgramTest, TuneSaysWhatItCheckedWithASmallerBatch) {
  environment_["KILN_EMULATOR_CLOCK"] = "machine";
  environment_["VIRTUAL_ENV"] = std::string(KILN_SOURCE_DIR) + "/build/python";
  const std::string large = "softmax_forward x=f32:100000x100", small = "softmax_forward x=f32:10x100";
  std::ofstream(path("requests.txt")) << large << "\n" << small << "\n";
  const Outcome text = kiln({"tune", "--db", path("a.db"), "--candidates", "2", path("requests.txt")});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out,
              HasSubstr("\ntoo large to be run here: 1 of 2 layers; its results were checked with a smaller one\n"));
  const Outcome again = kiln({"tune", "--db", path("a.db"), "--candidates", "2", "--json", path("requests.txt")});
  for (const auto& layer : nlohmann::json::parse(again.out)["layers"]) {
    const auto request = layer["request"].get<std::string>(), checked = layer["checked"].get<std::string>();
    const bool is_large = request.find(":100000x100") != std::string::npos;
    EXPECT_EQ(checked == request, !is_large) << checked;
    EXPECT_THAT(checked, HasSubstr(is_large ? "x=f32:24992x100" : "x=f32:10x100")) << "20 MB, and a multiple of 16";
    EXPECT_EQ(layer["best"]["check"].get<std::string>().find("with x of 24992x100") != std::string::npos, is_large);
  }
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
  const std::string accuracy = timing::accuracy_text(timing::judgements_of(name));
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

}  // namespace
}  // namespace kiln::cli::clock_test
