#include "kiln/timing/sass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "kiln/base/error.h"
#include "machine_code_texts.h"

namespace kiln::timing::sass_test {
namespace {

using Kind = Operand::Kind;

// Words of the compiler, taken apart by hand: bits 105-108 stall, 109 no yield, 110-112 write, 113-115 read, 116-121
// wait, 122-125 reuse.
TEST(ControlBits, AreTakenFromTheirPlaces) {
  // 0x000fe200...: >> 41 = 0x7f1: stall 1, no yield, barriers 7 and 7.
  EXPECT_EQ(decode_control(0x000fe20000000f00), (Control{1, false, 7, 7, 0, 0}));
  // 0x000ea200...: 0x751: stall 1, no yield, write barrier 2, read barrier 7.
  EXPECT_EQ(decode_control(0x000ea20000000800), (Control{1, false, 2, 7, 0, 0}));
  // 0x0041e800...: 0x20f4: stall 4, no yield, write barrier 7, read barrier 0, waits for counter 2.
  EXPECT_EQ(decode_control(0x0041e80000000800), (Control{4, false, 7, 0, 4, 0}));
  // 0x040fc400...: 0x207e2: stall 2, yields, keeps operand 0.
  EXPECT_EQ(decode_control(0x040fc40000000000), (Control{2, true, 7, 7, 0, 1}));
}

TEST(ControlBits, OfTestsAreEncodedAsTheyAreDecoded) {
  for (const Control& control : {stall(3), sets(2, 5), waits(0x21, 1), Control{15, true, 0, 5, 63, 15}}) {
    EXPECT_EQ(decode_control(encoded(control)), control);
  }
}

TEST(Sass, ReadsGuardsModifiersAndOperands) {
  const Sass sass = Code()
                        .add("@!P3 ISETP.GE.U32.AND.EX P0, PT, R4.reuse, -0x10, PT, !P1")
                        .add("FFMA R7, -R4, |c[0x3][0x1c]|, -R255")
                        .add("LDG.E.128 R8, [R6.64+UR4+-0x80]")
                        .add("LDS R0, [R2.X4+0x84]")
                        .add("@UP1 UMOV UR5, URZ")
                        .add("FADD R1, R2, 1.5", {}, 0x3fc0000002017421)
                        .add("S2R R3, SR_TID.Y")
                        .add("STG.E desc[UR6][R2.64+0x10], R255")
                        .sass();
  ASSERT_EQ(sass.instructions.size(), 8U);
  EXPECT_EQ(sass.arch, 80);
  const Instruction& compare = sass.instructions[0];
  EXPECT_EQ(compare.opcode, "ISETP");
  EXPECT_THAT(compare.modifiers, testing::ElementsAre("GE", "U32", "AND", "EX"));
  EXPECT_EQ(compare.guard, 3);
  EXPECT_TRUE(compare.guard_inverted);
  ASSERT_EQ(compare.operands.size(), 6U);
  EXPECT_EQ(compare.operands[2].kind, Kind::reg);
  EXPECT_EQ(compare.operands[2].index, 4);
  EXPECT_EQ(compare.operands[3].value, -16);
  EXPECT_TRUE(compare.operands[5].inverted);

  const auto& multiply = sass.instructions[1].operands;
  EXPECT_TRUE(multiply[1].negated);
  EXPECT_TRUE(multiply[2].absolute);
  EXPECT_EQ(multiply[2].kind, Kind::constant);
  EXPECT_EQ(multiply[2].bank, 3);
  EXPECT_EQ(multiply[2].value, 0x1c);

  const Operand& global = sass.instructions[2].operands[1];
  EXPECT_EQ(global.kind, Kind::memory);
  EXPECT_EQ(global.base, 6);
  EXPECT_TRUE(global.wide);
  EXPECT_EQ(global.uniform_base, 4);
  EXPECT_EQ(global.value, -0x80);
  EXPECT_EQ(sass.instructions[3].operands[1].shift, 2);
  EXPECT_TRUE(sass.instructions[4].guard_uniform);
  EXPECT_EQ(sass.instructions[4].operands[1].index, zero_register);
  EXPECT_EQ(sass.instructions[5].operands[2].value, 0x3fc00000);  // the bits of 1.5
  EXPECT_EQ(sass.instructions[6].operands[1].text, "SR_TID.Y");
  EXPECT_EQ(sass.instructions[7].operands[0].base, 2);
}

TEST(Sass, RemarksAreNoOperands) {
  const Sass sass = Code().add("STL [R1+0x12b4], R4  (*\"SpillRefill\"*)").add("EXIT").sass();
  ASSERT_EQ(sass.instructions[0].operands.size(), 2U);
  EXPECT_EQ(sass.instructions[0].operands[1].index, 4);
}

TEST(Sass, LabelsAreAddresses) {
  const Sass sass = Code().label(".L_x_0").add("NOP").add("BRA `(.L_x_1)").label(".L_x_1").add("BRA `(.L_x_0)").sass();
  EXPECT_EQ(sass.instructions[1].operands[0].value, 32);
  EXPECT_EQ(sass.instructions[2].operands[0].value, 0);
  EXPECT_EQ(sass.index_of(32), 2U);
  EXPECT_THROW(sass.index_of(48), Error);
  EXPECT_THROW(sass.index_of(8), Error);
}

std::string message_of(const std::string& text, const std::string& kernel = "test") {
  try {
    parse_sass(text, kernel);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Sass, SaysWhatIsWrongWithATextThatIsCutShort) {
  const std::string whole = Code().add("MOV R1, R2").add("EXIT").text();
  EXPECT_EQ(message_of(whole), "no error");
  EXPECT_THAT(message_of(whole.substr(0, whole.rfind("  /* 0x"))),
              testing::HasSubstr("ends in the middle of an instruction"));
  EXPECT_THAT(message_of(whole.substr(0, whole.rfind("EXIT") + 2)), testing::HasSubstr("cut short"));
  EXPECT_THAT(message_of(whole.substr(0, whole.rfind("EXIT") + 12)), testing::HasSubstr("without its encoding"));
  EXPECT_THAT(message_of(""), testing::HasSubstr("no code of kernel test; there is: none"));
}

// As nvdisasm 13 prints a cubin that NVRTC 12.9 made for 7.5 to 9.0.
TEST(Sass, ReadsTheTargetFromFlags) {
  std::string text = Code(90).add("NOP").text();
  const std::string target = "\t.target\tsm_90\n";
  ASSERT_TRUE(text.starts_with(target));
  const auto flagged = [&](const std::string& sm) {
    return "\t.headerflags\t@\"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_" + sm +
           " EF_CUDA_VIRTUAL_SM(EF_CUDA_" + sm + ")\"\n" + text.substr(target.size());
  };
  EXPECT_EQ(parse_sass(flagged("SM90"), "test").arch, 90);
  EXPECT_THAT(message_of(flagged("SM70")), testing::HasSubstr("sm_70 cannot be timed: sm_75 is the oldest"));
  EXPECT_THAT(message_of(flagged("TEXT")), testing::HasSubstr("no .target stands before the code"));
}

TEST(Sass, SaysWhatIsWrongWithAnOddText) {
  EXPECT_THAT(message_of(Code().add("NOP").text(), "other"),
              testing::HasSubstr("no code of kernel other; there is: test"));
  EXPECT_THAT(message_of(Code().text()), testing::HasSubstr("has no instructions"));
  EXPECT_THAT(message_of(Code().add("BRA `(.L_x_9)").text()),
              testing::HasSubstr("no place in the code is called .L_x_9"));
  EXPECT_THAT(message_of(Code(70).add("NOP").text()), testing::HasSubstr("sm_75 is the oldest"));
  std::string hole = Code().add("NOP").add("EXIT").text();
  hole.replace(hole.find("/*0010*/"), 8, "/*0020*/");
  EXPECT_THAT(message_of(hole), testing::HasSubstr("an instruction at 0020, expected was 0x0010"));
  std::string plain = Code().add("NOP").text();
  plain.replace(plain.find("/* 0x0"), 6, "/* ?");
  EXPECT_THAT(message_of(plain), testing::HasSubstr("without its encoding"));
  EXPECT_THAT(message_of(Code().add("LDS R0, [Q7]").text()), testing::HasSubstr("unknown address Q7"));
}

TEST(Sass, SaysWhatIsWrongWithAnOddOperand) {
  const auto message = [](const std::string& instruction) { return message_of(Code().add(instruction).text()); };
  EXPECT_THAT(message("@R200 MOV R1, R2"), testing::HasSubstr("unknown guard R200"));
  EXPECT_THAT(message("MOV R1, c["), testing::HasSubstr("unknown constant c["));
  EXPECT_THAT(message("MOV R1, c[]"), testing::HasSubstr("unknown constant c[]"));
  EXPECT_THAT(message("MOV R1, c[0x100][0x0]"), testing::HasSubstr("unknown constant"));
  EXPECT_THAT(message("LDG.E R1, [R2.64+0x8000000000000000]"), testing::HasSubstr("unknown offset"));
  EXPECT_THAT(message("LDG.E R1, [R2.64+0x100000000]"), testing::HasSubstr("unknown offset 100000000"));
  std::string many = "MOV R1";
  for (int i = 0; i < 200; ++i) many += ", R2";
  EXPECT_THAT(message(many), testing::HasSubstr("too many operands"));
}

TEST(Sass, ReadsNumbersOf64Bits) {
  const Sass sass = Code().add("MOV.64 R2, -0x8000000000000000").add("MOV.64 R2, 0xffffffffffffffff").sass();
  EXPECT_EQ(sass.instructions[0].operands[1].value, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(sass.instructions[1].operands[1].value, -1);
}

TEST(Sass, ReadsTheLargestOffsetsAndBanks) {
  const Sass sass = Code()
                        .add("LDG.E R1, [R2.64+0xffffffff]")
                        .add("LDG.E R1, [R2.64+-0xffffffff]")
                        .add("MOV R1, c[0xff][0x4]")
                        .sass();
  EXPECT_EQ(sass.instructions[0].operands[1].value, 0xffffffff);
  EXPECT_EQ(sass.instructions[1].operands[1].value, -int64_t{0xffffffff});
  EXPECT_EQ(sass.instructions[2].operands[1].bank, 255);
}

TEST(Sass, ReadsWhatTheCompilerMadeForEachArchitecture) {
  for (const int arch : {75, 80, 90, 120}) {
    const std::string text = read_data("kernels_sm_" + std::to_string(arch) + ".sass");
    for (const char* kernel : {"diverge", "divide", "exchange", "lanes", "indexed", "widths", "calls", "by_data"}) {
      const Sass sass = parse_sass(text, kernel);
      EXPECT_EQ(sass.arch, arch);
      EXPECT_GT(sass.instructions.size(), 10U) << kernel;
    }
  }
}

}  // namespace
}  // namespace kiln::timing::sass_test
