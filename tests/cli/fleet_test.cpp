// Many machines: how far they are, by their databases.
#include <gmock/gmock.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "kiln/cache/database.h"
#include "program.h"

namespace kiln::cli::fleet_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const char* const requests =
    "conv_forward x=f32:1x8x14x14 w=f32:16x8x3x3 pad=1 epilogue=bias+relu *2\n"
    "pool_forward x=f32:1x16x14x14 mode=max window=2 stride=2\n"
    "softmax_forward x=f32:3x100\n";

class FleetTest : public ProgramTest {
 protected:
  std::vector<std::string> tune(const std::string& shard, const char* candidates = "1") const {
    return {"tune",    write("requests.txt", requests), "--db-dir", path("fleet"), "--shard", shard, "--candidates",
            candidates};
  }

  nlohmann::json status(int exit_code = 0) const {
    const Outcome outcome = kiln({"tune", "--status", path("fleet"), "--json"});
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }

  // A database of made-up times of an algorithm that no catalogue has: by card, and by the number of a variant.
  std::string made_up(const std::map<std::string, std::map<int, double>>& cards) const {
    cache::Database database = cache::Database::open(path("made_up.db"));
    for (const auto& [card, times] : cards) {
      database.put_device({card, "NVIDIA " + card, 8, 0, 108, false});
      for (const auto& [variant, seconds] : times) {
        cache::Record record;
        record.request = "softmax_forward x=f32:3x100:nc y=f32:3x100:nc axis=1 mode=accurate alpha=1 beta=0";
        record.device = card;
        record.algorithm = "made_up";
        record.algorithm_digest = "1";
        record.config = "THREADS=" + std::to_string(variant);
        record.outcome = cache::outcome::timed;
        record.seconds = seconds;
        record.driver_version = record.nvrtc_version = record.kiln_version = "13.0";
        database.insert({&record, 1});
      }
    }
    return path("made_up.db");
  }

  void execute(const std::string& database, const char* sql) const {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(path(database).c_str(), &handle), SQLITE_OK);
    sqlite3_busy_timeout(handle, 10'000);
    EXPECT_EQ(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(handle);
    EXPECT_EQ(sqlite3_close(handle), SQLITE_OK);
  }
};

TEST_F(FleetTest, StatusSaysWhichShardsAreDoneAndWhichNobodyHasBegun) {
  EXPECT_EQ(kiln(tune("0/2")).exit_code, 0);
  const nlohmann::json half = status();
  ASSERT_EQ(half["runs"].size(), 1u);
  EXPECT_EQ(half["runs"][0]["state"], "done");
  EXPECT_EQ(half["runs"][0]["shard"], "0/2");
  EXPECT_EQ(half["runs"][0]["done"], half["runs"][0]["layers"]);
  ASSERT_EQ(half["not_begun"].size(), 1u);
  EXPECT_THAT(half["not_begun"][0].get<std::string>(), HasSubstr("1/2 on Kiln emulated"));

  EXPECT_EQ(kiln(tune("1/2")).exit_code, 0);
  EXPECT_EQ(kiln(tune("0/2")).exit_code, 0) << "which takes the place of the first run";
  kiln({"cache", "merge", "--db", path("fleet/merged.db"), path("fleet")});
  const nlohmann::json all = status();
  ASSERT_EQ(all["runs"].size(), 2u);
  EXPECT_EQ(all["cards"][0]["done"], 3);
  EXPECT_TRUE(all["not_begun"].empty());
  EXPECT_EQ(all["without_a_run"], nlohmann::json::array({path("fleet/merged.db")}));
}

TEST_F(FleetTest, ARunIsSeenAtWorkAndOneThatWasKilledIsSaidToHaveStopped) {
  cache::Database::open(path("fleet/shard-0-of-1.db"));  // a folder without a database is an error
  // As many candidates as there are, so that the run is still at work when it is looked at.
  const pid_t process = start(KILN_PROGRAM, tune("0/1", "1000"));
  nlohmann::json seen;
  for (int i = 0; i < 600; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    seen = status();
    if (seen["cards"].size() == 1 && seen["cards"][0]["running"] > 0) break;
  }
  kill(process, SIGKILL);
  EXPECT_EQ(wait(process).exit_code, 128 + SIGKILL);
  EXPECT_EQ(seen["cards"][0]["runs_running"], 1) << seen.dump(1);
  EXPECT_GT(seen["cards"][0]["left"], 0);

  execute("fleet/shard-0-of-1.db", "UPDATE runs SET seen = seen - 60000");  // as if it had been silent for a minute
  const Outcome stopped = kiln({"tune", "--status", path("fleet")});
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_THAT(stopped.out, AllOf(HasSubstr("stopped: silent for 1m0"), HasSubstr(" 0 running, 0 failed, ")));
  EXPECT_EQ(kiln(tune("0/1", "12")).exit_code, 0);
  EXPECT_EQ(status()["cards"][0]["done"], 3) << "the same command goes on";
}

TEST_F(FleetTest, StatusNamesWhatItCannotReadAndSaysTheRest) {
  EXPECT_EQ(kiln(tune("0/1")).exit_code, 0);
  for (const char* copy : {"newer.db", "cut.db"}) {
    std::filesystem::copy(path("fleet/shard-0-of-1.db"), path(std::string("fleet/") + copy));
  }
  execute("fleet/newer.db", "PRAGMA user_version = 999");
  std::filesystem::resize_file(path("fleet/cut.db"), std::filesystem::file_size(path("fleet/cut.db")) / 2);
  write("fleet/other.db", "no database");
  const nlohmann::json seen = status(4);
  ASSERT_EQ(seen["unread"].size(), 3u);
  EXPECT_THAT(seen["unread"][0]["reason"].get<std::string>(), HasSubstr("cut.db is damaged"));
  EXPECT_THAT(seen["unread"][1]["reason"].get<std::string>(), HasSubstr("newer.db was written by a newer Kiln"));
  EXPECT_THAT(seen["unread"][2]["reason"].get<std::string>(), HasSubstr("other.db is not a database"));
  ASSERT_EQ(seen["runs"].size(), 1u);
  EXPECT_EQ(seen["runs"][0]["state"], "done");
  const Outcome text = kiln({"tune", "--status", path("fleet")});
  EXPECT_THAT(text.err, HasSubstr("cut.db"));
  EXPECT_THAT(text.out, HasSubstr("shard-0-of-1.db"));
}

TEST_F(FleetTest, StatusNeedsAFolderOfDatabasesAndTuneAnInput) {
  std::filesystem::create_directories(path("empty"));
  EXPECT_THAT(kiln({"tune", "--status", path("empty")}).err, HasSubstr("holds no database"));
  EXPECT_EQ(kiln({"tune", "--status", path("none")}).exit_code, 4);
  EXPECT_THAT(kiln({"tune", "--status", path("empty"), "b"}).err,
              HasSubstr("--status tunes nothing: b has no meaning"));
  const std::vector<std::vector<std::string>> more = {
      {"model.onnx"}, {"--shard", "0/2"}, {"--quiet"}, {"--device", "1"}};
  for (const std::vector<std::string>& words : more) {
    std::vector<std::string> arguments = {"tune", "--status", path("empty")};
    arguments.insert(arguments.end(), words.begin(), words.end());
    const Outcome refused = kiln(arguments);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("--status tunes nothing: "), HasSubstr("has no meaning beside it")));
  }
  const Outcome nothing = kiln({"tune"});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("input is required"));
}

TEST_F(FleetTest, AMergeNamesEveryShardThatItLeavesOutAndTakesTheRest) {
  EXPECT_EQ(kiln(tune("0/1")).exit_code, 0);
  const std::string whole = path("fleet/shard-0-of-1.db");
  for (const char* copy : {"cut.db", "newer.db", "overwritten.db"}) {
    std::filesystem::copy(whole, path(std::string("fleet/") + copy));
  }
  std::filesystem::resize_file(path("fleet/cut.db"), std::filesystem::file_size(whole) / 2);
  execute("fleet/newer.db", "PRAGMA user_version = 999");
  {
    const auto half = static_cast<std::streamoff>(std::filesystem::file_size(whole) / 2);
    std::fstream file(path("fleet/overwritten.db"), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(half);
    file << std::string(static_cast<size_t>(half), '\0');
  }
  {
    cache::Database other = cache::Database::open(path("fleet/other-keys.db"));
    const auto known = cache::Database::open(whole, {.mode = cache::OpenMode::read_only});
    const cache::DeviceEntry card = known.devices().at(0);
    cache::Record record = known.records(known.request_keys(card.id).at(0), card.id).at(0);
    record.request = "convolution:2 " + record.request;
    other.put_device(card);
    other.insert({&record, 1});
  }
  const Outcome merged = kiln({"cache", "merge", "--db", path("merged.db"), path("fleet"), "--json"});
  EXPECT_EQ(merged.exit_code, 4);
  const nlohmann::json json = nlohmann::json::parse(merged.out);
  std::map<std::string, std::string> left_out;
  for (const auto& file : json["left_out"]) left_out[file["file"]] = file["reason"];
  EXPECT_THAT(left_out[path("fleet/cut.db")], HasSubstr("damaged"));
  EXPECT_THAT(left_out[path("fleet/newer.db")], HasSubstr("newer Kiln"));
  EXPECT_THAT(left_out[path("fleet/overwritten.db")], HasSubstr("damaged"));
  EXPECT_THAT(left_out[path("fleet/other-keys.db")], HasSubstr("was written by a Kiln with other requests"));
  EXPECT_EQ(left_out.size(), 4u);
  for (const auto& [file, reason] : left_out) EXPECT_THAT(merged.err, HasSubstr(file));
  ASSERT_EQ(json["files"].size(), 1u);
  EXPECT_EQ(json["files"][0]["file"], whole);
  EXPECT_GE(json["files"][0]["added"], 3);
  const Outcome run = kiln({"run", path("requests.txt"), "--db", path("merged.db")});
  EXPECT_THAT(run.out, Not(HasSubstr("estimate"))) << "every layer came from the shard that is whole";
}

// Three kinds of card tune the same layers; what is chosen for all of them is loaded and used on each.
TEST_F(FleetTest, WhatIsChosenForAFleetIsUsedOnEachOfItsCards) {
  const std::vector<std::string> cards = {"h200", "a100", "t4"};
  const std::string file = write("requests.txt", requests);
  std::filesystem::create_directory(path("fleet"));
  for (const std::string& card : cards) {
    environment_["KILN_EMULATOR_DEVICE"] = card;
    const Outcome tuned = kiln({"tune", file, "--db", path("fleet/" + card + ".db"), "--candidates", "6", "--quiet"});
    EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
  }
  const Outcome chosen = kiln({"cache", "choose", path("fleet"), "--max-loss", "2", "--pack", path("fleet.pack"),
                               "--bundle", path("fleet.kiln"), "--json"});
  EXPECT_EQ(chosen.exit_code, 0) << chosen.err;
  const nlohmann::json choice = nlohmann::json::parse(chosen.out);
  EXPECT_EQ(choice["within"], true);
  EXPECT_EQ(choice["layers"], 3);
  EXPECT_LE(choice["least"], choice["variants"].size());
  std::set<std::string> names;
  for (const auto& variant : choice["variants"]) {
    names.insert(variant["algorithm"].get<std::string>() + " " + variant["config"].get<std::string>());
  }
  ASSERT_EQ(choice["cards"].size(), 3u);
  for (const auto& card : choice["cards"]) {
    EXPECT_LE(card["loss"], 0.02) << card.dump();
    EXPECT_NEAR(card["chosen_seconds"], card["best_seconds"].get<double>() * (1 + card["loss"].get<double>()), 1e-12);
    EXPECT_TRUE(card["layers_with_nothing"].empty());
  }

  for (const std::string& card : cards) {
    environment_["KILN_EMULATOR_DEVICE"] = card;
    environment_["KILN_PACK_PATH"] = path("fleet.pack");
    const Outcome by_pack = kiln({"run", "--check", file, "--db", "off", "--json"});
    EXPECT_EQ(by_pack.exit_code, 0) << by_pack.err;
    for (const auto& layer : nlohmann::json::parse(by_pack.out)["layers"]) {
      EXPECT_TRUE(names.contains(layer["variant"].get<std::string>())) << card << ": " << layer.dump();
      EXPECT_EQ(layer["right"], true);
      EXPECT_THAT(layer["choice"].get<std::string>(), HasSubstr("this device"));
    }
    environment_.erase("KILN_PACK_PATH");
    environment_["KILN_BUNDLE_PATH"] = path("fleet.kiln");
    environment_["KILN_NVRTC"] = path("no-nvrtc.so");
    environment_["KILN_KERNEL_STORE"] = "off";
    const Outcome by_bundle = kiln({"run", "--check", file, "--db", "off", "--json"});
    EXPECT_EQ(by_bundle.exit_code, 0) << by_bundle.err;
    for (const auto& layer : nlohmann::json::parse(by_bundle.out)["layers"]) {
      EXPECT_TRUE(names.contains(layer["variant"].get<std::string>())) << card << ": " << layer.dump();
      EXPECT_EQ(layer["right"], true);
    }
    environment_.erase("KILN_BUNDLE_PATH");
    environment_.erase("KILN_NVRTC");
    environment_.erase("KILN_KERNEL_STORE");
  }
}

TEST_F(FleetTest, OutputsDoNotReplaceWhatTheyAreMadeOf) {
  const std::string database = path("one.db");
  ASSERT_EQ(kiln({"tune", "softmax_forward x=f32:4x16", "--db", database, "--candidates", "1", "--quiet"}).exit_code,
            0);
  const std::string before = read("one.db");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"cache", "choose", database, "--pack", database},
        {"cache", "choose", database, "--bundle", database},
        {"cache", "compare", database, "--report", database},
        {"cache", "export", "--db", database, database}}) {
    const Outcome outcome = kiln(arguments);
    EXPECT_EQ(outcome.exit_code, 4) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("it is a database"));
  }
  EXPECT_EQ(read("one.db"), before);
  const Outcome one = kiln({"cache", "choose", database, "--pack", path("both"), "--bundle", path("./both")});
  EXPECT_EQ(one.exit_code, 2);
  EXPECT_THAT(one.err, HasSubstr("--pack and --bundle are one file"));
}

TEST_F(FleetTest, APackWhoseBundleFailedIsSaidToBeThere) {
  const std::string database = path("one.db");
  ASSERT_EQ(kiln({"tune", "softmax_forward x=f32:4x16", "--db", database, "--candidates", "1", "--quiet"}).exit_code,
            0);
  environment_["KILN_NVRTC"] = path("no-nvrtc.so");
  const Outcome failed = kiln({"cache", "choose", database, "--pack", path("one.pack"), "--bundle", path("one.kiln")});
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_THAT(failed.err, HasSubstr("the pack " + path("one.pack") + " was written"));
  EXPECT_TRUE(std::filesystem::exists(path("one.pack")));
}

TEST_F(FleetTest, FoldersOfFoldersAreGatheredByAllAndNothingInThemIsPassedOver) {
  ASSERT_EQ(kiln(tune("0/1")).exit_code, 0);
  std::filesystem::create_directories(path("all/h200/monday"));
  std::filesystem::rename(path("fleet/shard-0-of-1.db"), path("all/h200/monday/a.db"));
  const auto merge = [&] { return kiln({"cache", "merge", "--db", path("all/merged.db"), path("all")}); };
  EXPECT_EQ(merge().exit_code, 0) << merge().err;
  EXPECT_THAT(merge().out, HasSubstr("monday/a.db: 0 records added"));

  std::filesystem::create_symlink("gone.db", path("all/link.db"));
  ASSERT_EQ(mkfifo(path("all/pipe.db").c_str(), 0600), 0);
  write("all/bad.pack", "hello");
  write("all/empty.pack", "");
  const std::vector<std::string> databases = {path("all/link.db") + " is a link to gone.db, which is not there",
                                              path("all/pipe.db") + " is a pipe, not a file"};
  const std::vector<std::string> packs = {path("all/bad.pack") + " is not a pack",
                                          path("all/empty.pack") + " is empty"};
  const Outcome merged = merge(), compared = kiln({"cache", "compare", path("all")}),
                status = kiln({"tune", "--status", path("all")});
  for (const Outcome& outcome : {merged, compared, status}) {
    EXPECT_EQ(outcome.exit_code, 4);
    for (const std::string& reason : databases) EXPECT_THAT(outcome.err, HasSubstr(reason));
  }
  for (const Outcome& outcome : {merged, compared}) {
    for (const std::string& reason : packs) EXPECT_THAT(outcome.err, HasSubstr(reason));
  }
  const Outcome pipe = kiln({"cache", "merge", "--db", path("other.db"), path("all/pipe.db")});
  EXPECT_EQ(pipe.exit_code, 4);
  EXPECT_THAT(pipe.err, HasSubstr("is a pipe, not a file"));
  EXPECT_FALSE(std::filesystem::exists(path("other.db")));
}

TEST_F(FleetTest, ACardWithoutTimesHasNoLossThatCouldBeTold) {
  const std::string database = made_up({{"A100", {{1, 2e-6}, {2, 1e-6}}}, {"T4", {}}});
  const Outcome chosen = kiln({"cache", "choose", database});
  EXPECT_EQ(chosen.exit_code, 0) << chosen.err;
  EXPECT_THAT(chosen.err, HasSubstr("NVIDIA T4 has no time of 1 of 1 layer, which is not in its loss\n"));
  EXPECT_THAT(chosen.out, ContainsRegex("NVIDIA A100 +1.00 us +1.00 us +0.0%\n"));
  EXPECT_THAT(chosen.out, ContainsRegex("NVIDIA T4 +- +- +-\n"));
  EXPECT_THAT(chosen.out, HasSubstr("1 variant of 1 layer, no card loses more than 5%"));
  const auto cards = nlohmann::json::parse(kiln({"cache", "choose", database, "--json"}).out)["cards"];
  EXPECT_EQ(cards[0]["loss"], 0);
  EXPECT_EQ(cards[1]["best_seconds"], 0);
  EXPECT_TRUE(cards[1]["loss"].is_null());
  EXPECT_TRUE(cards[1]["chosen_seconds"].is_null());

  const Outcome compared = kiln({"cache", "compare", database});
  EXPECT_THAT(compared.out, ContainsRegex("NVIDIA T4 +not tuned +- +- +- +-\n"));
  EXPECT_THAT(compared.out, ContainsRegex("NVIDIA T4: 0 layers: .*: -\n"));
}

TEST_F(FleetTest, CardsStandSideBySideAndTooFewVariantsAreSaid) {
  const std::string file = write("requests.txt", requests);
  std::filesystem::create_directory(path("fleet"));
  for (const char* card : {"h200", "t4"}) {
    environment_["KILN_EMULATOR_DEVICE"] = card;
    kiln({"tune", file, "--db", path(std::string("fleet/") + card + ".db"), "--candidates", "4", "--quiet"});
  }
  const Outcome compared = kiln({"cache", "compare", path("fleet"), "--report", path("cards.html"), "--json"});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  const nlohmann::json json = nlohmann::json::parse(compared.out);
  ASSERT_EQ(json["layers"].size(), 3u);
  ASSERT_EQ(json["cards"].size(), 2u);
  for (const auto& card : json["cards"]) EXPECT_GE(card["ratio"], 1.0);
  for (const auto& layer : json["layers"]) {
    for (const auto& card : layer["cards"]) EXPECT_GT(card["best_seconds"], 0);
  }
  const std::string page = read("cards.html");
  EXPECT_THAT(page, HasSubstr("emulated NVIDIA H200"));
  EXPECT_THAT(page, HasSubstr("All times are modelled"));
  EXPECT_THAT(page, HasSubstr("softmax 3x100"));

  const Outcome few = kiln({"cache", "choose", path("fleet"), "--max-variants", "1"});
  EXPECT_EQ(few.exit_code, 1);
  EXPECT_THAT(few.out, AllOf(HasSubstr("layers have nothing"), HasSubstr("H200: nothing chosen for 2 layers: "),
                             HasSubstr("softmax 3x100")));
  EXPECT_THAT(few.out, HasSubstr("1 variant of 3 layers: not enough for a loss of 5%"));
  const Outcome one_card = kiln({"cache", "choose", path("fleet"), "--cards", "T4", "--max-loss", "0"});
  EXPECT_THAT(one_card.out,
              HasSubstr("3 variants of 3 layers, no card loses more than 0%; fewer than 3 cannot do that"));
  for (const char* none : {"B200", "H20", "T", "NVIDIA H"}) {
    const Outcome unknown = kiln({"cache", "choose", path("fleet"), "--cards", none});
    EXPECT_EQ(unknown.exit_code, 2) << none;
    EXPECT_THAT(unknown.err, HasSubstr("there are some of: Kiln emulated"));
  }
  for (const char* one : {"h200", "nvidia H200", "Kiln emulated NVIDIA H200", "cc=9.0"}) {
    const Outcome named = kiln({"cache", "compare", path("fleet"), "--cards", one, "--json"});
    EXPECT_EQ(named.exit_code, 0) << named.err;
    EXPECT_EQ(nlohmann::json::parse(named.out)["cards"].size(), 1u) << one;
  }
  const auto few_json =
      nlohmann::json::parse(kiln({"cache", "choose", path("fleet"), "--max-variants", "1", "--json"}).out);
  EXPECT_TRUE(few_json["cards"][0]["chosen_seconds"].is_null());
  EXPECT_EQ(few_json["cards"][0]["layers_with_nothing"].size(), 2u);
}

}  // namespace
}  // namespace kiln::cli::fleet_test
