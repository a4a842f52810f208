// Knowledge of the interpreter about registers, halves and parts of words.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "machine_code_texts.h"

namespace kiln::timing::interpreter_values_test {
namespace {

// Known values that a product's result leaves alone: f16 sums are two registers, matrices of LDSM one each.
TEST(Interpreter, ResultsThatAreDataTakeNoMoreRegistersThanTheyHave) {
  const auto decides = [](const std::string& instruction, int place) {
    Code code;
    code.add(fmt::format("MOV R{}, 0x1", place), stall(4))
        .add(instruction, stall(4))
        .add(fmt::format("ISETP.EQ.AND P0, PT, R{}, 0x1, PT", place), stall(13))
        .add("@P0 BRA `(.L_x_0)", stall(5))
        .add("NOP", stall(1))
        .label(".L_x_0")
        .add("EXIT", stall(1));
    const Sass sass = code.sass();
    const KernelFacts facts = plain_facts();
    Launch launch;
    launch.block = {32, 1, 1};
    try {
      (void)Interpreter(sass, facts, launch).run(0);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  EXPECT_TRUE(decides("HMMA.16816.F16 R4, R8, R12, R4", 6));
  EXPECT_FALSE(decides("HMMA.16816.F16 R4, R8, R12, R4", 5));
  EXPECT_TRUE(decides("HMMA.16816.F32 R4, R8, R12, R4", 8));
  EXPECT_FALSE(decides("HMMA.16816.F32 R4, R8, R12, R4", 7));
  EXPECT_TRUE(decides("IMMA.8816.S8.S8 R4, R8.ROW, R12.COL, R4", 6));
  EXPECT_FALSE(decides("LDSM.16.M88.4 R4, [RZ]", 7));
  EXPECT_TRUE(decides("LDSM.16.M88.2 R4, [RZ]", 6));
}

// A spilled byte, of which the compiler reads the word.
TEST(Interpreter, BytesOfTheFrameArePartsOfTheirWord) {
  const Sass sass = Code()
                        .add("MOV R4, 0x305", stall(4))
                        .add("STL.S16 [RZ], R4", stall(1))
                        .add("LDL R5, [RZ]", sets(0))
                        .add("LOP3.LUT R5, R5, 0xff, RZ, 0xc0, !PT", waits(1, 4))
                        .add("ISETP.EQ.AND P0, PT, R5, 0x5, PT", stall(13))
                        .add("@P0 BRA `(.L_x_0)", stall(5))
                        .add("NOP", stall(1))
                        .label(".L_x_0")
                        .add("EXIT", stall(1))
                        .sass();
  KernelFacts facts = plain_facts();
  facts.local_bytes = 16;
  Launch launch;
  launch.block = {32, 1, 1};
  EXPECT_EQ(Interpreter(sass, facts, launch).run(0).warps[0].executed.size(), 7U) << "NOP is passed over";
}

// Value of R3 behind the instructions, which find 0x84030201 to 0x84030204 in R4 to R7; all ones if it is not known.
uint32_t r3_behind(const std::vector<std::string>& instructions, const std::string& parameters = "") {
  Code code;
  for (int i = 0; i < 4; ++i) code.add(fmt::format("MOV R{}, {:#x}", 4 + i, 0x84030201 + i));
  for (const std::string& instruction : instructions) code.add(instruction);
  code.add("IMAD.WIDE.U32 R20, R3, 0x20, RZ").add("STG.E [R20.64], R4").add("EXIT");  // a sector for each number
  const Sass sass = code.sass();
  KernelFacts facts = plain_facts();
  facts.shared_bytes = facts.local_bytes = 64;
  Launch launch;
  launch.block = {32, 1, 1};
  launch.parameters = parameters;
  Interpreter interpreter(sass, facts, launch);
  const BlockPath path = interpreter.run(0);
  if (interpreter.report().unknown_addresses != 0) return ~uint32_t{0};
  const std::vector<uint64_t> sectors = sectors_of(path);
  EXPECT_EQ(sectors.size(), 1U);
  return static_cast<uint32_t>(sectors.back() / 32);
}

TEST(Interpreter, WordsOfMemoryAreThoseOfTheirAddresses) {
  for (const std::string space : {"S", "L"}) {
    const std::string store = "ST" + space, load = "LD" + space;
    const auto r3 = [&](const std::vector<std::string>& instructions) { return r3_behind(instructions); };
    EXPECT_EQ(r3({store + ".128 [RZ+0x10], R4", load + " R3, [RZ+0x1c]"}), 0x84030204) << space;
    EXPECT_EQ(r3({store + ".64 [RZ+0x8], R6", load + ".128 R8, [RZ]", "MOV R3, R10"}), 0x84030203) << space;
    EXPECT_EQ(r3({store + ".64 [RZ+0x8], R6", load + ".128 R8, [RZ]", "MOV R3, R11"}), 0x84030204) << space;
    EXPECT_EQ(r3({store + ".128 [RZ], R4", load + ".64 R8, [RZ+0x8]", "MOV R3, R9"}), 0x84030204) << space;
    EXPECT_EQ(r3({store + " [RZ], R4", load + ".U8 R3, [RZ+0x1]"}), 0x02U) << space;
    EXPECT_EQ(r3({store + " [RZ], R4", load + ".S8 R3, [RZ+0x3]"}), 0xffffff84) << space;
    EXPECT_EQ(r3({store + " [RZ], R4", load + ".S8 R3, [RZ+0x2]"}), 0x03U) << space;
    EXPECT_EQ(r3({store + " [RZ], R4", load + ".U16 R3, [RZ+0x2]"}), 0x8403U) << space;
    EXPECT_EQ(r3({store + " [RZ], R4", load + ".S16 R3, [RZ+0x2]"}), 0xffff8403) << space;
    EXPECT_EQ(r3({store + " [RZ], R4", store + ".U8 [RZ+0x1], R7", load + " R3, [RZ]"}), 0x84030401) << space;
    EXPECT_EQ(r3({store + " [RZ], R4", store + ".U16 [RZ+0x2], R7", load + " R3, [RZ]"}), 0x02040201) << space;
    EXPECT_EQ(r3({store + " [RZ], R4", "LDG.E R9, [RZ]", store + " [RZ], R9", load + " R3, [RZ]"}), ~0U)
        << space << ": data of global memory";
    EXPECT_EQ(r3({store + " [RZ], R4", load + " R3, [RZ+0x40]"}), ~0U) << space << ": behind its end";
    EXPECT_EQ(r3({store + " [RZ+0x40], R4", load + " R3, [RZ+0x3c]"}), space == "S" ? ~0U : 0U) << "behind its end";
  }
  EXPECT_EQ(r3_behind({"LDS R3, [RZ]"}), ~0U) << "nobody stored anything";
  EXPECT_EQ(r3_behind({"LDL R3, [RZ]"}), 0U) << "frames begin as zeros";
}

TEST(Interpreter, WordsOfConstantBanksAreThoseOfTheirAddresses) {
  const std::string parameters("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c", 12);
  EXPECT_EQ(r3_behind({"LDC R3, c[0x0][0x164]"}, parameters), 0x08070605U);
  EXPECT_EQ(r3_behind({"LDC.64 R8, c[0x0][0x160]", "MOV R3, R9"}, parameters), 0x08070605U);
  EXPECT_EQ(r3_behind({"MOV R2, 0x8", "LDC R3, c[0x0][R2+0x160]"}, parameters), 0x0c0b0a09U);
  EXPECT_EQ(r3_behind({"MOV R2, -0x4", "LDC R3, c[0x0][R2+0x168]"}, parameters), 0x08070605U);
  EXPECT_EQ(r3_behind({"LDC.U8 R3, c[0x0][0x160]"}, parameters), ~0U) << "parts of words are not followed";
}

// alpha and beta in f16: c[0x0][0x160] holds 1 below and 0 above.
TEST(Interpreter, HalvesAreCompared) {
  const auto taken = [](const std::string& compare) {
    const Sass sass = Code()
                          .add(compare, stall(13))
                          .add("@P0 BRA `(.L_x_0)", stall(5))
                          .add("NOP", stall(1))
                          .label(".L_x_0")
                          .add("EXIT", stall(1))
                          .sass();
    const KernelFacts facts = plain_facts();
    Launch launch;
    launch.block = {32, 1, 1};
    launch.parameters = std::string("\x00\x3c\x00\x00", 4);
    return Interpreter(sass, facts, launch).run(0).warps[0].executed.size() == 3;
  };
  EXPECT_TRUE(taken("HSETP2.NEU.AND P0, PT, RZ.H0_H0, c[0x0] [0x160].H0_H0, PT"));
  EXPECT_FALSE(taken("HSETP2.NEU.AND P0, PT, RZ.H0_H0, c[0x0] [0x160].H1_H1, PT"));
  EXPECT_TRUE(taken("HSETP2.LT.AND P0, P1, RZ, c[0x0] [0x160], PT")) << "the lower halves";
  EXPECT_FALSE(taken("HSETP2.LT.AND P1, P0, RZ, c[0x0] [0x160], PT")) << "the upper halves";
  EXPECT_TRUE(taken("FSETP.NEU.AND P0, PT, RZ, c[0x0][0x160], PT"));
  EXPECT_FALSE(taken("FSETP.NEU.AND P0, PT, RZ, -RZ, PT"));
}

}  // namespace
}  // namespace kiln::timing::interpreter_values_test
