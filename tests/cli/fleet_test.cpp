// Many machines and cards: what becomes of their databases.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "program.h"

namespace kiln::cli {
namespace {

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

  void execute(const std::string& database, const char* sql) const {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(path(database).c_str(), &handle), SQLITE_OK);
    sqlite3_busy_timeout(handle, 10'000);
    EXPECT_EQ(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(handle);
    EXPECT_EQ(sqlite3_close(handle), SQLITE_OK);
  }
};

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
  const Outcome merged = kiln({"cache", "merge", "--db", path("merged.db"), path("fleet"), "--json"});
  EXPECT_EQ(merged.exit_code, 4);
  const nlohmann::json json = nlohmann::json::parse(merged.out);
  std::map<std::string, std::string> left_out;
  for (const auto& file : json["left_out"]) left_out[file["file"]] = file["reason"];
  EXPECT_THAT(left_out[path("fleet/cut.db")], HasSubstr("damaged"));
  EXPECT_THAT(left_out[path("fleet/newer.db")], HasSubstr("newer Kiln"));
  EXPECT_THAT(left_out[path("fleet/overwritten.db")], HasSubstr("damaged"));
  EXPECT_EQ(left_out.size(), 3u);
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
  for (const auto& card : choice["cards"]) EXPECT_LE(card["loss"], 0.02) << card.dump();

  for (const std::string& card : cards) {
    environment_["KILN_EMULATOR_DEVICE"] = card;
    environment_["KILN_PACK_PATH"] = path("fleet.pack");
    const Outcome by_pack = kiln({"run", "--check", file, "--db", path("none.db"), "--json"});
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
    const Outcome by_bundle = kiln({"run", "--check", file, "--db", path("none.db"), "--json"});
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

TEST_F(FleetTest, CardsStandSideBySideAndTooFewVariantsAreSaid) {
  const std::string file = write("requests.txt", requests);
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
  EXPECT_THAT(few.out, HasSubstr("a layer has nothing"));
  EXPECT_THAT(few.out, HasSubstr("1 variants of 3 layers: not enough for a loss of 5%"));
  const Outcome one_card = kiln({"cache", "choose", path("fleet"), "--cards", "T4", "--max-loss", "0"});
  EXPECT_THAT(one_card.out,
              HasSubstr("3 variants of 3 layers, no card loses more than 0%; fewer than 3 cannot do that"));
  const Outcome unknown = kiln({"cache", "choose", path("fleet"), "--cards", "B200"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("there are some of: Kiln emulated"));
}

}  // namespace
}  // namespace kiln::cli
