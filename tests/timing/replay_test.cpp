// Programs whose cycles can be counted by hand, on a card of round figures.
#include "kiln/timing/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"
#include "kiln/timing/time_model.h"
#include "machine_code_texts.h"

namespace kiln::timing::replay_test {
namespace {

Card round_card() {
  return card_with_code_at_hand("a100");
}

ReplayResult run(const Sass& sass, const Card& card, uint32_t warps, uint32_t blocks = 1, uint32_t resident = 1,
                 uint32_t local_dram = 0) {
  const KernelFacts facts = [] {
    KernelFacts plain = plain_facts();
    plain.shared_bytes = 16384;
    return plain;
  }();
  Launch launch;
  launch.block = {warps * 32, 1, 1};
  launch.grid = {blocks, 1, 1};
  launch.parameters = std::string(16, '\0');
  Interpreter interpreter(sass, facts, launch);
  ReplaySetup setup;
  setup.blocks = blocks;
  setup.resident_blocks = resident;
  setup.l1_bytes = 131072;
  setup.local_dram = local_dram;
  setup.path = [&](uint32_t n) { return std::make_shared<const BlockPath>(interpreter.run(n)); };
  return replay(sass, card, setup);
}

// `count` instructions and EXIT.
Sass repeated(const std::string& instruction, int count, const Control& control) {
  Code code;
  for (int i = 0; i < count; ++i) code.add(instruction, control);
  return code.add("EXIT", stall(1)).sass();
}

// A warp starts at cycle 1. Each of 100 waits the 4 cycles that the compiler counted; EXIT comes at 401 and takes one.
TEST(Replay, ConversionsHaveARateOfTheirOwn) {
  Card card = round_card();
  card.convert_cycles = 2;
  const Sass conversions = repeated("I2F R1, R2", 100, stall(1)), others = repeated("MUFU.RCP R1, R2", 100, stall(1));
  EXPECT_EQ(run(conversions, card, 1).pipe_busy[static_cast<size_t>(Pipe::special)], 200U);
  EXPECT_EQ(run(others, card, 1).pipe_busy[static_cast<size_t>(Pipe::special)], 800U);
}

// Within the ranges of their figures, rates may be next to nothing.
TEST(Replay, SlowTensorUnitsTakeLong) {
  const auto cycles = [](const std::string& instruction, const Card& card) {
    return run(repeated(instruction, 1, stall(1)), card, 1).pipe_busy[static_cast<size_t>(Pipe::tensor)];
  };
  Card card = round_card();
  card.tensor_fp8 = card.tensor_half = card.mma_percent = 1;
  card.tensor_float = 10;
  EXPECT_EQ(cycles("QMMA.16832.F16.E4M3 R4, R4, R8, R4", card), 16U * 8 * 32 * 100);
  EXPECT_EQ(cycles("HMMA.16816.F16 R4, R4, R8, R4", card), 16U * 8 * 16 * 100);
  card.tensor_fp8 = card.tensor_half = 8192;
  card.tensor_float = 1;
  card.mma_percent = 64;  // 2^32 in a rate of 32 bits is 0
  EXPECT_EQ(cycles("QMMA.16832.F16.E4M3 R4, R4, R8, R4", card), 1U);
}

TEST(Replay, ShapesThatAreNotReadAreTakenForTheUsualOne) {
  const auto cycles = [](const std::string& instruction) {
    return run(repeated(instruction, 1, stall(1)), round_card(), 1).pipe_busy[static_cast<size_t>(Pipe::tensor)];
  };
  EXPECT_EQ(cycles("HMMA.168.F32 R4, R4, R8, R4"), cycles("HMMA.16816.F32 R4, R4, R8, R4"));
  EXPECT_EQ(cycles("HMMA.88.F32 R4, R4, R8, R4"), cycles("HMMA.16816.F32 R4, R4, R8, R4"));
}

TEST(Replay, ADependentChainTakesTheCompilersStalls) {
  EXPECT_EQ(run(repeated("FFMA R2, R2, R4, R5", 100, stall(4)), round_card(), 1).cycles, 402U);
}

// Without dependences, the pipe of 16 lanes takes a warp's instruction every 2 cycles, however many warps there are.
TEST(Replay, AFullPipeTakesItsInterval) {
  const Sass sass = repeated("FFMA R2, R3, R4, R5", 100, stall(1));
  EXPECT_EQ(run(sass, round_card(), 1).cycles, 1 + 99 * 2 + 1 + 1U);  // the last EXIT follows the last FFMA
  const ReplayResult four = run(sass, round_card(), 4);
  EXPECT_EQ(four.cycles, 201U) << "one warp on each scheduler";
  const ReplayResult eight = run(sass, round_card(), 8);
  EXPECT_EQ(eight.cycles, 1 + 199 * 2 + 1 + 1U) << "two warps share a pipe";
  EXPECT_EQ(eight.issued, 808U);
  EXPECT_EQ(eight.pipe_busy[static_cast<size_t>(Pipe::fma)], 1600U);
}

// Two pipes side by side: one scheduler issues in every cycle. Both banks give two registers in two cycles.
TEST(Replay, PipesWorkSideBySide) {
  Code code;
  for (int i = 0; i < 100; ++i) code.add("FFMA R2, R3, R4, R5", stall(1)).add("IADD3 R6, R8, RZ, RZ", stall(1));
  EXPECT_EQ(run(code.add("EXIT", stall(1)).sass(), round_card(), 1).cycles, 202U);
}

// Three operands of one bank take three cycles to read, for which an instruction has time, but not the one behind it;
// one that is kept takes none.
TEST(Replay, RegisterBanksMeet) {
  const uint64_t apart = run(repeated("FADD R2, R3, R4", 100, stall(2)), round_card(), 1).cycles;
  const uint64_t together = run(repeated("FFMA R2, R4, R6, R8", 100, stall(1)), round_card(), 1).cycles;
  EXPECT_EQ(apart, 202U);
  EXPECT_GE(together, 201U);
  Card wide = round_card();
  wide.fma_cycles = 1;
  EXPECT_EQ(run(repeated("FFMA R2, R4, R6, R8", 100, stall(1)), wide, 1).cycles, 2 + 98 * 3 + 3 + 1U);
  EXPECT_EQ(run(repeated("FFMA R2, R4, R6, R9", 100, stall(1)), wide, 1).cycles, 100 * 2U);
  Control keeps = stall(1);
  keeps.reuse_mask = 1;
  EXPECT_EQ(run(repeated("FFMA R2, R4, R6, R9", 100, keeps), wide, 1).cycles, 102U);
}

// Cycles between two instructions, with two FFMA between them, as Huerta et al. measured them.
TEST(Replay, AnInstructionWaitsForBanksThatGiveAnothersOperands) {
  Card wide = round_card();
  wide.fma_cycles = 1;
  const auto cycles = [&](const std::string& second) {
    Code code;
    code.add("FFMA R11, R10, R12, R14", stall(1)).add(second, stall(1)).add("EXIT", stall(1));
    return run(code.sass(), wide, 1).cycles;
  };
  const uint64_t apart = cycles("FFMA R13, R16, R19, R21");
  EXPECT_EQ(cycles("FFMA R13, R16, R18, R21"), apart + 1);
  EXPECT_EQ(cycles("FFMA R13, R16, R18, R20"), apart + 2);
}

// A tensor instruction of 10 registers keeps each bank for 5 cycles: an FFMA whose registers do not come from them goes
// ahead.
TEST(Replay, TensorInstructionsReadAllTheirRegisters) {
  Card wide = round_card();
  wide.fma_cycles = 1;
  const auto cycles = [&](const std::string& tensor, const std::string& behind) {
    Code code;
    code.add(tensor, stall(1));
    for (int i = 0; i < 6; ++i) code.add(behind, stall(1));
    return run(code.add("EXIT", stall(1)).sass(), wide, 1).cycles;
  };
  const std::string large = "HMMA.16816.F32 R4, R8, R12, R4", small = "HMMA.1688.F32 R4, R8, R12, RZ";
  EXPECT_EQ(cycles(small, "FFMA R20, RZ, RZ, RZ"), 9U);
  EXPECT_EQ(cycles(large, "FFMA R20, RZ, RZ, RZ"), 9 + 2U) << "two more cycles than the three for operands";
  // The odd bank gives 5 and 12 registers in place of 1 and 12.
  EXPECT_EQ(cycles(large, "FFMA R20, R21, R22, R23") - cycles(small, "FFMA R20, R21, R22, R23"), 4U);
}

// 6.25 cycles a product: three whole ones of six, and one of seven.
TEST(Replay, PartsOfACycleOfTheTensorUnitAddUp) {
  Card card = round_card();
  card.tensor_float = 512;
  card.mma_percent = 64;
  Code code;
  for (int i = 0; i < 400; ++i) code.add("HMMA.16816.F32 R4, R8, R12, R4", stall(1));
  const ReplayResult result = run(code.add("EXIT", stall(1)).sass(), card, 1);
  EXPECT_EQ(result.pipe_busy[static_cast<size_t>(Pipe::tensor)], 2500U);
  EXPECT_NEAR(static_cast<double>(result.cycles), 2500, 10);
}

Sass shared_loads(int count, int shift, const std::string& load = "LDS R2, [R1]") {
  Code code;
  code.add("S2R R0, SR_TID.X", sets(0)).add("SHF.L.U32 R1, R0, 0x" + std::to_string(shift) + ", RZ", waits(1, 6));
  for (int i = 0; i < count; ++i) code.add(load, sets(1));
  return code.add("EXIT", waits(2)).sass();
}

// 11 cycles from issue to the unit, 13 from there to the register; every pass of the banks holds the unit for a cycle,
// and every instruction for `cycles`.
void expect_passes(const Card& card, uint64_t cycles) {
  const uint64_t one = run(shared_loads(1, 2), card, 1).cycles, none = run(shared_loads(0, 2), card, 1).cycles;
  EXPECT_EQ(one - none, 24U) << "EXIT waits for what the load brings";
  const uint64_t four = run(shared_loads(1, 4), card, 1).cycles;
  EXPECT_EQ(four - one, 4 - cycles) << "4 passes in place of 1, or of the 2 cycles that 16 lanes take";
  // Four schedulers share the unit.
  const uint64_t many = run(shared_loads(100, 2), card, 8).cycles, more = run(shared_loads(200, 2), card, 8).cycles;
  EXPECT_EQ(more - many, 8 * 100 * cycles);
  // One scheduler computes addresses every 4 cycles.
  EXPECT_EQ(run(shared_loads(200, 2), card, 1).cycles - run(shared_loads(100, 2), card, 1).cycles, 400U);
}

TEST(Replay, SharedLoadsWaitForTheirBanks) {
  expect_passes(round_card(), 1);  // 32 lanes a cycle
  Card half = round_card();
  half.lsu_cycles = 2;  // 16
  expect_passes(half, 2);
}

// Wide loads take each of their passes in a cycle, also where the unit has 16 lanes.
TEST(Replay, WideSharedLoadsTakeACycleForEachPass) {
  for (const uint32_t lsu_cycles : {1U, 2U}) {
    Card card = round_card();
    card.lsu_cycles = lsu_cycles;
    EXPECT_EQ(run(shared_loads(10, 4, "LDS.128 R4, [R1]"), card, 1).lsu_busy, 10U * 4) << "512 bytes";
    EXPECT_EQ(run(shared_loads(10, 3, "LDS.64 R4, [R1]"), card, 1).lsu_busy, 10U * 2);
    EXPECT_EQ(run(shared_loads(10, 2), card, 1).lsu_busy, 10U * lsu_cycles);
  }
}

// A T4's shared memory gives 64 bytes a cycle.
TEST(Replay, PassesOfSomeCardsTakeTwoCycles) {
  Card card = round_card();
  card.lsu_cycles = card.pass_cycles = 2;
  EXPECT_EQ(run(shared_loads(10, 4, "LDS.128 R4, [R1]"), card, 1).lsu_busy, 10U * 8) << "512 bytes";
  EXPECT_EQ(run(shared_loads(10, 2), card, 1).lsu_busy, 10U * 2) << "128 bytes";
  EXPECT_EQ(find_card("t4").pass_cycles, 2U);
  EXPECT_EQ(find_card("rtx4090").pass_cycles, 1U);
}

TEST(Replay, TheSixthMemoryInstructionWaitsForTheQueue) {
  // Issue at 1 to 5; the first leaves the queue 11 cycles after its issue, the following every 4 (Huerta et al., table
  // 1).
  const Card card = round_card();
  const auto issued = [&](int count) {
    Code code;
    for (int i = 0; i < count; ++i) code.add("LDS R2, [RZ]", stall(1));
    return run(code.add("EXIT", stall(1)).sass(), card, 1).cycles;
  };
  EXPECT_EQ(issued(5), 7U);
  EXPECT_EQ(issued(6), 14U);
  EXPECT_EQ(issued(7), 18U);
  EXPECT_EQ(issued(8), 22U);
}

TEST(Replay, ABarrierWaitsForTheLastWarp) {
  // Warp 1 takes the long way: 50 instructions of 4 cycles.
  Code code;
  code.add("S2R R0, SR_TID.X", sets(0))
      .add("ISETP.LT.U32.AND P0, PT, R0, 0x20, PT", waits(1, 13))
      .add("@P0 BRA `(.L_x_0)", stall(5));
  for (int i = 0; i < 50; ++i) code.add("FADD R2, R2, R3", stall(4));
  code.label(".L_x_0").add("BAR.SYNC 0x0", stall(5)).add("EXIT", stall(1));
  const Card card = round_card();
  const uint64_t both = run(code.sass(), card, 2).cycles, quick = run(code.sass(), card, 1).cycles;
  EXPECT_EQ(both - quick, 200U);
  const ReplayResult result = run(code.sass(), card, 2);
  EXPECT_GE(result.stalled[static_cast<size_t>(Stall::barrier)], 200U);
}

TEST(Replay, BlocksFollowOneAnother) {
  const Card card = round_card();
  const Sass sass = repeated("FFMA R2, R2, R4, R5", 100, stall(4));
  const uint64_t one = run(sass, card, 1, 1, 1).cycles;
  EXPECT_EQ(run(sass, card, 1, 2, 2).cycles, one) << "side by side";
  EXPECT_EQ(run(sass, card, 1, 2, 1).cycles, 2 * one - 1 + card.block_cycles) << "one after the other";
}

Sass global_load(const std::string& address) {
  return Code().add("LDG.E R2, " + address, sets(0)).add("FADD R3, R2, R2", waits(1, 4)).add("EXIT", stall(1)).sass();
}

TEST(Replay, GlobalLoadsTakeTheLatencyOfWhereTheyHit) {
  const Card card = round_card();
  const Sass twice = Code()
                         .add("LDG.E R2, [RZ]", sets(0))
                         .add("FADD R3, R2, R2", waits(1, 4))
                         .add("LDG.E R2, [RZ]", sets(0))
                         .add("FADD R3, R2, R2", waits(1, 4))
                         .add("EXIT", stall(1))
                         .sass();
  const uint64_t once = run(global_load("[RZ]"), card, 1).cycles;
  EXPECT_GE(once, card.dram_latency);
  EXPECT_EQ(run(twice, card, 1).cycles - once, card.l1_latency + 4) << "the second hits L1";
}

// Cycles of the load/store unit for a load of words that are so many bytes apart.
uint64_t unit_cycles(const std::string& stride, const Card& card) {
  const Sass sass = Code()
                        .add("S2R R0, SR_TID.X", sets(0))
                        .add("IMAD.WIDE.U32 R2, R0, " + stride + ", RZ", waits(1, 6))
                        .add("LDG.E R4, [R2]", sets(1))
                        .add("EXIT", waits(2))
                        .sass();
  return run(sass, card, 1).lsu_busy;
}

// As gpu-benches measures it on an A100 and an A40: 33 words apart, no two lanes meet in a bank, but each has its line.
TEST(Replay, FourLinesOfL1AreLookedUpInACycle) {
  Card half = round_card();
  half.lsu_cycles = 2;
  EXPECT_EQ(unit_cycles("0x4", round_card()), 1U);
  EXPECT_EQ(unit_cycles("0x4", half), 2U);
  EXPECT_EQ(unit_cycles("0x84", round_card()), 8U) << "32 lines";
  EXPECT_EQ(unit_cycles("0x84", half), 8U);
  EXPECT_EQ(unit_cycles("0x10", half), 4U) << "4 passes over the banks";
}

TEST(Replay, LocalMemoryStaysInL1) {
  const Sass sass = Code()
                        .add("STL [RZ], R2", stall(1))
                        .add("LDL R3, [RZ]", sets(0))
                        .add("FADD R3, R3, R2", waits(1, 4))
                        .add("EXIT", stall(1))
                        .sass();
  const ReplayResult result = run(sass, round_card(), 1);
  EXPECT_LT(result.cycles, 70U);
  EXPECT_EQ(result.dram_bytes_read, 0U);
  EXPECT_EQ(result.bytes_written, 128U);
}

// Data that other SMs drove out of L2 comes from DRAM and goes there, each time anew: 128 bytes of a warp.
TEST(Replay, LocalMemoryThatL2LacksIsInDram) {
  const Sass load = Code().add("LDL R2, [RZ]", sets(0)).add("FADD R3, R2, R2", waits(1, 4)).add("EXIT").sass();
  const Sass store = Code().add("STL [RZ], R2", stall(1)).add("EXIT").sass();
  const Card card = round_card();
  const ReplayResult near = run(load, card, 1), far = run(load, card, 1, 1, 1, 256);
  EXPECT_EQ(near.dram_bytes_read, 0U);
  EXPECT_EQ(far.dram_bytes_read, 128U);
  EXPECT_GE(far.cycles - near.cycles, card.dram_latency - card.l2_latency);
  EXPECT_EQ(run(store, card, 1).dram_bytes_written, 0U);
  EXPECT_EQ(run(store, card, 1, 1, 1, 64).dram_bytes_written, 32U) << "a quarter";
}

// L2 takes both stores of a sector, DRAM the sector once.
TEST(Replay, StoresToASectorReachDramOnce) {
  const auto stores = [](const std::string& second) {
    return run(Code().add("STG.E [RZ], R2", stall(2)).add("STG.E " + second, stall(2)).add("EXIT", stall(1)).sass(),
               round_card(), 1);
  };
  const ReplayResult same = stores("[RZ+0x4], R2"), other = stores("[RZ+0x1000], R2");
  EXPECT_EQ(same.bytes_written, 64U);
  EXPECT_EQ(same.dram_bytes_written, 32U);
  EXPECT_EQ(same.l2_busy, other.l2_busy);
  EXPECT_EQ(2 * same.dram_busy, other.dram_busy);
}

TEST(Replay, TheSameGivesTheSameToTheBit) {
  const Sass sass = parse_sass(read_data("kernels_sm_80.sass"), "exchange");
  const KernelFacts facts = find_kernel(read_cubin(read_data("kernels_sm_80.cubin")), "exchange");
  Launch launch;
  launch.block = {256, 1, 1};
  launch.grid = {3000, 1, 1};
  launch.parameters = std::string("\0\0\0\x10\0\0\0\0\3\0\0\0", 12);
  const ModelledTime first = model_time(sass, facts, launch, find_card("a100"));
  const ModelledTime second = model_time(sass, facts, launch, find_card("a100"));
  EXPECT_EQ(first.seconds, second.seconds);
  EXPECT_EQ(first.replayed, second.replayed);
  EXPECT_GT(first.replayed.issued, 1000U);
}

TEST(Replay, CodeThatIsLargerThanTheCacheIsFetched) {
  const Sass large = repeated("FFMA R2, R3, R4, R5", 4000, stall(1));
  const ReplayResult fetched = run(large, find_card("a100"), 1), there = run(large, round_card(), 1);
  EXPECT_EQ(there.cycles, 8001U);
  EXPECT_GT(fetched.cycles, there.cycles);
  EXPECT_GT(fetched.stalled[static_cast<size_t>(Stall::fetch)], fetched.cycles - there.cycles - 10);
}

// A line of 8 instructions takes 16 cycles to issue, and 32 to come from the cache of the SM. With none ahead, the warp
// waits for each of 9 lines: 32 cycles for the first and for EXIT's, else 31, because the pipe is busy for one of them.
// With one ahead, every other line is asked for 16 cycles too late. With 8, all come behind the first, 2 cycles apart.
TEST(Replay, LinesOfCodeThatAreFetchedAheadAreThereInTime) {
  Card card = round_card();
  card.l1i_cycles = 2;
  card.l1i_latency = 30;
  const auto cycles = [&](uint32_t ahead) {
    card.prefetch_lines = ahead;
    return run(repeated("FFMA R2, R3, R4, R5", 64, stall(1)), card, 1).cycles;
  };
  constexpr uint64_t at_hand = 1 + 63 * 2 + 1 + 1;
  EXPECT_EQ(cycles(0), at_hand + 32 + 7 * 31 + 32);
  EXPECT_EQ(cycles(1), at_hand + 32 + 3 * 15 + 16);
  EXPECT_EQ(cycles(8), at_hand + 32);
}

TEST(Replay, NamesOpcodesWithoutAClass) {
  const Sass sass = Code()
                        .add("FROB R1, R2")
                        .add("UIADD3 UR1, UR2, UR3, URZ")
                        .add("UFROB UR1, UR2")
                        .add("FROB R1, R2")
                        .add("EXIT")
                        .sass();
  EXPECT_THAT(unclassified(sass, find_card("a100")), testing::ElementsAre("FROB", "UFROB"));
}

}  // namespace
}  // namespace kiln::timing::replay_test
