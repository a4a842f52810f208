// kiln tune on several devices: four emulated ones of two kinds.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/cache/database.h"
#include "program.h"

namespace kiln::cli::machine_test {
namespace {

using testing::_;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

constexpr size_t layers = 8;
const char* const requests =
    "conv_forward x=f32:1x8x14x14 w=f32:16x8x3x3 pad=1 epilogue=bias+relu *2\n"
    "conv_forward x=f32:1x8x9x9 w=f32:4x8x3x3 pad=1\n"
    "pool_forward x=f32:1x16x14x14 mode=max window=2 stride=2\n"
    "pool_forward x=f32:1x8x9x9 mode=avg window=3\n"
    "softmax_forward x=f32:3x100\n"
    "softmax_forward x=f32:5x1000\n"
    "activation_forward x=f32:4x400 mode=relu\n"
    "gemm a=f32:32x32 b=f32:32x32\n";

class MachineTest : public ProgramTest {
 protected:
  MachineTest() {
    environment_["KILN_DRIVER"] = "emulator";
    environment_["KILN_EMULATOR_DEVICE"] = "h200,h200,t4,t4";
  }

  std::vector<std::string> arguments(const std::string& devices, const std::string& database,
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {
        "tune", write("requests.txt", requests), "--device", devices, "--candidates", "2", "--progress-json"};
    if (!database.empty()) all.insert(all.end(), {"--db", path(database)});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  nlohmann::json tune(const std::string& devices, const std::string& database, int exit_code = 0) {
    const Outcome outcome = kiln(arguments(devices, database, {"--json"}));
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    err_ = outcome.err;
    return nlohmann::json::parse(outcome.out);
  }

  // Device, request, algorithm and configuration of every record.
  std::set<std::string> keys(const std::string& file) const {
    std::set<std::string> found;
    const auto database = cache::Database::open(path(file), {.mode = cache::OpenMode::read_only});
    for (const cache::DeviceEntry& device : database.devices()) {
      for (const cache::RequestSummary& request : database.requests(device.id)) {
        for (const cache::Record& record : database.records(request.request, device.id)) {
          found.insert(fmt::format("{} {} {} {}", device.id, request.request, record.algorithm, record.config));
        }
      }
    }
    return found;
  }

  // The devices that had a candidate of each layer, by kind of card and request, as the progress tells.
  std::map<std::string, std::set<std::string>> devices_of_layers() const {
    std::map<std::string, std::set<std::string>> devices;
    std::istringstream lines(err_);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("{")) continue;
      const auto progress = nlohmann::json::parse(line);
      const auto device = progress.at("device").get<std::string>();
      if (progress.at("candidates") > 0) {
        devices[(device < "2" ? "h200 " : "t4 ") + progress.at("request").get<std::string>()].insert(device);
      }
    }
    return devices;
  }

  // Makes `device` fail for good at the check after so many.
  void lose(int device, int checks) {
    environment_["KILN_WORKER"] = KILN_LOSING_WORKER;
    environment_["LOSE_DEVICE"] = std::to_string(device);
    environment_["LOSE_AFTER"] = std::to_string(checks);
    environment_["LOSE_FILE"] = path("lost");
  }
  // Sets the error that it gives when it cannot be opened any more.
  void lose_with(ErrorCode code) { environment_["LOSE_CODE"] = std::to_string(static_cast<int>(code)); }

  // The seconds to go, by the devices that told them.
  std::vector<std::pair<std::string, double>> told() const {
    std::vector<std::pair<std::string, double>> all;
    std::istringstream lines(err_);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("{")) continue;
      const auto progress = nlohmann::json::parse(line);
      const auto& seconds = progress.at("remaining_seconds");
      if (!seconds.is_null()) all.emplace_back(progress.at("device"), seconds);
    }
    return all;
  }

  std::string err_;
};

TEST_F(MachineTest, DevicesOfOneKindShareTheLayersAndEachKindTunesAll) {
  const nlohmann::json tuned = tune("all", "all.db");
  ASSERT_THAT(tuned["cards"], SizeIs(2));
  EXPECT_THAT(tuned["lost"], IsEmpty());
  EXPECT_EQ(tuned["cards"][0]["devices"], nlohmann::json::array({"0", "1"}));
  EXPECT_EQ(tuned["cards"][1]["devices"], nlohmann::json::array({"2", "3"}));
  for (const auto& card : tuned["cards"]) {
    ASSERT_THAT(card["layers"], SizeIs(layers));
    for (const auto& layer : card["layers"]) {
      EXPECT_EQ(layer["status"], "finished");
      EXPECT_FALSE(layer["best"].is_null()) << layer["request"];
    }
  }
  EXPECT_NE(tuned["cards"][0]["device"], tuned["cards"][1]["device"]);
  std::istringstream lines(err_);
  size_t tried = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto progress = nlohmann::json::parse(line);
    EXPECT_EQ(progress["all_planned"], 2 * 2 * layers) << "known from the start, whoever has taken which layers";
    EXPECT_GE(progress["all_candidates"], tried);
    tried = progress["all_candidates"];
  }
  EXPECT_EQ(tried, 2 * 2 * layers);
  const auto devices = devices_of_layers();
  EXPECT_THAT(devices, SizeIs(2 * layers));
  std::set<std::string> at_work;
  for (const auto& [layer, by] : devices) {
    EXPECT_THAT(by, SizeIs(1)) << layer << " was tuned by more than one device";
    at_work.insert(by.begin(), by.end());
  }
  EXPECT_THAT(at_work, ElementsAre("0", "1", "2", "3"));

  for (const char* one : {"0", "2"}) tune(one, "single.db");
  EXPECT_EQ(keys("all.db"), keys("single.db")) << "as two runs on one device each";
  const Outcome again = kiln(arguments("all", "all.db"));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, AllOf(HasSubstr("devices 0, 1\n"), HasSubstr("devices 2, 3\n"),
                               HasSubstr("16 candidates tried, 16 of them known from before")));
}

TEST_F(MachineTest, ALostDeviceCostsItsTrialAndTheOthersDoTheRest) {
  lose(1, 3);
  const nlohmann::json tuned = tune("all", "all.db", 3);
  ASSERT_THAT(tuned["lost"], SizeIs(1));
  EXPECT_EQ(tuned["lost"][0]["device"], "1");
  EXPECT_THAT(tuned["lost"][0]["error"].get<std::string>(), HasSubstr("there is no device 1"));
  EXPECT_THAT(err_, HasSubstr("kiln: driver error: device 1 was lost: "));
  for (const auto& card : tuned["cards"]) {
    for (const auto& layer : card["layers"]) {
      EXPECT_EQ(layer["status"], "finished") << layer["error"];
      for (const auto& trial : layer["trials"]) EXPECT_NE(trial["outcome"], "crashed") << "no variant is to blame";
    }
  }
  environment_.erase("KILN_WORKER");
  for (const char* one : {"0", "2"}) tune(one, "single.db");
  EXPECT_EQ(keys("all.db"), keys("single.db"));
}

TEST_F(MachineTest, WhatNobodyIsLeftForHasFailedAndTheNextCommandGoesOn) {
  lose(2, 3);
  const Outcome table = kiln(arguments("0,2", "all.db"));
  EXPECT_EQ(table.exit_code, 3) << table.err;
  EXPECT_THAT(table.out, HasSubstr("device 2 was lost, its results are kept: "));
  EXPECT_THAT(table.out, HasSubstr("none: device 2 was lost: "));
  const size_t kept = keys("all.db").size();
  EXPECT_GT(kept, 2 * layers) << "all of the first card, and some of the other";
  EXPECT_LT(kept, 4 * layers);

  const nlohmann::json without = tune("0,2", "all.db", 3);  // it cannot even be opened
  ASSERT_THAT(without["cards"], SizeIs(1));
  EXPECT_EQ(without["lost"][0]["device"], "2");

  std::filesystem::remove(path("lost"));
  environment_.erase("LOSE_AFTER");
  const nlohmann::json again = tune("0,2", "all.db");
  EXPECT_THAT(again["lost"], IsEmpty());
  EXPECT_EQ(keys("all.db").size(), 4 * layers);
}

TEST_F(MachineTest, ADeviceThatDoesNotOpenIsLostUnlessItIsNotAtFault) {
  lose(1, 0);
  write("lost", "");
  lose_with(ErrorCode::driver_error);
  const nlohmann::json without = tune("0,1", "all.db", 3);
  EXPECT_EQ(without["lost"][0]["device"], "1");
  EXPECT_THAT(without["cards"][0]["layers"], SizeIs(layers));
  EXPECT_THAT(err_, HasSubstr("kiln: driver error: device 1 was lost: there is no device 1"));

  lose_with(ErrorCode::io_error);
  const Outcome failed = kiln(arguments("0,1", "none.db"));
  EXPECT_EQ(failed.exit_code, 4) << failed.out;
  EXPECT_THAT(failed.err, AllOf(HasSubstr("there is no device 1"), Not(HasSubstr("was lost"))));
  EXPECT_THAT(keys("none.db"), IsEmpty());
}

TEST_F(MachineTest, WhereNoDeviceOpensTheFirstSaysWhy) {
  lose(0, 0);
  environment_.erase("LOSE_DEVICE");
  write("lost", "");
  const Outcome gone = kiln(arguments("1,3", "none.db"));
  EXPECT_EQ(gone.exit_code, 2) << gone.out;
  EXPECT_THAT(gone.err, AllOf(HasSubstr("there is no device 1"), HasSubstr("look at the cables")));
  lose_with(ErrorCode::driver_error);
  EXPECT_EQ(kiln(arguments("1,3", "none.db")).exit_code, 3);
}

TEST_F(MachineTest, AFailureOfAnotherKindStopsAllDevicesAndKeepsWhatWasMeasured) {
  lose(1, 1);
  lose_with(ErrorCode::io_error);
  std::vector<std::string> many = arguments("all", "stopped.db");
  many[5] = "500";  // candidates
  const Outcome failed = kiln(many);
  EXPECT_EQ(failed.exit_code, 4) << failed.out;
  EXPECT_THAT(failed.err, AllOf(HasSubstr("there is no device 1"), Not(HasSubstr("was lost"))));
  const size_t kept = keys("stopped.db").size();
  EXPECT_GT(kept, 0u);
  EXPECT_LT(kept, 400u) << "the others went on";
}

TEST_F(MachineTest, TheTimeToGoIsThatOfTheSlowestCardThatIsLeft) {
  const auto tune_few = [&](const char* database) {
    std::vector<std::string> few = arguments("0,2", database);
    few[1] = write("few.txt", "softmax_forward x=f32:3x100\nsoftmax_forward x=f32:5x100\n");
    err_ = kiln(few).err;
  };
  lose(0, 1000);
  environment_["LOSE_SLOWLY"] = "120";  // a check of the others
  tune_few("slow.db");
  auto seconds = told();
  ASSERT_THAT(seconds, Not(IsEmpty()));
  EXPECT_EQ(seconds.back().second, 0);
  seconds.pop_back();
  EXPECT_THAT(seconds, Each(Pair(_, Gt(0)))) << "nobody speaks for himself alone, or before the slow one can tell";

  lose(2, 1);
  tune_few("lost.db");
  seconds = told();
  ASSERT_THAT(seconds, Not(IsEmpty()));
  EXPECT_THAT(seconds.back(), Pair("0", 0)) << "nobody goes on with what was left to a lost card";
}

TEST_F(MachineTest, DevicesShareTheHardwareThreadsThatCompile) {
  environment_["KILN_WORKER"] =
      write("worker", fmt::format("#!/bin/sh\necho >> '{}'\nexec '{}' \"$@\"\n", path("started"), KILN_PROGRAM));
  std::filesystem::permissions(path("worker"), std::filesystem::perms::owner_all);
  constexpr size_t devices = 4;
  tune("all", "all.db");
  const size_t threads = std::max<size_t>(1, std::thread::hardware_concurrency() / devices);
  EXPECT_GE(read("started").size(), 2 * devices) << "each measures in one process, and compiles in another";
  EXPECT_LE(read("started").size(), devices * (1 + threads));
}

TEST_F(MachineTest, OneDeviceThatIsLostIsNamedWithWhatItMeasured) {
  lose(0, 3);
  const Outcome outcome = kiln(arguments("0", "one.db", {"--json"}));
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  const auto tuned = nlohmann::json::parse(outcome.out);
  EXPECT_THAT(tuned["layers"], SizeIs(layers)) << "as ever for one device";
  EXPECT_EQ(tuned["lost"][0]["device"], "0");
  EXPECT_THAT(keys("one.db"), SizeIs(3));
}

TEST_F(MachineTest, ListsAreChecked) {
  const auto error = [&](const std::string& devices) {
    const Outcome outcome = kiln(arguments(devices, "none.db"));
    EXPECT_EQ(outcome.exit_code, 2) << devices;
    return outcome.err;
  };
  EXPECT_THAT(error("0,4"), HasSubstr("--device 0,4: there is no device 4, the driver has 4"));
  EXPECT_THAT(error("1,0,1"), HasSubstr("--device 1,0,1 names device 1 twice"));
  for (const char* wrong : {"0,", ",", "0,x", "every", "emulator:", "emulator:0,-1"}) {
    EXPECT_THAT(error(wrong), HasSubstr(fmt::format("--device {} is not a device", wrong)));
  }
  const Outcome one = kiln({"explain", "softmax_forward x=f32:3x100", "--device", "all"});
  EXPECT_EQ(one.exit_code, 2);
  EXPECT_THAT(one.err, HasSubstr("--device all is not one device"));
}

TEST_F(MachineTest, AllMayBeOne) {
  environment_["KILN_EMULATOR_DEVICE"] = "t4";
  const nlohmann::json tuned = tune("emulator:all", "one.db");
  ASSERT_THAT(tuned["cards"], SizeIs(1));
  EXPECT_EQ(tuned["cards"][0]["devices"], nlohmann::json::array({"emulator:0"}));
  EXPECT_THAT(tuned["cards"][0]["layers"], SizeIs(layers));
}

TEST_F(MachineTest, WorksWithShardsFoldersAndReports) {
  size_t tuned = 0, left_out = 0;
  for (const char* shard : {"0/2", "1/2"}) {
    const Outcome outcome = kiln(
        arguments("all", "", {"--shard", shard, "--db-dir", path("fleet"), "--report", path("report.html"), "--json"}));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto json = nlohmann::json::parse(outcome.out);
    left_out += json["shard"]["left_out"].size();
    for (const auto& card : json["cards"]) tuned += card["layers"].size();
    const std::string page = read("report.html");
    EXPECT_THAT(page, AllOf(HasSubstr("emulated NVIDIA H200"), HasSubstr("emulated NVIDIA T4")));
    const size_t sections = json["cards"][0]["layers"].size() + json["cards"][1]["layers"].size();
    for (size_t i = 1; i <= sections; ++i) {
      const std::string anchor = fmt::format("id=\"layer-{}\"", i);
      EXPECT_NE(page.find(anchor), page.npos) << anchor;
      EXPECT_EQ(page.find(anchor), page.rfind(anchor)) << "layers are numbered through";
    }
  }
  EXPECT_EQ(tuned, 2 * layers);
  EXPECT_EQ(left_out, layers);
  EXPECT_EQ(kiln({"cache", "merge", "--db", path("merged.db"), path("fleet")}).exit_code, 0);
  tune("all", "whole.db");
  EXPECT_EQ(keys("merged.db"), keys("whole.db"));
}

TEST_F(MachineTest, ABudgetGivesEveryLayerItsDefaultOnEveryCard) {
  const Outcome outcome = kiln(arguments("all", "budget.db", {"--budget", "600", "--json"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const auto& card : nlohmann::json::parse(outcome.out)["cards"]) {
    for (const auto& layer : card["layers"]) EXPECT_FALSE(layer["default"].is_null()) << layer["request"];
  }
}

TEST_F(MachineTest, CtrlCKeepsWhatWasMeasuredOnAllDevices) {
  std::vector<std::string> many = arguments("all", "stopped.db");
  many[5] = "500";  // candidates
  const pid_t process = start(KILN_PROGRAM, many);
  for (int i = 0; i < 1200; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (std::filesystem::exists(path("stopped.db")) && keys("stopped.db").size() >= 8) break;
  }
  kill(process, SIGINT);
  const Outcome outcome = wait(process);
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_GE(keys("stopped.db").size(), 8u);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("NVIDIA H200"), HasSubstr("NVIDIA T4")));
}

TEST_F(MachineTest, PlainLinesNameTheDevice) {
  const Outcome outcome =
      kiln({"tune", write("requests.txt", requests), "--device", "0,2", "--candidates", "1", "--db", path("lines.db")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("device 0: layer 1/8: "), HasSubstr("device 2: layer 1/8: ")));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("\ndevice 0\n"), HasSubstr("\ndevice 2\n")));
}

}  // namespace
}  // namespace kiln::cli::machine_test
