// The main path: tune, stop, go on, use.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "kiln/cache/database.h"
#include "program.h"

namespace kiln::cli::tune_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const char* const requests =
    "conv_forward x=f32:1x8x14x14 w=f32:16x8x3x3 pad=1 epilogue=bias+relu *2\n"
    "pool_forward x=f32:1x16x14x14 mode=max window=2 stride=2\n"
    "softmax_forward x=f32:3x100\n";

class TuneTest : public ProgramTest {
 protected:
  nlohmann::json tune(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {
        "tune", write("requests.txt", requests), "--db", path("tuning.db"), "--candidates", "4", "--json", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = kiln(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }

  size_t stored_records() const {
    const auto database = cache::Database::open(path("tuning.db"), {.mode = cache::OpenMode::read_only});
    size_t records = 0;
    for (const cache::DeviceEntry& device : database.devices()) {
      for (const cache::RequestSummary& request : database.requests(device.id)) {
        records += static_cast<size_t>(request.records);
      }
    }
    return records;
  }

  ~TuneTest() override { make_storing_fast_again(); }

  /// Locks the database most of the time, so that a tuner on any machine is still at work when the first records of it
  /// are seen.
  void make_storing_slow() {
    make_storing_fast_again();
    is_slow_ = true;
    locking_ = std::thread([this] {
      cache::Database::open(path("tuning.db"), {});
      sqlite3* database = nullptr;
      sqlite3_open(path("tuning.db").c_str(), &database);
      sqlite3_busy_timeout(database, 1000);
      while (is_slow_) {
        if (sqlite3_exec(database, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK) {
          std::this_thread::sleep_for(std::chrono::milliseconds(200));
          sqlite3_exec(database, "COMMIT", nullptr, nullptr, nullptr);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
      }
      sqlite3_close(database);
    });
  }
  void make_storing_fast_again() {
    is_slow_ = false;
    if (locking_.joinable()) locking_.join();
  }

  static std::vector<pid_t> children_of(pid_t parent) {
    std::vector<pid_t> children;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream status(entry.path() / "stat");
      std::string text;
      std::getline(status, text);
      std::istringstream fields(text.substr(text.rfind(')') + 1));
      std::string state;
      pid_t its_parent = -1;
      if (fields >> state >> its_parent && its_parent == parent) children.push_back(std::stoi(entry.path().filename()));
    }
    return children;
  }

  std::vector<std::string> outcomes() const {
    std::vector<std::string> found;
    const auto database = cache::Database::open(path("tuning.db"), {.mode = cache::OpenMode::read_only});
    for (const cache::DeviceEntry& device : database.devices()) {
      for (const cache::RequestSummary& request : database.requests(device.id)) {
        for (const cache::Record& record : database.records(request.request, device.id)) {
          found.push_back(record.outcome);
        }
      }
    }
    return found;
  }

  /// Returns once the database holds this many records, or after half a minute.
  void wait_for_records(size_t count) const {
    for (int i = 0; i < 600 && stored_records() < count; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

 private:
  std::atomic<bool> is_slow_ = false;
  std::thread locking_;
};

// A folder from a stranger may hold a program of that name.
TEST_F(TuneTest, RunsNoProgramOfTheWorkingFolder) {
  const std::string folder = path("downloaded");
  std::filesystem::create_directories(folder);
  std::filesystem::create_directories(path("bin"));
  for (const std::string& planted : {folder + "/kiln", path("bin") + "/kiln"}) {
    std::ofstream(planted) << "#!/bin/sh\ntouch " << path("planted_ran") << "\n";
    std::filesystem::permissions(planted, std::filesystem::perms::owner_all);
  }
  const std::string home = std::filesystem::path(KILN_PROGRAM).parent_path();
  // Found by PATH, so that its name has no folder.
  const Outcome outcome = run("/bin/sh", {"-c", "cd " + folder + " && PATH=" + home +
                                                    ":$PATH exec kiln tune 'softmax_forward x=f32:1x8 axis=1' --db off "
                                                    "--candidates 1 --quiet"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(path("planted_ran")));
}

TEST_F(TuneTest, EveryLayerGetsACheckedWinnerThatRunUses) {
  const nlohmann::json tuned = tune();
  ASSERT_EQ(tuned["layers"].size(), 3u);
  for (const auto& layer : tuned["layers"]) {
    EXPECT_EQ(layer["status"], "finished");
    ASSERT_FALSE(layer["best"].is_null()) << layer["request"];
    EXPECT_GT(layer["best"]["seconds"].get<double>(), 0);
    EXPECT_THAT(layer["best"]["check"].get<std::string>(), HasSubstr("allowed"));
    EXPECT_FALSE(layer["default"].is_null());
    EXPECT_LE(layer["best"]["seconds"].get<double>(), 1.01 * layer["default"]["seconds"].get<double>());
  }
  EXPECT_EQ(tuned["layers"][0]["count"], 2);

  const Outcome run = kiln({"run", "--check", path("requests.txt"), "--db", path("tuning.db")});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("3 layers agree with the reference, 0 do not"));
  EXPECT_THAT(run.out, Not(HasSubstr("estimate")));
}

TEST_F(TuneTest, EveryOperationIsTunedAndThenRight) {
  const std::string each = KILN_SOURCE_DIR "/examples/requests/one_of_each.txt";
  const Outcome tuned = kiln({"tune", each, "--db", path("tuning.db"), "--candidates", "2", "--json", "--quiet"});
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
  const auto layers = nlohmann::json::parse(tuned.out)["layers"];
  for (const auto& layer : layers) EXPECT_FALSE(layer["best"].is_null()) << layer["request"];
  const Outcome run = kiln({"run", "--check", each, "--db", path("tuning.db")});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr(std::to_string(layers.size()) + " layers agree with the reference, 0 do not"));
  EXPECT_THAT(run.out, Not(HasSubstr("estimate")));
}

// Winograd's transforms of the filters are paid by each call, or once before all of them.
TEST_F(TuneTest, TimesAreWithoutWhatIsMadeOfConstantWeights) {
  const std::string line = "conv_forward x=f32:32x40x12x12 w=f32:40x40x3x3 pad=1 fast";
  const std::string file = write("weights.txt", line + "\n" + line + " constant_weights\n");
  const Outcome tuned = kiln({"tune", file, "--db", path("tuning.db"), "--candidates", "3", "--quiet"});
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
  std::map<std::string, double> whole, prepared;
  const auto database = cache::Database::open(path("tuning.db"), {.mode = cache::OpenMode::read_only});
  for (const cache::RequestSummary& request : database.requests(database.devices().front().id)) {
    const bool constant = request.request.ends_with(" constant_weights");
    for (const cache::Record& record : database.records(request.request, database.devices().front().id)) {
      (constant ? prepared : whole)[record.algorithm + " " + record.config] = record.seconds;
    }
  }
  int with_transforms = 0;
  for (const auto& [variant, seconds] : prepared) {
    if (!whole.contains(variant)) continue;
    const bool transforms = variant.find("winograd") != variant.npos;
    with_transforms += transforms ? 1 : 0;
    EXPECT_TRUE(transforms ? seconds < whole.at(variant) : seconds == whole.at(variant)) << variant;
  }
  EXPECT_GT(with_transforms, 0);

  const Outcome run = kiln({"run", "--check", "--json", file, "--db", path("tuning.db")});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const auto layers = nlohmann::json::parse(run.out)["layers"];
  EXPECT_THAT(layers[1]["variant"].get<std::string>(), HasSubstr("winograd"));
  EXPECT_LT(layers[1]["seconds"].get<double>(), layers[0]["seconds"].get<double>());
}

TEST_F(TuneTest, ARetunePicksTheSameWinnersAndMeasuresNothingAgain) {
  const nlohmann::json first = tune();
  const size_t records = stored_records();
  const nlohmann::json second = tune();
  for (size_t i = 0; i < first["layers"].size(); ++i) {
    EXPECT_EQ(first["layers"][i]["best"]["algorithm"], second["layers"][i]["best"]["algorithm"]);
    EXPECT_EQ(first["layers"][i]["best"]["config"], second["layers"][i]["best"]["config"]);
  }
  EXPECT_EQ(stored_records(), records);
}

TEST_F(TuneTest, KillingItLosesNothingThatWasStoredAndTheSameCommandGoesOn) {
  const std::vector<std::string> arguments = {
      "tune", write("requests.txt", requests), "--db", path("tuning.db"), "--candidates", "6"};
  make_storing_slow();
  const pid_t process = start(KILN_PROGRAM, arguments);
  wait_for_records(3);
  const size_t stored = stored_records();
  kill(process, SIGKILL);
  EXPECT_EQ(wait(process).exit_code, 128 + SIGKILL);
  const size_t after_kill = stored_records();
  EXPECT_GE(after_kill, stored);
  ASSERT_GE(after_kill, 3u);
  make_storing_fast_again();
  const Outcome again = kiln(arguments);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr(" of them known from before"));
  EXPECT_THAT(again.out, Not(HasSubstr(", 0 of them known")));
  EXPECT_GE(stored_records(), after_kill);
}

TEST_F(TuneTest, TwoTunersOnOneDatabaseBothFinishAndNothingIsLost) {
  const std::vector<std::string> arguments = {
      "tune", write("requests.txt", requests), "--db", path("tuning.db"), "--candidates", "4", "--quiet"};
  const pid_t one = start(KILN_PROGRAM, arguments), other = start(KILN_PROGRAM, arguments);
  EXPECT_EQ(wait(one).exit_code, 0);
  EXPECT_EQ(wait(other).exit_code, 0);
  const size_t stored = stored_records();
  const Outcome third = kiln(arguments);
  EXPECT_EQ(third.exit_code, 0) << third.err;
  EXPECT_EQ(stored_records(), stored) << "between them they tried everything that one alone tries";
  const Outcome run = kiln({"run", "--check", path("requests.txt"), "--db", path("tuning.db")});
  EXPECT_THAT(run.out, HasSubstr("3 layers agree with the reference, 0 do not")) << run.err;
  EXPECT_THAT(run.out, Not(HasSubstr("estimate")));
}

// As a disk does that is slow to flush.
TEST_F(TuneTest, ALockThatLastsLongerThanAWriteWaitsLosesNothing) {
  make_storing_slow();
  const std::vector<std::string> arguments = {
      "tune", write("requests.txt", requests), "--db", path("tuning.db"), "--candidates", "12", "--quiet"};
  const pid_t process = start(KILN_PROGRAM, arguments);
  wait_for_records(1);
  sqlite3* locked = nullptr;
  ASSERT_EQ(sqlite3_open(path("tuning.db").c_str(), &locked), SQLITE_OK);
  sqlite3_busy_timeout(locked, 5000);
  ASSERT_EQ(sqlite3_exec(locked, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  std::this_thread::sleep_for(std::chrono::seconds(12));
  sqlite3_close(locked);
  make_storing_fast_again();
  const Outcome outcome = wait(process);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("new ones are kept in memory until it is free"));
  const size_t stored = stored_records();
  EXPECT_EQ(kiln(arguments).exit_code, 0);
  EXPECT_EQ(stored_records(), stored) << "there was something left to be tried";
}

TEST_F(TuneTest, CtrlCAndSigtermEndItBetweenTwoTrialsAndKeepWhatWasMeasured) {
  for (const auto& [signal, exit_code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    SCOPED_TRACE(exit_code);
    make_storing_fast_again();
    std::filesystem::remove(path("tuning.db"));
    make_storing_slow();
    const pid_t process = start(KILN_PROGRAM, {"tune", write("requests.txt", requests), "--db", path("tuning.db"),
                                               "--candidates", "12", "--report", path("report.html")});
    wait_for_records(1);
    kill(process, signal);
    const Outcome outcome = wait(process);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_GT(stored_records(), 0u);
    EXPECT_THAT(outcome.out, HasSubstr("over default")) << "it says what it found";
    EXPECT_THAT(read("report.html"), HasSubstr("</html>"));
  }
}

// Slurm signals each process of a step, and again those that pass the signal on.
TEST_F(TuneTest, SigtermToEveryProcessAndMoreThanOnceBlamesNoVariant) {
  make_storing_slow();
  const std::vector<std::string> arguments = {
      "tune", write("requests.txt", requests), "--db", path("tuning.db"), "--candidates", "12"};
  const pid_t process = start(KILN_PROGRAM, arguments);
  wait_for_records(1);
  const std::vector<pid_t> workers = children_of(process);
  EXPECT_FALSE(workers.empty());
  for (const pid_t worker : workers) kill(worker, SIGTERM);
  for (int i = 0; i < 3; ++i) kill(process, SIGTERM);
  EXPECT_EQ(wait(process).exit_code, 143);
  make_storing_fast_again();
  const size_t stored = stored_records();
  const Outcome again = kiln(arguments);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_GT(stored_records(), stored);
  EXPECT_THAT(outcomes(), testing::Each(testing::AnyOf("timed", "rejected_early")));
}

TEST_F(TuneTest, ASecondCtrlCEndsItAtOnce) {
  make_storing_slow();
  const pid_t process =
      start(KILN_PROGRAM, {"tune", write("requests.txt", requests), "--db", path("tuning.db"), "--candidates", "12"});
  wait_for_records(1);
  sqlite3* locked = nullptr;  // until it has ended: it could not end its session before the second signal
  ASSERT_EQ(sqlite3_open(path("tuning.db").c_str(), &locked), SQLITE_OK);
  sqlite3_busy_timeout(locked, 5000);
  ASSERT_EQ(sqlite3_exec(locked, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  for (int i = 0; i < 5; ++i) {  // one that is not yet delivered takes the next one in
    kill(process, SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  const Outcome outcome = wait(process);
  sqlite3_close(locked);
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_EQ(outcome.out, "") << "it is not for it to wait, and to say what it found";
}

TEST_F(TuneTest, ASignalBeforeTheFirstTrialEndsItAtOnce) {
  ASSERT_EQ(mkfifo(path("requests.txt").c_str(), 0600), 0);  // it waits for requests here
  const pid_t process = start(KILN_PROGRAM, {"tune", path("requests.txt"), "--db", path("tuning.db")});
  const int pipe = open(path("requests.txt").c_str(), O_WRONLY);  // returns once it reads
  ASSERT_GE(pipe, 0);
  kill(process, SIGTERM);
  EXPECT_EQ(wait(process).exit_code, 143);
  close(pipe);
}

TEST_F(TuneTest, ShardsCoverEveryLayerOnce) {
  size_t layers = 0, left_out = 0;
  for (const char* shard : {"0/2", "1/2"}) {
    const nlohmann::json part = tune({"--shard", shard});
    layers += part["layers"].size();
    left_out += part["shard"]["left_out"].size();
  }
  EXPECT_EQ(layers, 3u);
  EXPECT_EQ(left_out, 3u);
}

// As an array of jobs does it: a database for each, and a merge job that may run at any time, and again.
TEST_F(TuneTest, ShardsKeepDatabasesOfTheirOwnAndAMergeTakesTheFolder) {
  const auto tune_shard = [&](const std::string& shard) {
    const Outcome outcome = kiln(
        {"tune", write("requests.txt", requests), "--db-dir", path("fleet"), "--shard", shard, "--candidates", "2"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  };
  const auto merge = [&] { return kiln({"cache", "merge", "--db", path("fleet/merged.db"), path("fleet")}); };
  EXPECT_THAT(tune_shard("0/2"), HasSubstr("of 3 layers; the rest is left to the other shards"));
  EXPECT_EQ(merge().exit_code, 0);
  tune_shard("1/2");
  const Outcome merged = merge();
  EXPECT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_THAT(merged.out, HasSubstr("shard-0-of-2.db: 0 records added"));
  EXPECT_THAT(merged.out, HasSubstr("shard-1-of-2.db"));
  EXPECT_THAT(merged.out, Not(HasSubstr("merged.db:"))) << "it is not merged into itself";
  const Outcome run = kiln({"run", path("requests.txt"), "--db", path("fleet/merged.db")});
  EXPECT_THAT(run.out, Not(HasSubstr("estimate"))) << "every layer has been tuned";
  EXPECT_THAT(tune_shard("0/2"), HasSubstr("2 candidates tried, 2 of them known from before"));
}

TEST_F(TuneTest, AShardThatRunsAgainDoesOnlyWhatIsMissingThoughLayersWereAdded) {
  std::string model;
  for (int rows = 1; rows <= 12; ++rows) model += fmt::format("softmax_forward x=f32:{}x100\n", rows);
  const auto tune_shard = [&](const std::string& shard) {
    const Outcome outcome = kiln({"tune", write("model.txt", model), "--db-dir", path("fleet"), "--shard", shard,
                                  "--candidates", "1", "--json", "--quiet"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)["layers"];
  };
  const std::array<std::string, 3> shards = {"0/3", "1/3", "2/3"};
  std::map<std::string, std::string> shard_of;
  for (const std::string& shard : shards) {
    for (const auto& layer : tune_shard(shard)) shard_of[layer["request"]] = shard;
  }
  ASSERT_EQ(shard_of.size(), 12u);
  model = "pool_forward x=f32:1x16x14x14 mode=max window=2 stride=2\n" + model + "softmax_forward x=f32:70x100\n";
  size_t stayed = 0, fresh = 0;
  for (const std::string& shard : shards) {
    for (const auto& layer : tune_shard(shard)) {
      const bool is_known = layer["trials"][0]["compile_seconds"].is_null();
      const auto before = shard_of.find(layer["request"]);
      const bool is_here = before != shard_of.end() && before->second == shard;
      EXPECT_EQ(is_known, is_here) << layer["request"];
      stayed += is_here ? 1 : 0;
      fresh += is_known ? 0 : 1;
    }
  }
  EXPECT_EQ(stayed + fresh, 14u);
  EXPECT_GE(stayed, 10u) << "nearly all layers stay in their shard";
}

TEST_F(TuneTest, AFileThatCannotBeReadKeepsNoOtherOutOfAMerge) {
  std::filesystem::create_directories(path("fleet"));
  write("fleet/a.db", "this is no database");
  kiln({"tune", "softmax_forward x=f32:3x100", "--db", path("fleet/b.db"), "--candidates", "1"});
  const Outcome merged = kiln({"cache", "merge", "--db", path("merged.db"), path("fleet")});
  EXPECT_THAT(merged.out, HasSubstr("b.db: 1 records added"));
  EXPECT_EQ(merged.exit_code, 4);
  EXPECT_THAT(merged.err, HasSubstr("fleet/a.db"));
  std::filesystem::create_directories(path("empty"));
  EXPECT_THAT(kiln({"cache", "merge", "--db", path("merged.db"), path("empty")}).err,
              HasSubstr("holds no database and no pack"));
}

TEST_F(TuneTest, PlainLinesOfProgressWhereThereIsNoTerminal) {
  const Outcome outcome = kiln({"tune", "softmax_forward x=f32:3x100", "--db", path("tuning.db"), "--candidates", "2"});
  EXPECT_THAT(outcome.err, HasSubstr("layer 1/1: softmax 3x100, axis 1"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("\033")));
  EXPECT_THAT(outcome.out, HasSubstr("over default"));
}

TEST_F(TuneTest, ASmallerRetuneStillNamesTheBestThatTheDatabaseHoldsAndEmitPrintsIt) {
  const std::string conv = "conv_forward x=f32:1x8x9x9 w=f32:4x8x3x3 pad=1";
  const auto best_of = [&](const char* candidates) {
    const Outcome outcome = kiln({"tune", conv, "--db", path("tuning.db"), "--candidates", candidates, "--json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)["layers"][0];
  };
  const auto first = best_of("4"), second = best_of("1");
  ASSERT_EQ(second["trials"].size(), 1u);
  EXPECT_NE(first["best"]["config"], second["trials"][0]["config"])
      << "needs a layer whose first candidate is not the best";
  EXPECT_EQ(second["best"]["algorithm"], first["best"]["algorithm"]);
  EXPECT_EQ(second["best"]["config"], first["best"]["config"]);
  const Outcome emitted = kiln({"emit", conv, "--db", path("tuning.db"), "--json"});
  EXPECT_EQ(emitted.exit_code, 0) << emitted.err;
  const auto chosen = nlohmann::json::parse(emitted.out);
  EXPECT_EQ(chosen["algorithm"], first["best"]["algorithm"]);
  EXPECT_EQ(chosen["config"], first["best"]["config"]);
  EXPECT_THAT(emitted.err,
              AllOf(HasSubstr("times modelled"), HasSubstr("chosen: "), HasSubstr("modelled on this device")));
  EXPECT_THAT(kiln({"emit", conv, "--db", "off"}).err, HasSubstr("(estimate)"));
}

TEST_F(TuneTest, WhatIsKnownFromBeforeIsReportedInFull) {
  const auto by_variant = [](const nlohmann::json& layer) {
    std::map<std::string, nlohmann::json> trials;
    for (const auto& trial : layer["trials"]) {
      trials[trial["algorithm"].get<std::string>() + " " + trial["config"].get<std::string>()] = trial;
    }
    return trials;
  };
  const nlohmann::json first = tune(), second = tune();
  for (size_t i = 0; i < first["layers"].size(); ++i) {
    const auto before = by_variant(first["layers"][i]), after = by_variant(second["layers"][i]);
    ASSERT_EQ(before.size(), after.size());
    for (const auto& [variant, trial] : after) {
      EXPECT_GT(trial["registers"], 0) << variant;
      EXPECT_EQ(trial["registers"], before.at(variant)["registers"]) << variant;
      EXPECT_EQ(trial["estimate_seconds"], before.at(variant)["estimate_seconds"]) << variant;
      EXPECT_TRUE(trial["compile_seconds"].is_null()) << variant;
    }
  }
}

}  // namespace
}  // namespace kiln::cli::tune_test
