// Costs of instructions of each class: pipes, waits, cycles.
#include "instruction_cost.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "machine_code_texts.h"

namespace kiln::timing::instruction_cost_test {
namespace {

// A card whose cycles and rates tell the classes apart.
Card card_of_many_rates() {
  Card card = card_with_code_at_hand("a100");
  card.fma_cycles = 3;
  card.imad_cycles = 5;
  card.imad_shares_fma = 0;
  card.alu_cycles = 7;
  card.half_cycles = 9;
  card.double_cycles = 11;
  card.special_cycles = 13;
  card.convert_cycles = 17;
  card.uniform_cycles = 19;
  card.branch_cycles = 23;
  card.tensor_half = 256;
  card.tensor_float = 128;
  card.tensor_tf32 = 64;
  card.tensor_byte = 512;
  card.tensor_fp8 = 256;
  card.tensor_double_cycles = 4;
  card.mma_percent = 100;
  return card;
}

Cost cost_of(const std::string& instruction, const Card& card, Control control = {}) {
  std::vector<std::string> unknown;
  const Cost cost = costs_of(Code().add(instruction, control).sass(), card, unknown).at(0);
  EXPECT_TRUE(unknown.empty()) << instruction;
  return cost;
}

TEST(InstructionCost, EachPipeHasItsCycles) {
  const struct {
    const char* instruction;
    Pipe pipe;
    uint32_t cycles;
  } rows[] = {{"FFMA R1, R2, R3, R4", Pipe::fma, 3},
              {"IMAD R1, R2, R3, R4", Pipe::imad, 5},
              {"IADD3 R1, R2, R3, R4", Pipe::alu, 7},
              {"FSETP.LT.AND P0, PT, R1, R2, PT", Pipe::alu, 7},
              {"HFMA2 R1, R2, R3, R4", Pipe::half, 9},
              {"DFMA R2, R4, R6, R8", Pipe::fp64, 11},
              {"MUFU.RCP R1, R2", Pipe::special, 13},
              {"POPC R1, R2", Pipe::special, 13},
              {"I2F R1, R2", Pipe::special, 17},
              {"F2I R1, R2", Pipe::special, 17},
              {"F2F.F64.F32 R2, R4", Pipe::special, 17},
              {"I2I.U8.S32 R1, R2", Pipe::special, 17},
              {"FRND R1, R2", Pipe::special, 17},
              {"S2R R1, SR_TID.X", Pipe::special, 2},
              {"S2UR UR1, SR_CTAID.X", Pipe::special, 2},
              {"LDC R1, c[0x0][0x160]", Pipe::special, 2},
              {"UIADD3 UR1, UR2, UR3, URZ", Pipe::uniform, 19},
              {"ULDC UR1, c[0x0][0x160]", Pipe::uniform, 19},
              {"BRA 0x0", Pipe::branch, 23},
              {"LDG.E R1, [R2.64]", Pipe::memory, 1},
              {"NOP", Pipe::none, 1}};
  Card card = card_of_many_rates();
  for (const auto& row : rows) {
    const Cost cost = cost_of(row.instruction, card);
    EXPECT_EQ(cost.pipe, row.pipe) << row.instruction;
    EXPECT_EQ(cost.cycles, row.cycles) << row.instruction;
  }
  card.imad_shares_fma = 1;
  const Cost shared = cost_of("IMAD R1, R2, R3, R4", card);
  EXPECT_EQ(shared.pipe, Pipe::fma);
  EXPECT_EQ(shared.cycles, 5U) << "in the pipe of FFMA, at its own rate";
  EXPECT_EQ(cost_of("DFMA R2, R4, R6, R8", card).pipe, Pipe::fp64);
}

TEST(InstructionCost, WhatIsWaitedForFollowsFromTheOpcode) {
  const std::pair<const char*, Wait> rows[] = {{"LDS R1, [R2]", Wait::shared_load},
                                               {"LDSM.16.M88 R1, [R2]", Wait::shared_load},
                                               {"SHFL.IDX PT, R1, R2, R3, 0x1f", Wait::shared_load},
                                               {"ATOMS.ADD R1, [R2], R3", Wait::shared_load},
                                               {"STS [R2], R1", Wait::shared_store},
                                               {"STSM.16.M88 [R2], R1", Wait::shared_store},
                                               {"LDG.E R1, [R2.64]", Wait::load},
                                               {"LD.E R1, [R2.64]", Wait::load},
                                               {"ATOM.E.ADD R1, [R2.64], R3", Wait::load},
                                               {"ATOMG.E.ADD R1, [R2.64], R3", Wait::load},
                                               {"STG.E [R2.64], R1", Wait::store},
                                               {"ST.E [R2.64], R1", Wait::store},
                                               {"RED.E.ADD [R2.64], R1", Wait::store},
                                               {"REDG.E.ADD [R2.64], R1", Wait::store},
                                               {"REDUX.SUM UR1, R1", Wait::unit},
                                               {"LDL R1, [R2]", Wait::local_load},
                                               {"STL [R2], R1", Wait::local_store},
                                               {"LDC R1, c[0x0][0x160]", Wait::constant},
                                               {"ULDC UR1, c[0x0][0x160]", Wait::constant},
                                               {"LDCU UR1, c[0x0][0x160]", Wait::constant},
                                               {"LDGSTS.E.128 [R1], [R2.64]", Wait::copy},
                                               {"LDGDEPBAR", Wait::copies},
                                               {"SYNCS.EXCH.64 URZ, [UR1], UR2", Wait::transaction},
                                               {"UTMALDG.2D [UR1], [UR2]", Wait::transaction},
                                               {"UTMASTG.2D [UR1], [UR2]", Wait::transaction},
                                               {"UBLKCP.S.G [UR1], [UR2], UR3", Wait::transaction},
                                               {"UTMACMDFLUSH", Wait::bulk_stores},
                                               {"HGMMA.64x8x16.F32 R24, gdesc[UR4], R24, gsb0", Wait::products},
                                               {"WARPGROUP.DEPBAR.LE gsb0, 0x0", Wait::product_group},
                                               {"WARPGROUP.ARRIVE", Wait::fixed},
                                               {"FADD R1, R2, R3", Wait::fixed}};
  const Card card = card_of_many_rates();
  for (const auto& [instruction, wait] : rows) EXPECT_EQ(cost_of(instruction, card).wait, wait) << instruction;
  EXPECT_EQ(cost_of("MUFU.RCP R1, R2", card, sets(0)).wait, Wait::unit) << "a counter tells of its result";
  Control reads;
  reads.read_barrier = 1;
  EXPECT_EQ(cost_of("MUFU.RCP R1, R2", card, reads).wait, Wait::unit) << "a counter tells that it has read";
}

// Multiply-adds of a cycle: 256 of halves, half as many with sums in single precision, and so on.
TEST(InstructionCost, TensorProductsTakeTheirShapeOverTheRateOfTheirTypes) {
  const std::pair<const char*, uint32_t> rows[] = {{"HMMA.16816.F16 R1, R2, R4, R6", 8},
                                                   {"HMMA.16816.F32 R4, R8, R10, R4", 16},
                                                   {"HMMA.1688.F32 R4, R8, R10, R4", 8},
                                                   {"HMMA.1688.F32.TF32 R4, R8, R10, R4", 16},
                                                   {"HMMA.SP.16832.F32 R4, R8, R10, R4, R12, 0x0", 16},
                                                   {"HMMA.F16 R1, R2, R4, R6", 8},
                                                   {"IMMA.16832.S8.S8 R4, R8, R10, R4", 8},
                                                   {"IMMA.8816.S8.S8 R4, R8, R10, R4", 2},
                                                   {"IMMA.16864.S4.S4 R4, R8, R10, R4", 8},
                                                   {"IMMA.16864.U4.U4 R4, R8, R10, R4", 8},
                                                   {"BMMA.168256.XOR.POPC R4, R8, R10, R4", 8},
                                                   {"DMMA.884 R4, R8, R10, R4", 4},
                                                   {"DMMA.8x8x4 R4, R8, R10, R4", 4},
                                                   {"DMMA.16816 R4, R8, R10, R4", 32},
                                                   {"QMMA.16832.F32.E4M3.E4M3 R4, R8, R10, R4", 16},
                                                   {"QMMA.16832.F16.E4M3.E4M3 R4, R8, R10, R4", 8},
                                                   {"HGMMA.64x256x16.F32 R24, gdesc[UR4], R24, gsb0", 512},
                                                   {"IGMMA.64x64x32.S8.S8 R24, gdesc[UR4], R24, gsb0", 64},
                                                   {"BGMMA.64x64x256.AND.POPC R24, gdesc[UR4], R24, gsb0", 64},
                                                   {"QGMMA.64x64x32.F32 R24, gdesc[UR4], R24, gsb0", 128},
                                                   {"HMMA.881.F16 R1, R2, R4, R6", 1}};
  Card card = card_of_many_rates();
  for (const auto& [instruction, cycles] : rows) EXPECT_EQ(cost_of(instruction, card).cycles, cycles) << instruction;
  card.mma_percent = 50;
  EXPECT_EQ(cost_of("HMMA.16816.F16 R1, R2, R4, R6", card).cycles, 16U) << "half of the peak is reached";
  EXPECT_EQ(cost_of("HGMMA.64x256x16.F32 R24, gdesc[UR4], R24, gsb0", card).cycles, 512U) << "the peak is reached";
}

// A (m k), B (k n) and C (m n elements) are spread over 32 lanes; D takes a port of its own.
TEST(InstructionCost, TensorOperandsAreAllTheirRegisters) {
  const struct {
    const char* instruction;
    uint8_t even, odd;
  } rows[] = {{"HMMA.16816.F32 R4, R8, R12, R4", 5, 5},
              {"HMMA.16816.F32.BF16 R4, R8, R12, R4", 5, 5},
              {"HMMA.16816.F32 R4, R8, R12, RZ", 3, 3},
              {"HMMA.16816.F16 R4, R8, R12, R4", 4, 4},
              {"HMMA.1688.F32 R4, R8, R12, R4", 4, 3},
              {"HMMA.1688.F32 R4, R8, R13, R4", 3, 4},
              {"HMMA.1688.F16 R4, R8, R12, R4", 3, 2},
              {"HMMA.1688.F32.TF32 R4, R8, R12, R4", 5, 5},
              {"HMMA.1684.F32.TF32 R4, R8, R12, R4", 4, 3},
              {"HMMA.SP.16832.F32 R4, R8, R12, R4, R16, 0x0", 7, 6},
              {"IMMA.16832.S8.S8 R4, R8.ROW, R12.COL, R4", 5, 5},
              {"IMMA.16816.S8.S8 R4, R8.ROW, R12.COL, R4", 4, 3},
              {"IMMA.8816.S8.S8 R4, R8.ROW, R12.COL, R4", 3, 1},
              {"IMMA.16864.S4.S4 R4, R8.ROW, R12.COL, R4", 5, 5},
              {"QMMA.16832.F32.E4M3.E4M3 R4, R8, R12, R4", 5, 5},
              {"QMMA.16832.F16.E4M3.E4M3 R4, R8, R12, R4", 4, 4},
              {"DMMA.8x8x4 R4, R8, R12, R4", 4, 4},
              {"FFMA R1, R2, R4, R5", 2, 1},
              {"HGMMA.64x8x16.F32 R24, gdesc[UR4], R24, gsb0", 0, 0}};
  const Card card = card_of_many_rates();
  for (const auto& row : rows) {
    const Cost cost = cost_of(row.instruction, card);
    EXPECT_EQ(cost.reads[0], row.even) << row.instruction;
    EXPECT_EQ(cost.reads[1], row.odd) << row.instruction;
  }
}

// No bank has to give the registers of an operand that the instruction before has kept: all of them.
TEST(InstructionCost, KeptOperandsOfTensorInstructionsAreNotRead) {
  const auto reads_of = [](uint8_t reuse_mask, const std::string& second) {
    Control control;
    control.reuse_mask = reuse_mask;
    std::vector<std::string> unknown;
    Code code;
    code.add("HMMA.16816.F32 R4, R8, R12, R4", control).add(second);
    return costs_of(code.sass(), card_of_many_rates(), unknown).at(1).reads;
  };
  using Reads = std::array<uint8_t, 2>;
  EXPECT_EQ(reads_of(0, "HMMA.16816.F32 R16, R8, R14, R16"), (Reads{5, 5}));
  EXPECT_EQ(reads_of(1, "HMMA.16816.F32 R16, R8, R14, R16"), (Reads{3, 3})) << "A is the same";
  EXPECT_EQ(reads_of(2, "HMMA.16816.F32 R16, R20, R12, R16"), (Reads{4, 4})) << "B is the same";
  EXPECT_EQ(reads_of(1, "HMMA.16816.F32 R16, R20, R14, R16"), (Reads{5, 5})) << "another A";
}

TEST(InstructionCost, TensorProductsTakePartsOfACycle) {
  Card card = card_of_many_rates();
  card.mma_percent = 64;
  card.tensor_float = 512;
  const Cost cost = cost_of("HMMA.16816.F32 R4, R8, R12, R4", card);
  EXPECT_EQ(cost.cycles, 6U);
  EXPECT_EQ(cost.fraction, 64U) << "6.25 cycles";
  EXPECT_EQ(cost_of("FFMA R1, R2, R4, R5", card).fraction, 0U);
}

TEST(InstructionCost, ProductsOfAWarpgroupReadTheirOperandsFromSharedMemory) {
  const Card card = card_of_many_rates();
  const Cost both = cost_of("HGMMA.64x256x16.F32 R24, gdesc[UR4], R24, gsb0", card);
  EXPECT_EQ(both.operand_bytes, (64 + 256) * 32);
  EXPECT_TRUE(both.ends_group);
  const Cost right = cost_of("HGMMA.64x256x16.F32 R24, R4, gdesc[UR4], R24", card);
  EXPECT_EQ(right.operand_bytes, 256 * 32) << "the left one is in registers";
  EXPECT_FALSE(right.ends_group);
  EXPECT_EQ(cost_of("WARPGROUP.DEPBAR.LE gsb0, 0x2", card).groups_left, 2);
}

TEST(InstructionCost, WidthsBarriersAndCountersAreRead) {
  const Card card = card_of_many_rates();
  EXPECT_EQ(cost_of("LDS R1, [R2]", card).extra, 0);
  EXPECT_EQ(cost_of("LDS.64 R4, [R2]", card).extra, 2);
  EXPECT_EQ(cost_of("LDS.128 R4, [R2]", card).extra, 6);
  EXPECT_TRUE(cost_of("BAR.SYNC 0x0", card).is_barrier);
  EXPECT_TRUE(cost_of("UCGABAR_WAIT", card).is_barrier);
  EXPECT_FALSE(cost_of("MEMBAR.SC.GPU", card).is_barrier);
  EXPECT_TRUE(cost_of("LDGSTS.E.BYPASS.128 [R1], [R2.64]", card).bypasses_l1);
  EXPECT_FALSE(cost_of("LDGSTS.E.128 [R1], [R2.64]", card).bypasses_l1);
  const Cost counted = cost_of("DEPBAR.LE SB3, 0x2", card);
  EXPECT_EQ(counted.counter, 3);
  EXPECT_EQ(counted.at_most, 2);
  EXPECT_EQ(cost_of("NOP", card).counter, 8) << "waits for none";
  Code code;
  for (int i = 0; i < 17; ++i) code.add("NOP");
  std::vector<std::string> unknown;
  const std::vector<Cost> costs = costs_of(code.sass(), card, unknown);
  EXPECT_EQ(costs[7].line, 0U);
  EXPECT_EQ(costs[8].line, 1U) << "a line holds eight instructions";
  EXPECT_EQ(costs[16].line, 2U);
}

}  // namespace
}  // namespace kiln::timing::instruction_cost_test
