// Knowledge of the interpreter about registers, halves and parts of words.
#include <fmt/format.h>
#include <gtest/gtest.h>

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
