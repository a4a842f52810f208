// The trace of a replay says what the replay did: its slices fill the cycles, without gaps and without overlap.
#include "kiln/timing/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "kiln/timing/time_model.h"
#include "machine_code_texts.h"

namespace kiln::timing::trace_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Loads from global and shared memory, a barrier that one warp comes late to, a conversion, a store.
Sass program() {
  Code code;
  code.add("S2R R0, SR_TID.X", sets(0))
      .add("SHF.L.U32 R1, R0, 0x4, RZ", waits(1, 6))
      .add("MOV R4, 0x10000", stall(4))
      .add("MOV R5, 0x1", stall(4))
      .add("IMAD.WIDE R6, R0, 0x40, R4", stall(6))
      .add("LDG.E R8, [R6.64]", sets(0))
      .add("LDS R9, [R1]", sets(1))
      .add("ISETP.LT.U32.AND P0, PT, R0, 0x20, PT", stall(13))
      .add("@P0 BRA `(.L_x_0)", stall(5));
  for (int i = 0; i < 20; ++i) code.add("FADD R10, R10, R3", stall(4));
  code.label(".L_x_0")
      .add("I2F R11, R0", sets(2))
      .add("FFMA R12, R8, R9, R11", waits(7, 4))
      .add("STG.E [R6.64], R12", stall(2))
      .add("BAR.SYNC 0x0", stall(5))
      .add("EXIT", stall(1));
  return code.sass();
}

class Replayed {
 public:
  explicit Replayed(uint64_t most, bool traced = true) : trace(most) {
    const Sass sass = program();
    const Card card = find_card("a100");
    const KernelFacts facts = plain_facts();
    Launch launch;
    launch.block = {96, 1, 1};
    launch.grid = {5, 1, 1};
    launch.parameters = std::string(16, '\0');
    Interpreter interpreter(sass, facts, launch);
    ReplaySetup setup;
    setup.blocks = 5;
    setup.resident_blocks = 2;
    setup.l1_bytes = 131072;
    setup.path = [&](uint32_t n) { return std::make_shared<const BlockPath>(interpreter.run(n)); };
    if (traced) setup.trace = &trace;
    result = replay(sass, card, setup);
  }

  json events() const { return json::parse("[" + trace.events_json(3, "kernel \"k\"") + "]"); }

  ReplayTrace trace;
  ReplayResult result;
};

struct Slice {
  uint64_t begin = 0, end = 0;
  std::string name;
  uint64_t bytes = 0;  // of L2 and DRAM
};

using Tracks = std::map<std::string, std::vector<Slice>>;

// Slices by the name of their track, in the order of time; of those that begin together the longest first.
Tracks tracks_of(const json& events) {
  std::map<int, std::string> names;
  Tracks tracks;
  for (const json& event : events) {
    if (event["ph"] == "M" && event["name"] == "thread_name") names[event["tid"]] = event["args"]["name"];
  }
  for (const json& event : events) {
    if (event["ph"] != "X") continue;
    EXPECT_EQ(event["pid"], 3);
    const auto thousandths = [&](const char* key) { return std::llround(event[key].get<double>() * 1000); };
    const int64_t begin = thousandths("ts"), end = begin + thousandths("dur");
    EXPECT_TRUE(names.contains(event["tid"]));
    tracks[names[event["tid"]]].push_back({static_cast<uint64_t>(begin), static_cast<uint64_t>(end),
                                           event["name"].get<std::string>(),
                                           event["args"].value("bytes", uint64_t{0})});
  }
  for (auto& [name, slices] : tracks) {
    std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
  }
  return tracks;
}

bool is_of_warp(const std::string& track) {
  return track.starts_with("warp ");
}

TEST(Trace, ChangesNothing) {
  const Replayed with(1'000'000), without(1'000'000, false), full(10);
  EXPECT_EQ(with.result, without.result);
  EXPECT_EQ(full.result, without.result);
  EXPECT_EQ(without.trace.instructions(), 0U);
}

TEST(Trace, IsTheSameToTheByte) {
  EXPECT_EQ(Replayed(1'000'000).trace.events_json(1, "k"), Replayed(1'000'000).trace.events_json(1, "k"));
}

TEST(Trace, SlicesOfATrackDoNotOverlap) {
  for (const auto& [name, slices] : tracks_of(Replayed(1'000'000).events())) {
    uint64_t end = 0;
    for (const Slice& slice : slices) {
      if (is_of_warp(name) && slice.name.starts_with("block ")) continue;
      EXPECT_GE(slice.begin, end) << name << ": " << slice.name;
      end = slice.end;
    }
  }
}

// A warp issues or waits in every cycle of its life, and no cycle is told twice.
TEST(Trace, WhatAWarpDoesFillsItsLife) {
  int lives = 0;
  uint64_t last = 0;
  const Replayed replayed(1'000'000);
  for (const auto& [name, slices] : tracks_of(replayed.events())) {
    if (!is_of_warp(name)) continue;
    uint64_t at = 0, end = 0;
    for (const Slice& slice : slices) {
      if (slice.name.starts_with("block ")) {
        EXPECT_EQ(at, end) << "the life before was filled";
        ++lives;
        at = slice.begin;
        end = slice.end;
        last = std::max(last, end);
        continue;
      }
      EXPECT_EQ(slice.begin, at) << name << ": " << slice.name;
      at = slice.end;
    }
    EXPECT_EQ(at, end);
  }
  EXPECT_EQ(lives, 5 * 3);
  EXPECT_EQ(last, replayed.result.cycles * 1000);
}

TEST(Trace, TheLastSliceEndsWithTheReplay) {
  const Replayed replayed(1'000'000);
  uint64_t last = 0;
  for (const auto& [name, slices] : tracks_of(replayed.events())) {
    for (const Slice& slice : slices) last = std::max(last, slice.end);
  }
  EXPECT_EQ(last / 1000, replayed.result.passed);
  EXPECT_GT(replayed.result.passed, replayed.result.cycles) << "DRAM takes the stores of the last warp";
}

TEST(Trace, SumsAreThoseOfTheReplay) {
  const Replayed replayed(1'000'000);
  std::map<std::string, uint64_t> cycles;
  uint64_t issued = 0, busy = 0, of_l2 = 0, of_dram = 0;
  for (const auto& [name, slices] : tracks_of(replayed.events())) {
    for (const Slice& slice : slices) {
      if (is_of_warp(name)) cycles[slice.name] += (slice.end - slice.begin) / 1000;
      if (name.starts_with("scheduler ")) issued += (slice.end - slice.begin) / 1000;
      if (name == "load/store unit") busy += (slice.end - slice.begin) / 1000;
      if (name.starts_with("L2")) of_l2 += slice.bytes;
      if (name.starts_with("DRAM")) of_dram += slice.bytes;
    }
  }
  const std::pair<const char*, Stall> causes[] = {
      {"waits: stall count", Stall::counted},     {"waits: global memory", Stall::global},
      {"waits: shared memory", Stall::shared},    {"waits: other result", Stall::other_result},
      {"waits: instruction fetch", Stall::fetch}, {"waits: barrier", Stall::barrier}};
  for (const auto& [name, cause] : causes) {
    EXPECT_EQ(cycles[name], replayed.result.stalled[static_cast<size_t>(cause)]) << name;
  }
  EXPECT_GT(cycles["waits: global memory"], 0U);
  EXPECT_GT(cycles["waits: barrier"], 0U);
  EXPECT_EQ(issued, replayed.result.issued);
  EXPECT_EQ(busy, replayed.result.lsu_busy);
  EXPECT_EQ(of_l2, 32 * replayed.result.l2_sectors + replayed.result.bytes_written);
  EXPECT_EQ(of_dram, replayed.result.dram_bytes_read + replayed.result.dram_bytes_written);
}

TEST(Trace, WhatPassesWithoutAGapIsOneSliceOfUpToSixteenCycles) {
  constexpr uint64_t cycle = 1 << 16;
  ReplayTrace trace(1);
  trace.begin(program(), 1);
  for (uint64_t i = 0; i < 18; ++i) trace.pass(false, i * cycle, (i + 1) * cycle, 32);
  trace.pass(false, 19 * cycle, 20 * cycle, 64);
  std::vector<Slice> slices = tracks_of(json::parse("[" + trace.events_json(3, "k") + "]"))["L2, this SM's share"];
  ASSERT_EQ(slices.size(), 3U);
  EXPECT_EQ(slices[0].end, 16'000U);
  EXPECT_EQ(slices[0].bytes, 16U * 32);
  EXPECT_EQ(slices[1].end, 18'000U) << "a cycle is without";
  EXPECT_EQ(slices[2].begin, 19'000U);
  EXPECT_EQ(slices[2].bytes, 64U);
}

TEST(Trace, TheUnitWorksForAccessesToMemory) {
  std::map<std::string, int> accesses;
  const Tracks tracks = tracks_of(Replayed(1'000'000).events());
  for (const Slice& slice : tracks.at("load/store unit")) ++accesses[slice.name];
  const int warps = 5 * 3;
  EXPECT_EQ(accesses, (std::map<std::string, int>{{"LDG.E", warps}, {"LDS", warps}, {"STG.E", warps}}));
}

TEST(Trace, NamesInstructionsAndTheirAddresses) {
  const std::string text = Replayed(1'000'000).trace.events_json(1, "k");
  EXPECT_THAT(text, HasSubstr(R"("name":"IMAD.WIDE","args":{"warp":0,"address":"0x0040"})"));
}

// Warps 0 and 4, of the first and the second block, could both issue.
TEST(Trace, BeginsWithTheYoungestWarp) {
  for (const json& event : Replayed(1'000'000).events()) {
    if (event["ph"] != "X" || !event["args"].contains("address")) continue;
    EXPECT_EQ(event["args"]["warp"], 4) << event.dump();
    return;
  }
  FAIL() << "nothing is issued";
}

TEST(Trace, EndsAfterSoManyInstructions) {
  const Replayed whole(1'000'000), cut(40);
  EXPECT_TRUE(whole.trace.is_whole());
  EXPECT_TRUE(Replayed(whole.trace.instructions()).trace.is_whole());
  EXPECT_FALSE(cut.trace.is_whole());
  EXPECT_EQ(cut.trace.instructions(), 40U);
  size_t issued = 0;
  for (const auto& [name, slices] : tracks_of(cut.events())) {
    if (name.starts_with("scheduler ")) issued += slices.size();
    for (const Slice& slice : slices) EXPECT_LE(slice.begin, slice.end);
    if (!is_of_warp(name)) continue;
    ASSERT_TRUE(slices.front().name.starts_with("block "));
    for (const Slice& slice : slices) EXPECT_LE(slice.end, slices.front().end) << name << " lives to the end";
  }
  EXPECT_EQ(issued, 40U);
}

}  // namespace
}  // namespace kiln::timing::trace_test
