// Copies to shared memory that a warp does not wait for, their groups, and loads and stores of matrices.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "kiln/timing/replay.h"
#include "machine_code_texts.h"

namespace kiln::timing::asynchronous_copy_test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Field;
using testing::SizeIs;

constexpr uint64_t first_buffer = 0x7f0000000000;

Launch one_warp() {
  Launch launch;
  launch.block = {32, 1, 1};
  return launch;
}

// R0 is the lane, R1 16 times that, R2 and R3 the address 0x1'0000'0000 + 16 times the lane.
Code lanes() {
  Code code;
  code.add("S2R R0, SR_TID.X", sets(0))
      .add("SHF.L.U32 R1, R0, 0x4, RZ", waits(1, 6))
      .add("MOV R2, R1", stall(6))
      .add("MOV R3, 0x1", stall(6));
  return code;
}

BlockPath path_of(const Sass& sass) {
  KernelFacts facts = plain_facts();
  facts.shared_bytes = 16384;
  const Launch launch = one_warp();
  return Interpreter(sass, facts, launch).run(0);
}

// The only copy of `code`.
Access copy_of(Code code, const std::string& copy) {
  const BlockPath path = path_of(code.add(copy, stall(1)).add("EXIT", stall(1)).sass());
  EXPECT_THAT(path.warps[0].accesses, SizeIs(1)) << copy;
  return path.warps[0].accesses.empty() ? Access{} : path.warps[0].accesses[0];
}

size_t sectors_of_copy(Code code, const std::string& copy) {
  return sectors_of(path_of(code.add(copy, stall(1)).add("EXIT", stall(1)).sass())).size();
}

// A copy whose predicate operand is false fills with zeros, and loads nothing.
TEST(AsynchronousCopy, LoadsWhereItsPredicateIsTrue) {
  Code code = lanes();
  code.add("ISETP.LT.U32.AND P0, PT, R0, 0x4, PT", stall(13));
  EXPECT_EQ(sectors_of_copy(code, "LDGSTS.E.BYPASS.128 [R1], [R2.64]"), 16U) << "32 lanes of 16 bytes";
  EXPECT_EQ(sectors_of_copy(code, "LDGSTS.E.BYPASS.128 [R1], [R2.64], P0"), 2U) << "4 lanes";
  EXPECT_EQ(sectors_of_copy(code, "LDGSTS.E.BYPASS.128 [R1], [R2.64], !P0"), 14U);
  EXPECT_EQ(sectors_of_copy(code, "LDGSTS.E.128 [R1], [R2.64], P0"), 2U);
  EXPECT_EQ(sectors_of_copy(code, "@P0 LDGSTS.E.BYPASS.128 [R1], [R2.64], !P0"), 0U);
  EXPECT_EQ(sectors_of_copy(code, "LDGSTS.E.BYPASS.128 [R1], [R2.64], PT"), 16U);
  EXPECT_EQ(sectors_of_copy(code, "LDGSTS.E.BYPASS.128 [R1], [R2.64], !PT"), 0U);
}

TEST(AsynchronousCopy, WritesItsZerosToo) {
  const Access nothing = copy_of(lanes(), "LDGSTS.E.BYPASS.128 [R1], [R2.64], !PT");
  EXPECT_EQ(nothing.lines, 0U);
  EXPECT_EQ(nothing.wavefronts, 4U) << "512 bytes of shared memory";
  EXPECT_EQ(nothing.space, Access::Space::global);
}

// By the banks of shared memory that it writes: 16 bytes of each lane, 128 bytes apart, are of one group of four banks.
TEST(AsynchronousCopy, MeetsTheBanksThatItWrites) {
  Code code = lanes();
  code.add("SHF.L.U32 R4, R0, 0x7, RZ", stall(6));
  EXPECT_EQ(copy_of(code, "LDGSTS.E.BYPASS.128 [R1], [R2.64]").wavefronts, 4U);
  EXPECT_EQ(copy_of(code, "LDGSTS.E.BYPASS.128 [R4], [R2.64]").wavefronts, 32U);
  EXPECT_EQ(copy_of(code, "LDGSTS.E.128 [R4], [R2.64]").wavefronts, 32U) << "also where it leaves data in L1";
}

// nvcc adds 16 - size to the address of a copy of fewer bytes than 16.
TEST(AsynchronousCopy, OfFewerBytesBeginsAtItsPiece) {
  Code code = lanes();
  code.add("LOP3.LUT R2, R2, 0xc, RZ, 0xfc, !PT", stall(6));
  EXPECT_EQ(sectors_of_copy(code, "LDGSTS.E.128.ZFILL [R1], [R2.64], PT"), 16U);
}

// NVRTC's code for a source size of 0: 7 of 32 lanes load.
TEST(AsynchronousCopy, OfAPaddedTileAsksForWhatIsInside) {
  const auto compiled = compile("zero_fill.cu", "sm_80", {});
  if (!compiled) GTEST_SKIP() << "no nvdisasm";
  for (const uint32_t inside : {0U, 7U, 32U}) {
    Launch launch = one_warp();
    launch.parameters.append(reinterpret_cast<const char*>(&first_buffer), sizeof first_buffer);
    launch.parameters.append(reinterpret_cast<const char*>(&first_buffer), sizeof first_buffer);
    launch.parameters.append(reinterpret_cast<const char*>(&inside), sizeof inside);
    const BlockPath path = Interpreter(compiled->sass, compiled->facts, launch).run(0);
    size_t loaded = 0, copies = 0;
    for (const Executed& executed : path.warps[0].executed) {
      if (compiled->sass.instructions[executed.instruction].opcode != "LDGSTS") continue;
      ++copies;
      loaded += path.warps[0].accesses.at(executed.access).lines;
    }
    EXPECT_EQ(copies, 1U);
    EXPECT_EQ(loaded, (inside * 16 + 127) / 128) << inside;
  }
}

// x1, x2 and x4 of a matrix of eight rows of 16 bytes take a pass each, if rows are apart by a whole number of rows
// that do not meet.
TEST(MatrixLoads, TakeAPassForEachMatrix) {
  const auto passes = [](const std::string& access, uint32_t shift) {
    Code code = lanes();
    code.add(fmt::format("SHF.L.U32 R1, R0, {:#x}, RZ", shift), stall(6));
    return copy_of(code, access).wavefronts;
  };
  EXPECT_EQ(passes("LDSM.16.M88 R4, [R1]", 4), 1U);
  EXPECT_EQ(passes("LDSM.16.M88.2 R4, [R1]", 4), 2U);
  EXPECT_EQ(passes("LDSM.16.M88.4 R4, [R1]", 4), 4U);
  EXPECT_EQ(passes("LDSM.16.MT88.4 R4, [R1]", 4), 4U);
  EXPECT_EQ(passes("LDSM.16.M88.4 R4, [R1]", 5), 8U) << "rows of 32 bytes: two rows in each group of banks";
  EXPECT_EQ(passes("LDSM.16.M88.4 R4, [R1]", 6), 16U);
  EXPECT_EQ(passes("LDSM.16.M88.4 R4, [R1]", 7), 32U);
  EXPECT_EQ(passes("LDSM.16.M88 R4, [R1]", 7), 8U) << "eight lanes give its rows";
  EXPECT_EQ(passes("STSM.16.M88.4 [R1], R4", 4), 4U);
  EXPECT_EQ(passes("STSM.16.M88.2 [R1], R4", 7), 16U);
}

// Four warps with a matrix of 512 bytes each, over and over: 128 bytes a cycle for the whole SM.
TEST(MatrixLoads, GetTheSharedMemorysRate) {
  Code code = lanes();
  for (int i = 0; i < 64; ++i) code.add("LDSM.16.M88.4 R4, [R1]", sets(1));
  const Sass sass = code.add("EXIT", waits(2)).sass();
  KernelFacts facts = plain_facts();
  facts.shared_bytes = 16384;
  Launch launch;
  launch.block = {128, 1, 1};
  Interpreter interpreter(sass, facts, launch);
  ReplaySetup setup;
  setup.path = [&](uint32_t n) { return std::make_shared<const BlockPath>(interpreter.run(n)); };
  for (const char* name : {"a100", "l40s"}) {
    const ReplayResult result = replay(sass, card_with_code_at_hand(name), setup);
    EXPECT_NEAR(static_cast<double>(result.cycles), 64.0 * 4 * 4, 100) << name;
  }
}

// A warp asks for a cold line, then for one that is in L1 by then, in groups of their own. Waiting until one group is
// left waits for the first alone: it comes from DRAM, and the second, of many lines, long behind it.
TEST(CopyGroups, AreWaitedForInTheirOrder) {
  const auto cycles = [](const std::string& wait) {
    Code code = lanes();
    code.add("LDGSTS.E.BYPASS.128 [R1], [R2.64]", stall(2)).add("LDGDEPBAR", sets(0, 2));
    for (int i = 1; i <= 64; ++i) {
      code.add(fmt::format("LDGSTS.E.BYPASS.128 [R1+0x200], [R2.64+{:#x}]", i * 512), stall(2));
    }
    code.add("LDGDEPBAR", sets(0, 2));
    if (!wait.empty()) code.add(wait, stall(1));
    const Sass sass = code.add("EXIT", stall(1)).sass();
    ReplaySetup setup;
    setup.path = [&](uint32_t) { return std::make_shared<const BlockPath>(path_of(sass)); };
    return replay(sass, card_with_code_at_hand("a100"), setup).cycles;
  };
  const Card card = find_card("a100");
  const uint64_t none = cycles(""), first = cycles("DEPBAR.LE SB0, 0x1"), both = cycles("DEPBAR.LE SB0, 0x0");
  EXPECT_LT(none, first);
  EXPECT_GT(first, card.dram_latency);
  EXPECT_LT(first, card.dram_latency + 300);
  // 64 copies of 512 bytes at the SM's share of DRAM.
  const double share = card.dram_gbs * 1e3 / card.clock_mhz / card.sms;
  EXPECT_GT(static_cast<double>(both), 64 * 512 / share);
  EXPECT_EQ(cycles("DEPBAR.LE SB0, 0x2"), none + 1) << "two groups may be left";
}

}  // namespace
}  // namespace kiln::timing::asynchronous_copy_test
