#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/timing/time_model.h"
#include "machine_code_texts.h"

namespace kiln::timing::model_test {
namespace {

Occupancy occupancy_of(uint32_t threads, int registers, uint32_t shared) {
  KernelFacts facts = plain_facts();
  facts.registers = registers;
  facts.shared_bytes = shared;
  Launch launch;
  launch.block = {threads, 1, 1};
  return occupancy(facts, launch, find_card("a100"));
}

// By NVIDIA's occupancy calculator for 8.0.
TEST(Occupancy, TakesTheScarcest) {
  EXPECT_EQ(occupancy_of(32, 16, 0).blocks, 32U);
  EXPECT_EQ(occupancy_of(32, 16, 0).limit, "blocks");
  EXPECT_EQ(occupancy_of(256, 32, 0).blocks, 8U);
  EXPECT_EQ(occupancy_of(256, 32, 0).limit, "warps");
  EXPECT_EQ(occupancy_of(256, 128, 0).blocks, 2U);
  EXPECT_EQ(occupancy_of(256, 128, 0).limit, "registers");
  EXPECT_EQ(occupancy_of(128, 16, 48 * 1024).blocks, 3U);
  EXPECT_EQ(occupancy_of(128, 16, 48 * 1024).limit, "shared memory");
  EXPECT_THROW(occupancy_of(1024, 255, 0), Error);
  EXPECT_THROW(occupancy_of(32, 16, ~uint32_t{0}), Error);
}

Sass loads() {
  return Code()
      .add("S2R R0, SR_TID.X", sets(0))
      .add("S2R R1, SR_CTAID.X", sets(0))
      .add("IMAD R0, R1, 0x100, R0", waits(1, 5))
      .add("IMAD.WIDE.U32 R2, R0, 0x4, RZ", stall(5))
      .add("LDG.E R4, [R2.64]", sets(0))
      .add("FADD R5, R4, R4", waits(1, 4))
      .add("EXIT", stall(1))
      .sass();
}

// Every block reads 1 KB of its own: as many waves as there are, DRAM bounds it.
TEST(Model, AStreamTakesWhatDramGives) {
  Launch launch;
  launch.block = {256, 1, 1};
  launch.grid = {1 << 20, 1, 1};
  const ModelledTime time = model_time(loads(), plain_facts(), launch, find_card("a100"));
  EXPECT_EQ(time.dram_share, 1);
  EXPECT_NEAR(time.seconds, 1024.0 * (1 << 20) / 1.4e12, 0.05 * time.seconds);
  EXPECT_THAT(time.bound, testing::HasSubstr("DRAM"));
}

TEST(Model, TellsTheLoadOfEveryUnit) {
  const ModelledTime time = model_time(loads(), plain_facts(), Launch{}, find_card("a100"));
  std::vector<std::string> names;
  for (const auto& [name, share] : time.units) names.push_back(name);
  EXPECT_THAT(names,
              testing::UnorderedElementsAre("issue", "fma", "imad", "alu", "half", "fp64", "special", "uniform",
                                            "tensor", "branch", "load/store unit", "instruction cache", "L2", "DRAM"));
}

TEST(Model, MoreBlocksThan32BitsCountTakeLonger) {
  Card card = find_card("a100");
  card.sms = 1;
  Launch launch;
  launch.grid = {1 << 30, 4, 1};
  const ModelOptions few{.instructions = 1000};
  const Sass sass = Code().add("EXIT", stall(1)).sass();
  const double seconds = model_time(sass, plain_facts(), launch, card, few).seconds;
  launch.grid = {1 << 30, 2, 1};
  EXPECT_NEAR(seconds, 2 * model_time(sass, plain_facts(), launch, card, few).seconds, 0.01 * seconds);
}

TEST(Model, AWaveMoreTakesMoreTime) {
  Launch launch;
  launch.block = {256, 1, 1};
  const auto seconds = [&](uint32_t blocks) {
    launch.grid = {blocks, 1, 1};
    return model_time(loads(), plain_facts(), launch, find_card("a100")).seconds;
  };
  EXPECT_GT(seconds(108 * 8 + 1), seconds(108 * 8));
}

// Each block reads `loads` KB of its own.
double seconds_of_stream(uint32_t blocks, int loads) {
  Code code;
  code.add("S2R R0, SR_TID.X", sets(0)).add("S2R R1, SR_CTAID.X", sets(0));
  code.add("IMAD R0, R1, 0x100, R0", waits(1, 5)).add("IMAD.WIDE.U32 R2, R0, 0x4, RZ", stall(5));
  for (int i = 0; i < loads; ++i) code.add(fmt::format("LDG.E R4, [R2.64+{:#x}]", i << 21), sets(0));
  code.add("FADD R5, R4, R4", waits(1, 4)).add("EXIT", stall(1));
  Launch launch;
  launch.block = {256, 1, 1};
  launch.grid = {blocks, 1, 1};
  return model_time(code.sass(), plain_facts(), launch, find_card("a100")).seconds;
}

// The time of 64 KB more for each block: the start of a launch and latencies count in both.
double seconds_of_64_kb(uint32_t blocks) {
  return seconds_of_stream(blocks, 128) - seconds_of_stream(blocks, 64);
}

// DRAM serves whoever asks: SMs without blocks leave it to the others.
TEST(Model, FewBlocksShareDramAmongThemselves) {
  const Card card = find_card("a100");
  for (const uint32_t blocks : {54U, 80U, 108U, 216U}) {
    const double by_dram = blocks * 65536 / (card.dram_gbs * 1e9);
    EXPECT_NEAR(seconds_of_64_kb(blocks), by_dram, 0.02 * by_dram) << blocks;
  }
  const double by_l2 = 65536 / (card.l2_bytes_per_clock * card.clock_mhz * 1e6);
  EXPECT_NEAR(seconds_of_64_kb(1), by_l2, 0.02 * by_l2) << "L2 gives an SM no more";
  EXPECT_EQ(seconds_of_stream(2, 64), seconds_of_stream(1, 64));
}

// Blocks that read the same find it in L2, but for the first.
TEST(Model, NeighboursShareL2) {
  const Sass sass =
      Code().add("LDG.E R4, [RZ]", sets(0)).add("FADD R5, R4, R4", waits(1, 4)).add("EXIT", stall(1)).sass();
  Launch launch;
  launch.block = {256, 1, 1};
  launch.grid = {4000, 1, 1};
  EXPECT_NEAR(model_time(sass, plain_facts(), launch, find_card("a100")).dram_share, 1.0 / 4000, 1e-9);
}

// Local memory of 864 blocks that run at once is 27 MB, or four times that; an A100's L2 holds 40 MiB.
TEST(Model, LocalMemoryThatL2CannotHoldIsInDram) {
  const Sass sass = Code().add("STL [RZ], R2", stall(1)).add("EXIT", stall(1)).sass();
  const auto written = [&](uint32_t bytes, uint32_t blocks) {
    KernelFacts facts = plain_facts();
    facts.local_bytes = bytes;
    Launch launch;
    launch.block = {256, 1, 1};
    launch.grid = {blocks, 1, 1};
    const ReplayResult replayed = model_time(sass, facts, launch, find_card("a100")).replayed;
    return static_cast<double>(replayed.dram_bytes_written) / static_cast<double>(replayed.bytes_written);
  };
  EXPECT_EQ(written(128, 4000), 0);
  EXPECT_NEAR(written(512, 4000), 1 - 40 * 1024.0 * 1024 / (864 * 256 * 512), 0.01);
  EXPECT_EQ(written(512, 200), 0) << "few blocks";
}

// As loads(), and stores as much `away` bytes behind that, also by reductions another `away` behind.
Sass loads_and_stores(uint64_t away) {
  return Code()
      .add("S2R R0, SR_TID.X", sets(0))
      .add("S2R R1, SR_CTAID.X", sets(0))
      .add("IMAD R0, R1, 0x100, R0", waits(1, 5))
      .add("IMAD.WIDE.U32 R2, R0, 0x4, RZ", stall(5))
      .add("LDG.E R4, [R2.64]", sets(0))
      .add("FADD R5, R4, R4", waits(1, 4))
      .add(fmt::format("STG.E [R2.64+{:#x}], R5", away), stall(1))
      .add(fmt::format("RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R2.64+{:#x}], R5", 2 * away), stall(1))
      .add("EXIT", stall(1))
      .sass();
}

Launch blocks_of_1_kb(uint32_t blocks) {
  Launch launch;
  launch.block = {256, 1, 1};
  launch.grid = {blocks, 1, 1};
  return launch;
}

TEST(Model, LoadsFromL2WhatTheLaunchBeforeStored) {
  Launch launch = blocks_of_1_kb(10'000);
  const auto time = [&] { return model_time(loads(), plain_facts(), launch, find_card("a100")); };
  const ModelledTime cold = time();
  EXPECT_EQ(cold.replayed.dram_bytes_read, cold.replayed.l2_sectors * 32);
  launch.in_l2 = {{0, 10'000 * 1024}};
  const ModelledTime warm = time();
  EXPECT_EQ(warm.dram_share, 0);
  EXPECT_EQ(warm.replayed.dram_bytes_read, 0U);
  EXPECT_LT(warm.replayed.cycles, 0.7 * static_cast<double>(cold.replayed.cycles));
  launch.in_l2.clear();
  for (uint64_t block = 0; block < 10'000; ++block) launch.in_l2.push_back({block * 1024, block * 1024 + 256});
  EXPECT_EQ(time().dram_share, 0.75);
  launch.grid = {1, 1, 1};
  launch.in_l2 = {{0, 256}};
  EXPECT_EQ(time().dram_share, 0.75) << "of 1024 bytes, the first 256";
  launch.grid = {10'000, 1, 1};
  launch.in_l2 = {{uint64_t{1} << 40, uint64_t{1} << 41}};
  EXPECT_EQ(time().seconds, cold.seconds) << "something else";
}

TEST(Model, TellsWhatIsStored) {
  const auto stored = [](const Sass& code, const Launch& launch) {
    return model_time(code, plain_facts(), launch, find_card("a100")).stored;
  };
  EXPECT_THAT(stored(loads(), blocks_of_1_kb(10)), testing::IsEmpty());
  EXPECT_THAT(
      stored(loads_and_stores(0x400000), blocks_of_1_kb(10)),
      testing::ElementsAre(AddressRange{0x400000, 0x400000 + 10 * 1024}, AddressRange{0x800000, 0x800000 + 10 * 1024}));
  EXPECT_THAT(stored(loads_and_stores(1024), blocks_of_1_kb(1)), testing::ElementsAre(AddressRange{1024, 3 * 1024}));
}

// The word at address 0x800 is where the first store goes.
TEST(Model, TellsWhatIsStoredOnlyIfItIsKnownWhere) {
  const Sass code = Code()
                        .add("MOV R2, 0x800", stall(5))
                        .add("MOV R3, RZ", stall(5))
                        .add("LDG.E R4, [R2.64]", sets(0))
                        .add("IMAD.WIDE.U32 R4, R4, 0x4, RZ", waits(1, 5))
                        .add("STG.E [R4.64], R2", stall(1))
                        .add("STG.E [R2.64+0x100], R2", stall(1))
                        .add("EXIT", stall(1))
                        .sass();
  Launch launch;
  launch.block = {32, 1, 1};
  const ModelledTime unknown = model_time(code, plain_facts(), launch, find_card("a100"));
  EXPECT_THAT(unknown.stored, testing::ElementsAre(AddressRange{0x900, 0x904}));
  EXPECT_EQ(unknown.report.unknown_addresses, 1U);
  launch.memory = [](uint64_t address, uint32_t& word) {
    word = 0x1000;
    return address == 0x800;
  };
  EXPECT_THAT(model_time(code, plain_facts(), launch, find_card("a100")).stored,
              testing::ElementsAre(AddressRange{0x900, 0x904}, AddressRange{0x4000, 0x4004}));
}

// Few blocks are replayed, from the middle of the grid on.
TEST(Model, TellsOfAMistakeThatTheFirstBlockAloneComesTo) {
  const Sass code = Code()
                        .add("S2R R1, SR_CTAID.X", sets(0))
                        .add("ISETP.NE.AND P0, PT, R1, RZ, PT", waits(1, 13))
                        .add("@P0 EXIT", stall(5))
                        .add("MOV", stall(5))
                        .add("EXIT", stall(1))
                        .sass();
  try {
    (void)model_time(code, plain_facts(), blocks_of_1_kb(100'000), find_card("a100"), {.instructions = 2000});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::parse_error);
    EXPECT_THAT(error.what(), testing::HasSubstr("lacks an operand"));
  }
}

// The second warp of the block never leaves its loop.
TEST(Model, TellsOfAMistakeBehindABarrierThatAWarpDoesNotReach) {
  const Sass code = Code()
                        .add("S2R R0, SR_TID.X", sets(0))
                        .add("ISETP.GE.U32.AND P0, PT, R0, 0x20, PT", waits(1, 13))
                        .label(".L_1")
                        .add("@P0 BRA `(.L_1)", stall(5))
                        .add("BAR.SYNC 0x0", stall(5))
                        .add("MOV", stall(5))
                        .add("EXIT", stall(1))
                        .sass();
  Launch launch;
  launch.block = {64, 1, 1};
  launch.instruction_limit = 100;
  try {
    (void)model_time(code, plain_facts(), launch, find_card("a100"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::parse_error) << error.what();
    EXPECT_THAT(error.what(), testing::HasSubstr("lacks an operand"));
  }
}

// Block c of 11 stores the (c * (10 - c))-th kilobyte: those in the middle the furthest.
TEST(Model, TellsWhatTheMiddleBlockStores) {
  const Sass code = Code()
                        .add("S2R R0, SR_TID.X", sets(0))
                        .add("S2R R1, SR_CTAID.X", sets(0))
                        .add("IMAD R5, R1, 0xffffffff, RZ", waits(1, 5))
                        .add("IADD3 R5, R5, 0xa, RZ", stall(5))
                        .add("IMAD R5, R1, R5, RZ", stall(5))
                        .add("IMAD R0, R5, 0x100, R0", stall(5))
                        .add("IMAD.WIDE.U32 R2, R0, 0x4, RZ", stall(5))
                        .add("STG.E [R2.64+0x400000], R5", stall(1))
                        .add("EXIT", stall(1))
                        .sass();
  const ModelledTime time = model_time(code, plain_facts(), blocks_of_1_kb(11), find_card("a100"));
  EXPECT_THAT(time.stored, testing::ElementsAre(AddressRange{0x400000, 0x400000 + 26 * 1024}));
}

TEST(Model, TakesWhatTheLaunchStoresItselfFromDramInEveryRun) {
  const Sass in_place = loads_and_stores(0);
  Launch launch = blocks_of_1_kb(10'000);
  const ModelledTime first = model_time(in_place, plain_facts(), launch, find_card("a100"));
  launch.in_l2 = first.stored;
  const ModelledTime second = model_time(in_place, plain_facts(), launch, find_card("a100"));
  EXPECT_EQ(second.dram_share, 1);
  EXPECT_EQ(second.seconds, first.seconds);
}

// Four kinds of blocks take turns: each loads what those of its kind did, and stores what is no matter here.
TEST(Model, BlocksOfTheSameKindShareL2) {
  Code code;
  code.add("S2R R0, SR_CTAID.X", sets(0)).add("LOP3.LUT R0, R0, 0x3, RZ, 0xc0, !PT", waits(1, 5));
  code.add("IMAD.WIDE.U32 R2, R0, 0x1000, RZ", stall(5)).add("LDG.E R4, [R2.64]", sets(0));
  code.add("FADD R5, R4, R4", waits(1, 4)).add("STG.E [R2.64+0x100000], R5", stall(1)).add("EXIT", stall(5));
  Launch launch;
  launch.block = {256, 1, 1};
  launch.grid = {4001, 1, 1};
  EXPECT_NEAR(model_time(code.sass(), plain_facts(), launch, find_card("a100")).dram_share, 4.0 / 4001, 1e-9);
}

// Tile `block` modulo 12 of 1 KB: no block at a distance of a power of two loads the same.
TEST(Model, BlocksOfTheSameColumnShareL2) {
  const Sass sass = Code()
                        .add("S2R R1, SR_CTAID.X", sets(0))
                        .add("S2R R0, SR_TID.X", sets(0))
                        .add("IMAD.HI.U32 R3, R1, 0x15555556, RZ", waits(1, 5))
                        .add("IMAD R1, R3, -0xc, R1", stall(5))
                        .add("IMAD R0, R1, 0x100, R0", stall(5))
                        .add("IMAD.WIDE.U32 R2, R0, 0x4, RZ", stall(5))
                        .add("LDG.E R4, [R2.64]", sets(0))
                        .add("FADD R5, R4, R4", waits(1, 4))
                        .add("EXIT", stall(1))
                        .sass();
  const auto share = [&](uint32_t blocks) {
    return model_time(sass, plain_facts(), blocks_of_1_kb(blocks), find_card("a100")).dram_share;
  };
  EXPECT_NEAR(share(12 * 300), 1.0 / 300, 1e-9);
  EXPECT_EQ(share(4100), 0) << "windows overlap";
  EXPECT_EQ(share(12 * 3000), 0) << "the first loads are seen in grids of up to 4096 blocks";
}

// Row y of blocks loads what row 0 does.
TEST(Model, FirstLoadsCountInAGridThatWalksItsOperandsSeveralTimes) {
  for (const uint32_t rows : {1U, 2U, 3U}) {
    Launch launch = blocks_of_1_kb(800);
    launch.grid[1] = rows;
    const ModelledTime time = model_time(loads(), plain_facts(), launch, find_card("a100"));
    EXPECT_NEAR(time.dram_share, 1.0 / rows, 1e-9);
    EXPECT_NEAR(static_cast<double>(time.replayed.dram_bytes_read), 800 * 1024 / 108, 1024) << rows;
  }
}

TEST(Model, DramIsNeverBusyForLongerThanTheLaunch) {
  const ModelledTime time =
      model_time(loads_and_stores(1 << 20), plain_facts(), blocks_of_1_kb(864), find_card("a100"));
  const auto dram = std::find_if(time.units.begin(), time.units.end(), [](const auto& u) { return u.first == "DRAM"; });
  ASSERT_NE(dram, time.units.end());
  EXPECT_LE(dram->second, 1);
  EXPECT_GT(dram->second, 0.5);
  EXPECT_GE(time.seconds, 864 * 3 * 1024 / 1.4e12);
}

// Each block loads a kilobyte of its own by the first pointer, and by the second one that all load.
TEST(Model, EachOperandHasAShareOfDram) {
  const Sass sass = Code()
                        .add("S2R R0, SR_TID.X", sets(0))
                        .add("S2R R1, SR_CTAID.X", sets(0))
                        .add("IMAD.SHL.U32 R6, R0, 0x4, RZ", waits(1, 5))
                        .add("IMAD R0, R1, 0x400, R6", stall(5))
                        .add("IADD3 R2, P0, R0, c[0x0][0x160], RZ", stall(5))
                        .add("IADD3.X R3, RZ, c[0x0][0x164], RZ, P0, !PT", stall(5))
                        .add("IADD3 R4, P0, R6, c[0x0][0x168], RZ", stall(5))
                        .add("IADD3.X R5, RZ, c[0x0][0x16c], RZ, P0, !PT", stall(5))
                        .add("LDG.E R8, [R2.64]", sets(0))
                        .add("LDG.E R9, [R4.64]", sets(1))
                        .add("FADD R5, R8, R9", waits(3, 4))
                        .add("EXIT", stall(1))
                        .sass();
  KernelFacts facts = plain_facts();
  facts.parameter_bytes = 16;
  Launch launch = blocks_of_1_kb(10'000);
  for (const uint64_t pointer : {uint64_t{0x7f0000000000}, uint64_t{0x7f1000000000}}) {
    launch.parameters.append(reinterpret_cast<const char*>(&pointer), sizeof pointer);
  }
  const ModelledTime time = model_time(sass, facts, launch, find_card("a100"));
  EXPECT_NEAR(time.dram_share, 0.5, 0.01);
  EXPECT_EQ(time.replayed.dram_bytes_read, time.replayed_blocks * 1024);
}

// Each warp goes `turns` times through a loop: two loads of lines of its own, sums, and if `synchronised` a barrier.
// The loads of a turn are 2 MB behind those of the one before, or a multiple of that: grids of more blocks would share
// lines.
Sass loop(uint32_t turns, bool synchronised, uint32_t megabytes = 2) {
  Code code;
  code.add("S2R R0, SR_TID.X", sets(0)).add("S2R R1, SR_CTAID.X", sets(0)).add("IMAD R0, R1, 0x100, R0", waits(1, 5));
  code.add("IMAD.WIDE.U32 R2, R0, 0x4, RZ", stall(5)).add("MOV R6, RZ", stall(5)).label(".L_1");
  code.add("LDG.E R4, [R2.64]", sets(0)).add("LDG.E R5, [R2.64+0x80]", sets(0));
  code.add(fmt::format("IADD3 R2, R2, {:#x}, RZ", megabytes << 20), waits(1, 5)).add("IADD3 R6, R6, 0x1, RZ", stall(5));
  for (int i = 0; i < 12; ++i) code.add("FFMA R8, R4, R5, R8", stall(4));
  if (synchronised) code.add("BAR.SYNC 0x0", stall(5));
  code.add(fmt::format("ISETP.GE.U32.AND P0, PT, R6, {:#x}, PT", turns), stall(13));
  code.add("@!P0 BRA `(.L_1)", stall(5)).add("STG.E [R2.64], R8", stall(1)).add("EXIT", stall(5));
  return code.sass();
}

ModelledTime time_of_loop(uint32_t turns, bool synchronised, uint64_t instructions) {
  Launch launch;
  launch.block = {256, 1, 1};
  launch.grid = {108 * 12, 1, 1};  // a full set and a half
  ModelOptions options;
  options.instructions = instructions;
  return model_time(loop(turns, synchronised), plain_facts(), launch, find_card("a100"), options);
}

// 64 warps go through 600 turns of 18 instructions: 700,000 of them.
TEST(Model, PathsThatAreCutTakeTheTimeOfWholeOnes) {
  for (const bool synchronised : {false, true}) {
    const ModelledTime cut = time_of_loop(600, synchronised, 60'000),
                       whole = time_of_loop(600, synchronised, 10'000'000);
    EXPECT_LT(cut.path_share, 0.1);
    EXPECT_EQ(whole.path_share, 1);
    EXPECT_LT(cut.replayed.issued, 70'000U);
    EXPECT_NEAR(cut.seconds, whole.seconds, 0.03 * whole.seconds) << synchronised;
  }
}

// A few sets of resident blocks are replayed, of hundreds.
TEST(Model, SampledBlocksTakeTheTimeOfAll) {
  const auto compare = [](const Sass& sass, uint32_t blocks, uint64_t instructions) {
    Launch launch;
    launch.block = {256, 1, 1};
    launch.grid = {blocks, 1, 1};
    ModelOptions few, all;
    few.instructions = instructions;
    all.instructions = 100'000'000;
    const ModelledTime sampled = model_time(sass, plain_facts(), launch, find_card("a100"), few),
                       whole = model_time(sass, plain_facts(), launch, find_card("a100"), all);
    EXPECT_LT(sampled.replayed_blocks, whole.replayed_blocks / 20);
    EXPECT_EQ(whole.replayed_blocks, (blocks + 107) / 108);
    EXPECT_NEAR(sampled.seconds, whole.seconds, 0.02 * whole.seconds);
  };
  compare(loads(), 108 * 1000 + 7, 2000);
  compare(loop(10, false, 128), 108 * 1000 + 7, 60'000);
  compare(loop(10, true, 128), 108 * 1000, 60'000);
}

// The blocks of the last row end at once.
TEST(Model, ABlockAtTheEdgeCountsForWhatItDoes) {
  const Sass sass = Code()
                        .add("S2R R0, SR_CTAID.Y", sets(0))
                        .add("ISETP.EQ.AND P0, PT, R0, 0x1, PT", waits(1, 13))
                        .add("@P0 EXIT", stall(5))
                        .add("FFMA R1, R1, R1, R1", stall(15))
                        .add("FFMA R1, R1, R1, R1", stall(15))
                        .add("FFMA R1, R1, R1, R1", stall(15))
                        .add("EXIT", stall(5))
                        .sass();
  Launch launch;
  launch.block = {32, 1, 1};
  ModelOptions options;
  options.instructions = 2000;
  const auto seconds = [&](uint32_t rows) {
    launch.grid = {100'000, rows, 1};
    return model_time(sass, plain_facts(), launch, find_card("a100"), options).seconds - 2.2e-6;  // of the launch
  };
  EXPECT_NEAR(seconds(2), seconds(1) * (7 + 3) / 7, 0.05 * seconds(1));
}

// Every fourth block ends at once, the first too; the others go through `turns` turns of a loop.
ModelledTime time_of_idle_blocks(uint32_t blocks, uint32_t turns, uint64_t instructions, const std::string& idle) {
  Code code;
  code.add("S2R R0, SR_CTAID.X", sets(0)).add("LOP3.LUT R0, R0, 0x3, RZ, 0xc0, !PT", waits(1, 5));
  code.add("ISETP.EQ.AND P0, PT, R0, " + idle + ", PT", stall(13)).add("@P0 EXIT", stall(5));
  code.add("MOV R6, RZ", stall(5)).label(".L_1").add("FFMA R1, R1, R1, R1", stall(15));
  code.add("IADD3 R6, R6, 0x1, RZ", stall(5));
  code.add(fmt::format("ISETP.GE.U32.AND P0, PT, R6, {:#x}, PT", turns), stall(13));
  code.add("@!P0 BRA `(.L_1)", stall(5)).add("EXIT", stall(5));
  Launch launch;
  launch.block = {64, 1, 1};
  launch.grid = {blocks, 1, 1};
  return model_time(code.sass(), plain_facts(), launch, find_card("a100"), {.instructions = instructions});
}

// No block has a number that is 4 modulo 4.
TEST(Model, TheBusiestSmEndsLast) {
  for (const uint32_t blocks : {50U, 108U, 2 * 108U}) {
    EXPECT_EQ(time_of_idle_blocks(blocks, 100, 3'000'000, "0x0").seconds,
              time_of_idle_blocks(blocks, 100, 3'000'000, "0x4").seconds)
        << blocks;
  }
}

TEST(Model, TheBusiestSmEndsLastWherePathsAreCut) {
  const ModelledTime some = time_of_idle_blocks(108, 5000, 1000, "0x0"),
                     all = time_of_idle_blocks(108, 5000, 1000, "0x4");
  EXPECT_LT(some.path_share, 1);
  EXPECT_EQ(some.seconds, all.seconds);
}

// The first warps of the first and of the last of 1,296 blocks tell it.
TEST(Model, TellsWhatIsStoredBehindLongLoops) {
  const ModelledTime cut = time_of_loop(600, false, 60'000);
  EXPECT_LT(cut.path_share, 1);
  const uint64_t behind = uint64_t{600} << 21;
  EXPECT_THAT(cut.stored, testing::ElementsAre(AddressRange{behind, behind + 1295 * 1024 + 128}));
}

TEST(Model, ShortLoopsAreNotCut) {
  EXPECT_EQ(time_of_loop(20, false, 1000).path_share, 1);
}

}  // namespace
}  // namespace kiln::timing::model_test
