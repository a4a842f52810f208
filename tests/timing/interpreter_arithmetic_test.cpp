// The interpreter's arithmetic, comparisons and exchanges of lanes, as the machine has them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "machine_code_texts.h"

namespace kiln::timing::interpreter_arithmetic_test {
namespace {

// The registers and predicates that the instructions of these tables find.
Code with_values() {
  Code code;
  const std::pair<int, const char*> registers[] = {{2, "0x5"},         {4, "0xfffffff9"},  {5, "0x12345678"},
                                                   {6, "0xdeadbeef"},  {7, "0x1"},         {10, "0x3fc00000"},
                                                   {11, "0xc0200000"}, {12, "0x40800000"}, {13, "0x40400000"},
                                                   {14, "0x50400000"}, {15, "0x7fc00000"}};
  for (const auto& [index, value] : registers) code.add(fmt::format("MOV R{}, {}", index, value));
  return code.add("ISETP.EQ.AND P1, P2, RZ, RZ, PT");  // P1 holds, P2 does not
}

// The instructions, and whether R3 is `expected` behind them.
bool gives(const std::string& instructions, uint32_t expected) {
  Code code = with_values();
  for (size_t begin = 0; begin < instructions.size();) {
    const size_t end = std::min(instructions.find("; ", begin), instructions.size());
    code.add(instructions.substr(begin, end - begin));
    begin = end + 2;
  }
  code.add(fmt::format("ISETP.EQ.AND P0, PT, R3, {:#x}, PT", expected)).add("@!P0 EXIT").add("NOP").add("EXIT");
  const Sass sass = code.sass();
  const BlockPath path = run_code(sass);
  const WarpPath& warp = path.warps[0];
  return sass.instructions[warp.executed.at(warp.executed.size() - 2).instruction].opcode == "NOP";
}

struct Result {
  const char* instructions;
  uint32_t r3;
};

// R2 is 5, R4 is -7.
TEST(Interpreter, AddsMultipliesAndComparesIntegersAsTheMachine) {
  const Result results[] = {
      {"IADD3 R3, R2, R4, R5", 0x12345676},
      {"IADD3 R3, -R2, R4, RZ", 0xfffffff4},
      {"IADD3.X R3, R2, R2, RZ, P1, !PT", 11},
      {"IADD3.X R3, R2, R2, RZ, !PT, P1", 11},
      {"IADD3.X R3, R2, R2, RZ, P1, !PT, P1, P1", 11},
      {"IADD3.X R3, R2, ~R2, RZ, P1, !PT", 0},
      {"IADD3 R9, P3, R4, R4, RZ; SEL R3, 0x1, RZ, P3", 1},
      {"IADD3 R9, P3, R2, R5, RZ; SEL R3, 0x1, RZ, P3", 0},
      {"IADD3 R9, P3, P4, R4, R4, R4; SEL R3, 0x1, RZ, P4", 1},
      {"IADD3 R9, P3, P4, R4, R4, RZ; SEL R3, 0x1, RZ, P4", 0},
      {"IMAD R3, R2, R4, R2", 0xffffffe2},
      {"IMAD R3, R2, R4, -R2", 0xffffffd8},
      {"IMAD.HI R3, R2, R4, RZ", 0xffffffff},
      {"IMAD.HI.U32 R3, R2, R4, RZ", 4},
      {"IMAD.WIDE R8, R2, R4, R6; MOV R3, R9", 1},
      {"IMAD.WIDE R8, R2, R4, R6; MOV R3, R8", 0xdeadbecc},
      {"IMAD.WIDE.U32 R8, R2, R4, R6; MOV R3, R9", 6},
      {"IMAD.X R3, R2, R2, RZ, P1", 26},
      {"IMAD.X R3, R2, R2, RZ, P2", 25},
      {"LEA R3, R2, R4, 0x3", 33},
      {"LEA.HI R3, R5, R2, RZ, 0x8", 0x17},
      {"LEA.HI R3, R5, R2, R6, 0x4", 0xeadbeef6},
      {"LEA.HI.X R3, R5, R2, RZ, 0x8, P1", 0x18},
      {"LEA.HI.SX32 R3, R4, R2, 0x1b", 4},
      {"LEA.HI.SX32 R3, R5, R2, 0x8", 0x17},
      {"LEA R9, P3, R6, R6, 0x0; SEL R3, 0x1, RZ, P3", 1},
      {"LEA R9, P3, R2, R2, 0x0; SEL R3, 0x1, RZ, P3", 0},
      {"IMNMX R3, R2, R4, PT", 0xfffffff9},
      {"IMNMX R3, R2, R4, !PT", 5},
      {"IMNMX.U32 R3, R2, R4, PT", 5},
      {"SEL R3, R2, R4, P1", 5},
      {"SEL R3, R2, R4, P2", 0xfffffff9},
      {"IABS R3, R4", 7},
      {"IABS R3, R2", 5},
  };
  for (const Result& row : results) EXPECT_TRUE(gives(row.instructions, row.r3)) << row.instructions;
}

TEST(Interpreter, ShiftsAndPicksBitsAsTheMachine) {
  const Result results[] = {
      {"LOP3.LUT R3, R5, R6, R2, 0xc0, !PT", 0x12241668},
      {"LOP3.LUT R3, R5, R6, R2, 0x96, !PT", 0xcc99e892},
      {"LOP3.LUT P3, RZ, R5, R6, RZ, 0xc0, !PT; SEL R3, 0x1, RZ, P3", 1},
      {"LOP3.LUT P3, RZ, R2, 0x2, RZ, 0xc0, !PT; SEL R3, 0x1, RZ, P3", 0},
      {"LOP3.LUT P3, RZ, R2, 0x2, RZ, 0xc0, P1; SEL R3, 0x1, RZ, P3", 1},
      {"SHF.L.U32 R3, R2, 0x4, RZ", 0x50},
      {"SHF.L.U32 R3, R2, 0x20, RZ", 0},
      {"SHF.L.W.U32 R3, R2, 0x24, RZ", 0x50},
      {"SHF.L.W.U32.HI R3, R5, 0x8, R5", 0x34567812},
      {"SHF.L.U64.HI R3, R5, 0x8, R6", 0xadbeef12},
      {"SHF.L.U64.HI R3, R5, 0x40, R6", 0},
      {"SHF.R.U32.HI R3, RZ, 0x4, R6", 0x0deadbee},
      {"SHF.R.U32.HI R3, RZ, 0x20, R6", 0},
      {"SHF.R.S32.HI R3, RZ, 0x4, R6", 0xfdeadbee},
      {"SHF.R.S32.HI R3, RZ, 0x28, R6", 0xffffffff},
      {"SHF.R.S32.HI R3, RZ, 0x28, R5", 0},
      {"SHF.R.U64 R3, R5, 0x8, R6", 0xef123456},
      {"SHF.R.U64 R3, R5, 0x40, R6", 0},
      {"SHF.R.S64 R3, R5, 0x28, R6", 0xffdeadbe},
      {"SHF.R.S64 R3, R5, 0x40, R6", 0xffffffff},
      {"PRMT R3, R5, 0x123, R6", 0x78563412},
      {"PRMT R3, R5, 0x5410, R6", 0xbeef5678},
      {"PRMT R3, R5, 0xc8bf, R6", 0xff0000ff},
      {"BMSK R3, 0x4, 0x8", 0xff0},
      {"BMSK R3, 0x20, 0x1", 0},
      {"BMSK R3, 0x1f, RZ", 0},
      {"BMSK R3, 0x1f, 0x1", 0x80000000},
      {"BMSK R3, RZ, 0x20", 0xffffffff},
      {"BMSK R3, RZ, 0x1f", 0x7fffffff},
      {"SGXT R3, R6, 0x10", 0xffffbeef},
      {"SGXT R3, R5, 0x10", 0x5678},
      {"SGXT R3, R2, 0x1", 0xffffffff},
      {"SGXT R3, R6, 0x20", 0xdeadbeef},
      {"SGXT R3, R6, RZ", 0},
      {"SGXT.U32 R3, R6, 0x10", 0xbeef},
      {"POPC R3, R6", 24},
      {"FLO.U32 R3, R2", 2},
      {"FLO.U32.SH R3, R2", 29},
      {"FLO.U32 R3, R4", 31},
      {"FLO R3, R4", 2},
      {"FLO.U32 R3, RZ", 0xffffffff},
      {"BREV R3, R5", 0x1e6a2c48},
  };
  for (const Result& row : results) EXPECT_TRUE(gives(row.instructions, row.r3)) << row.instructions;
}

// R10 is 1.5, R11 -2.5, R12 4, R13 3, R14 3 * 2^32, R15 no number; R6 and R7 are a pair.
TEST(Interpreter, ComputesInSinglePrecisionAsTheMachine) {
  const Result results[] = {
      {"FADD R3, R10, R11", 0xbf800000},
      {"FADD R3, R10, -R11", 0x40800000},
      {"FADD R3, |R11|, R10", 0x40800000},
      {"FADD R3, -|R11|, R10", 0xbf800000},
      {"FMUL R3, R10, R11", 0xc0700000},
      {"FFMA R3, R10, R11, R10", 0xc0100000},
      {"FMNMX R3, R10, R11, PT", 0xc0200000},
      {"FMNMX R3, R10, R11, !PT", 0x3fc00000},
      {"FSEL R3, R10, -R11, !PT", 0x40200000},
      {"MUFU.RCP R3, R12", 0x3e800000},
      {"MUFU.RSQ R3, R12", 0x3f000000},
      {"MUFU.SQRT R3, R12", 0x40000000},
      {"MUFU.EX2 R3, R13", 0x41000000},
      {"MUFU.LG2 R3, R12", 0x40000000},
      {"MUFU.SIN R3, RZ", 0},
      {"MUFU.COS R3, RZ", 0x3f800000},
      {"I2F R3, R4", 0xc0e00000},
      {"I2F.U32 R3, R4", 0x4f800000},
      {"MOV R9, 0x1000001; I2F.U32 R3, R9", 0x4b800000},
      {"MOV R9, 0x1000001; I2F.U32.RP R3, R9", 0x4b800001},
      {"I2F.RP R3, R2", 0x40a00000},
      {"I2F.U64 R3, R6", 0x4fef56df},
      {"MOV R8, R4; MOV R9, 0xffffffff; I2F.S64 R3, R8", 0xc0e00000},
      {"MOV R8, 0x1; MOV R9, 0x1; I2F.U64.RP R3, R8", 0x4f800001},
      {"MOV R8, 0x1; MOV R9, 0x1; I2F.U64 R3, R8", 0x4f800000},
      {"F2I.NTZ R3, R10", 2},
      {"F2I.TRUNC.NTZ R3, R10", 1},
      {"F2I.FLOOR.NTZ R3, R11", 0xfffffffd},
      {"F2I.TRUNC.NTZ R3, R11", 0xfffffffe},
      {"F2I.CEIL.NTZ R3, R10", 2},
      {"F2I.U32.TRUNC.NTZ R3, R11", 0},
      {"F2I.U32.TRUNC.NTZ R3, R14", 0xffffffff},
      {"F2I.TRUNC.NTZ R3, R14", 0x7fffffff},
      {"F2I.TRUNC.NTZ R3, -R14", 0x80000000},
      {"F2I.TRUNC.NTZ R3, R15", 0},
      {"F2I.U64.TRUNC R8, R14; MOV R3, R9", 3},
      {"F2I.U64.TRUNC R8, R14; MOV R3, R8", 0},
      {"F2I.U64.TRUNC R8, R11; MOV R3, R9", 0},
      {"F2I.S64.TRUNC R8, R11; MOV R3, R8", 0xfffffffe},
      {"F2I.S64.TRUNC R8, R11; MOV R3, R9", 0xffffffff},
      {"F2I.S64.TRUNC R8, R15; MOV R3, R9", 0},
  };
  for (const Result& row : results) EXPECT_TRUE(gives(row.instructions, row.r3)) << row.instructions;
}

// R8 and R9 are a pair, R6 and R7 another.
TEST(Interpreter, ComparesAsTheMachine) {
  const std::pair<const char*, bool> comparisons[] = {
      {"ISETP.LT.AND P3, PT, R4, R2, PT", true},
      {"ISETP.LT.AND P3, PT, R2, R2, PT", false},
      {"ISETP.LT.U32.AND P3, PT, R4, R2, PT", false},
      {"ISETP.LE.AND P3, PT, R2, R2, PT", true},
      {"ISETP.LE.AND P3, PT, R2, R4, PT", false},
      {"ISETP.EQ.AND P3, PT, R2, R2, PT", true},
      {"ISETP.EQ.AND P3, PT, R4, R2, PT", false},
      {"ISETP.NE.AND P3, PT, R4, R2, PT", true},
      {"ISETP.NE.AND P3, PT, R2, R2, PT", false},
      {"ISETP.GE.AND P3, PT, R2, R2, PT", true},
      {"ISETP.GE.AND P3, PT, R4, R2, PT", false},
      {"ISETP.GT.AND P3, PT, R2, R4, PT", true},
      {"ISETP.GT.AND P3, PT, R2, R2, PT", false},
      {"ISETP.F.AND P3, PT, R2, R2, PT", false},
      {"ISETP.T.AND P3, PT, R2, R4, PT", true},
      {"ISETP.LT.AND P3, PT, R4, R2, P2", false},
      {"ISETP.GT.OR P3, PT, R4, R2, P1", true},
      {"ISETP.GT.OR P3, PT, R4, R2, P2", false},
      {"ISETP.LT.OR P3, PT, R4, R2, P2", true},
      {"ISETP.LT.XOR P3, PT, R4, R2, P1", false},
      {"ISETP.LT.XOR P3, PT, R4, R2, P2", true},
      {"ISETP.LT.AND P4, P3, R4, R2, PT", false},
      {"ISETP.GT.AND P4, P3, R4, R2, PT", true},
      {"ISETP.GT.AND P4, P3, R4, R2, P2", false},
      {"ISETP.LT.AND.EX P3, PT, R2, R2, PT, P1", true},
      {"ISETP.LT.AND.EX P3, PT, R2, R2, PT, P2", false},
      {"ISETP.LT.AND.EX P3, PT, R4, R2, PT, P2", true},
      {"MOV R8, 0x2; MOV R9, 0x1; ISETP.LT.U64.AND P3, PT, R8, R6, PT", true},
      {"MOV R8, 0x2; MOV R9, 0xffffffff; ISETP.LT.U64.AND P3, PT, R8, R6, PT", false},
      {"MOV R8, 0x2; MOV R9, 0xffffffff; ISETP.LT.S64.AND P3, PT, R8, R6, PT", true},
      {"MOV R8, R6; MOV R9, 0x1; ISETP.EQ.U64.AND P3, PT, R8, R6, PT", true},
      {"MOV R8, R6; MOV R9, 0x2; ISETP.EQ.U64.AND P3, PT, R8, R6, PT", false},
      {"FSETP.LT.AND P3, PT, R11, R10, PT", true},
      {"FSETP.GT.AND P3, PT, R11, R10, PT", false},
      {"FSETP.GT.AND P3, PT, |R11|, R10, PT", true},
      {"FSETP.EQ.AND P3, PT, R10, R10, PT", true},
      {"FSETP.EQ.AND P3, PT, R15, R15, PT", false},
      {"PLOP3.LUT P3, PT, P1, P2, PT, 0x80, 0x0", false},
      {"PLOP3.LUT P3, PT, P1, !P2, PT, 0x80, 0x0", true},
      {"PLOP3.LUT P4, P3, P1, P2, PT, 0x80, 0xa8", true},
  };
  for (const auto& [instructions, holds] : comparisons) {
    EXPECT_TRUE(gives(std::string(instructions) + "; SEL R3, 0x1, RZ, P3", holds ? 1 : 0)) << instructions;
  }
}

// R0 is the lane.
TEST(Interpreter, LanesVoteExchangeAndPackAsTheMachine) {
  const Result results[] = {
      {"S2R R0, SR_LANEID; ISETP.LT.AND P3, PT, R0, 0x4, PT; VOTE.ANY R3, PT, P3", 15},
      {"S2R R0, SR_LANEID; ISETP.LT.AND P3, PT, R0, 0x4, PT; VOTE.ANY P4, P3; SEL R3, 0x1, RZ, P4", 1},
      {"S2R R0, SR_LANEID; ISETP.LT.AND P3, PT, R0, 0x4, PT; VOTE.ALL P4, P3; SEL R3, 0x1, RZ, P4", 0},
      {"VOTE.ALL P4, P1; SEL R3, 0x1, RZ, P4", 1},
      {"VOTE.ANY P4, P2; SEL R3, 0x1, RZ, P4", 0},
      {"VOTE.EQ P4, P2; SEL R3, 0x1, RZ, P4", 1},
      {"S2R R0, SR_LANEID; ISETP.LT.AND P3, PT, R0, 0x4, PT; VOTE.EQ P4, P3; SEL R3, 0x1, RZ, P4", 0},
      {"S2R R0, SR_EQMASK; S2R R1, SR_LANEID; SHF.R.U32.HI R3, RZ, R1, R0", 1},
      {"S2R R0, SR_LTMASK; S2R R1, SR_LEMASK; S2R R8, SR_EQMASK; IADD3 R3, R1, -R0, -R8", 0},
      {"S2R R0, SR_GTMASK; S2R R1, SR_LEMASK; IADD3 R3, R1, R0, RZ", 0xffffffff},
      {"S2R R0, SR_GEMASK; S2R R1, SR_LTMASK; IADD3 R3, R1, R0, RZ", 0xffffffff},
      {"S2R R0, SR_LANEID; SHFL.IDX PT, R3, R0, 0x7, 0x1f", 7},
      {"S2R R0, SR_LANEID; SHFL.BFLY PT, R1, R0, 0x3, 0x1f; LOP3.LUT R3, R1, R0, RZ, 0x3c, !PT", 3},
      {"S2R R0, SR_LANEID; SHFL.DOWN P3, R1, R0, 0x4, 0x1f; VOTE.ANY R3, PT, P3", 0x0fffffff},
      {"S2R R0, SR_LANEID; SHFL.UP P3, R1, R0, 0x4, RZ; VOTE.ANY R3, PT, P3", 0xfffffff0},
      {"S2R R0, SR_LANEID; SHFL.UP P3, R1, R0, 0x1, RZ; IADD3 R1, R0, -R1, RZ; VOTE.ANY R8, PT, P3; "
       "SEL R3, R1, 0x1, P3",
       1},
      {"S2R R0, SR_LANEID; SHFL.DOWN P3, R1, R0, 0x2, 0x181f; VOTE.ANY R3, PT, P3", 0x3f3f3f3f},
      {"P2R R3, PR, RZ, 0x7", 2},
      {"P2R R3, PR, R2, 0x2", 7},
      {"P2R R3, PR, R2, 0x4", 1},
      {"R2P PR, R2, 0x7; SEL R3, 0x1, RZ, P2", 1},
      {"R2P PR, R2, 0x7; SEL R3, 0x1, RZ, P1", 0},
      {"R2P PR, R2, 0x4; SEL R3, 0x1, RZ, P1", 1},
      {"CS2R R8, SRZ; MOV R3, R9", 0},
      {"CS2R.32 R8, SRZ; MOV R3, R8", 0},
  };
  for (const Result& row : results) EXPECT_TRUE(gives(row.instructions, row.r3)) << row.instructions;
}

// As ptxas spills predicates: R7 holds nothing but the bits that are set.
TEST(Interpreter, BitsOfARegisterThatHeldNothingAreKnown) {
  const Sass sass = Code()
                        .add("LOP3.LUT R7, R7, 0xfffffffd, RZ, 0xc0, !PT", stall(5))
                        .add("S2R R0, SR_TID.X", stall(5))
                        .add("ISETP.GT.AND P2, PT, R0, 0x7, PT", stall(5))
                        .add("@P2 LOP3.LUT R7, R7, 0x2, RZ, 0xfc, !PT", stall(5))
                        .add("LOP3.LUT P0, RZ, R7, 0x2, RZ, 0xc0, !PT", stall(5))
                        .add("@P0 LDG.E R4, [R0.64]", stall(1))
                        .add("EXIT", stall(1))
                        .sass();
  const KernelFacts facts = plain_facts();
  Launch launch;
  launch.block = {32, 1, 1};
  Interpreter interpreter(sass, facts, launch);
  const BlockPath path = interpreter.run(0);
  EXPECT_EQ(interpreter.report().unknown_addresses, 0U);
  EXPECT_EQ(path.warps.at(0).executed.at(5).active, 0xffffff00U);
}

}  // namespace
}  // namespace kiln::timing::interpreter_arithmetic_test
