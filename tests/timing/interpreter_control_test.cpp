// The interpreter's guards, branches, calls and loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "kiln/base/error.h"
#include "machine_code_texts.h"

namespace kiln::timing::interpreter_control_test {
namespace {

TEST(Interpreter, GuardsThatAreFalseTakeAStepButNoAccess) {
  const Sass sass = Code().add("ISETP.NE.AND P0, PT, RZ, RZ, PT").add("@P0 LDG.E R2, [R4.64]").add("@!P0 EXIT").sass();
  const BlockPath path = run_code(sass);
  ASSERT_EQ(path.warps[0].executed.size(), 3U);
  EXPECT_EQ(path.warps[0].executed[1].active, 0U);
  EXPECT_EQ(path.warps[0].executed[1].access, no_access);
}

// Code with data in P0.
Code with_data() {
  return Code().add("LDG.E R2, [RZ]").add("ISETP.LT.AND P0, PT, R2, RZ, PT");
}

// A function, behind the end of a kernel.
Code with_function(Code kernel) {
  return kernel.add("EXIT").label("function").add("NOP").add("RET.REL.NODEC R4 `(function)");
}

TEST(Interpreter, BranchesByDataLeadPastCalls) {
  const Sass over =
      with_function(with_data().add("@P0 BRA `(on)").add("NOP").add("CALL.REL.NOINC `(function)").label("on")).sass();
  const Sass towards =
      with_function(with_data().add("@P0 BRA `(rare)").add("EXIT").label("rare").add("CALL.REL.NOINC `(function)"))
          .sass();
  const Sass through_a_register = with_data()  // of an assertion or of printf, which is another's code
                                      .add("@P0 BRA `(on)")
                                      .add("NOP")
                                      .add("CALL.ABS.NOINC R20")
                                      .label("on")
                                      .add("EXIT")
                                      .sass();
  for (const Sass* sass : {&over, &towards, &through_a_register}) {
    const KernelFacts facts = plain_facts(sass->arch);
    Launch launch;
    launch.block = {32, 1, 1};
    Interpreter interpreter(*sass, facts, launch);
    const BlockPath path = interpreter.run(0);
    EXPECT_EQ(sass->instructions[path.warps[0].executed.back().instruction].opcode, "EXIT");
    EXPECT_EQ(path.warps[0].executed.size(), 4U) << "past the call";
    EXPECT_EQ(interpreter.report().guessed_branches, 1U);
  }
}

void expect_refused_for_data(const Sass& sass, const std::string& what) {
  try {
    run_code(sass);
    FAIL() << what;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("depends on data")) << what;
  }
}

// How compilers write a jump to a place that is far away, such as the end of a loop.
TEST(Interpreter, CallsThatDoNotReturnAreBranches) {
  const auto far = [](Code code) { return code.add("EXIT").label("far").add("NOP").add("EXIT").sass(); };
  expect_refused_for_data(far(with_data().add("@P0 CALL.REL.NOINC `(far)")), "guarded by data");
  expect_refused_for_data(far(with_data().add("@P0 BRA `(on)").add("CALL.REL.NOINC `(far)").label("on")),
                          "a branch by data over it");
  expect_refused_for_data(with_data().label("far").add("@P0 CALL.REL.NOINC `(far)").sass(), "to code without an end");
  const BlockPath path = run_code(far(Code().add("CALL.REL.NOINC `(far)")));
  EXPECT_EQ(path.warps[0].executed.size(), 3U) << "to the end of the kernel";
}

TEST(Interpreter, CallsBehindAnotherJumpDoNotDecide) {
  for (const char* jump : {"BRA `(on)", "BRX R4 -0x40", "EXIT", "RET.REL.NODEC R4 `(on)", "BSYNC B0"}) {
    expect_refused_for_data(
        with_function(with_data().add("@P0 BRA `(on)").add(jump).add("CALL.REL.NOINC `(function)").label("on")).sass(),
        jump);
  }
}

TEST(Interpreter, BranchesByDataInCodeWithoutAnEndAreRefused) {
  expect_refused_for_data(with_data().add("@P0 BRA `(on)").add("NOP").label("on").add("NOP").sass(), "ahead");
}

TEST(Interpreter, BarriersOfSomeThreadsCountWarps) {
  Launch launch;
  launch.block = {64, 1, 1};
  const BlockPath path =
      run_code(Code().add("BAR.SYNC 0x1, 0x20").add("BAR.SYNC 0x2, 0x40").add("EXIT").sass(), launch);
  const std::vector<Barrier>& asked = path.warps[0].barriers;
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0].warps, 1U);
  EXPECT_EQ(asked[1].warps, 2U);
}

// Instructions that the first warp of a block executed, each with its lanes.
using Executions = std::vector<std::pair<uint32_t, uint32_t>>;
Executions executed_by(const Sass& sass) {
  const BlockPath path = run_code(sass);
  Executions executed;
  for (const Executed& one : path.warps[0].executed) executed.emplace_back(one.instruction, one.active);
  return executed;
}

constexpr uint32_t even = 0x55555555, odd = 0xaaaaaaaa;  // lanes

// Even lanes to the EXIT that follows at 0x50, odd ones to the NOP behind it.
TEST(Interpreter, BranchesByATableLeadEachLaneToItsPlace) {
  const Sass sass = Code()
                        .add("S2R R0, SR_TID.X")
                        .add("LOP3.LUT R2, R0, 0x1, RZ, 0xc0, !PT")
                        .add("SHF.L.U32 R2, R2, 0x4, RZ")
                        .add("@!PT BRX R2 -0x10")
                        .add("BRX R2 -0x0 (*\"BRANCH_TARGETS .L_x_1,.L_x_2\"*)")
                        .add("EXIT")
                        .add("NOP")
                        .add("FADD R3, RZ, RZ")
                        .add("EXIT")
                        .sass();
  const Executions expected = {{0, ~0U}, {1, ~0U}, {2, ~0U}, {3, 0}, {4, ~0U}, {5, even}, {6, odd}, {7, odd}, {8, odd}};
  EXPECT_EQ(executed_by(sass), expected);
}

// Even lanes to the EXIT that follows at 0x50, odd ones to the NOP behind it.
TEST(Interpreter, ReturnsLeadEachLaneToItsPlace) {
  const Sass sass = Code()
                        .add("S2R R0, SR_TID.X")
                        .add("LOP3.LUT R2, R0, 0x1, RZ, 0xc0, !PT")
                        .add("SHF.L.U32 R2, R2, 0x4, RZ")
                        .add("IADD3 R2, R2, 0x50, RZ")
                        .add("RET.REL.NODEC R2 `(test)")
                        .label("test")
                        .add("EXIT")
                        .add("NOP")
                        .add("EXIT")
                        .sass();
  EXPECT_EQ(executed_by(sass),
            (Executions{{0, ~0U}, {1, ~0U}, {2, ~0U}, {3, ~0U}, {4, ~0U}, {5, even}, {6, odd}, {7, odd}}));
}

TEST(Interpreter, BranchesByATableHaveConditions) {
  for (const char* branch : {"BRX PT, R4 0x10", "BRXU PT, UR4 0x10", "BRX !PT, R4 0x10", "@!PT BRX R4 0x10"}) {
    const BlockPath path = run_code(Code().add(branch).add("NOP").add("EXIT").sass());
    EXPECT_EQ(path.warps[0].executed.size(), std::string(branch).find('!') == std::string::npos ? 2U : 3U) << branch;
  }
}

TEST(Interpreter, BranchesByATableToNowhereAreErrors) {
  const auto fails_with = [](Code code, const std::string& text) {
    try {
      run_code(code.sass());
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(text));
    }
  };
  fails_with(Code().add("MOV R2, 0x8").add("BRX R2 -0x10").add("EXIT"), "no instruction at 0x18");
  fails_with(Code().add("MOV R2, 0x7fffffff").add("BRX R2 -0x7fffffffffffffff").add("EXIT"), "no instruction at");
  fails_with(Code().add("LDG.E R2, [RZ]").add("BRX R2 -0x10").add("EXIT"), "depends on data");
  fails_with(with_data().add("@P0 BRX R4 -0x30").add("EXIT"), "depends on data");
  fails_with(with_data().add("BRX P0, R4 -0x30").add("EXIT"), "depends on data");
  fails_with(Code().add("BRX").add("EXIT"), "BRX");
}

TEST(Interpreter, WaitsAreOverOnceMemoryIsKnown) {
  const Sass sass = Code()
                        .label("again")
                        .add("LDG.E.STRONG.GPU R2, [RZ]")
                        .add("ISETP.EQ.AND P0, PT, R2, RZ, PT")
                        .add("@P0 BRA `(again)")
                        .add("EXIT")
                        .sass();
  Launch launch;
  EXPECT_THROW(run_code(sass, launch), Error);
  launch.memory = [](uint64_t, uint32_t& word) {
    word = 0;  // as it stays if nobody writes
    return true;
  };
  EXPECT_EQ(run_code(sass, launch).warps[0].executed.size(), 4U);
}

Sass nested_loops() {
  return Code()
      .add("MOV R1, RZ")
      .label("outer")
      .add("MOV R2, RZ")
      .label("inner")
      .add("IADD3 R2, R2, 0x1, RZ")
      .add("ISETP.LT.AND P0, PT, R2, 0x2, PT")
      .add("@P0 BRA `(inner)")
      .add("BAR.SYNC 0x0")
      .add("IADD3 R1, R1, 0x1, RZ")
      .add("ISETP.LT.AND P0, PT, R1, 0x8, PT")
      .add("@P0 BRA `(outer)")
      .add("EXIT")
      .sass();
}

Launch of_two_warps() {
  Launch launch;
  launch.block = {64, 1, 1};
  return launch;
}

TEST(Interpreter, ProfilesLoopsByOneWarp) {
  const Sass sass = nested_loops();
  const KernelFacts facts = plain_facts();
  const Launch launch = of_two_warps();
  Interpreter interpreter(sass, facts, launch);
  const LoopProfile profile = interpreter.profile(0);
  EXPECT_EQ(profile.instructions, 1U + 8 * 11 + 1);
  EXPECT_EQ(profile.instructions, interpreter.run(0).warps[0].executed.size());
  ASSERT_EQ(profile.loops.size(), 2U);
  EXPECT_EQ(profile.loops[0].branch, 4U);
  EXPECT_EQ(profile.loops[0].turns, 8U);
  EXPECT_EQ(profile.loops[1].branch, 8U);
  EXPECT_EQ(profile.loops[1].turns, 7U);
  EXPECT_EQ(profile.loops[1].first, 12U);
  EXPECT_EQ(profile.loops[1].instructions_of_turn(), 11);
}

TEST(Interpreter, ACutPathIsTheBeginningOfTheWholeOne) {
  const Sass sass = nested_loops();
  const KernelFacts facts = plain_facts();
  const Launch launch = of_two_warps();
  Interpreter interpreter(sass, facts, launch);
  const BlockPath whole = interpreter.run(0), cut = interpreter.run(0, {8, 3});
  for (size_t w = 0; w < 2; ++w) {
    const auto& executed = cut.warps[w].executed;
    ASSERT_EQ(executed.size(), 1U + 3 * 11);
    for (size_t i = 0; i < executed.size(); ++i)
      EXPECT_EQ(executed[i].instruction, whole.warps[w].executed[i].instruction);
  }
}

TEST(Interpreter, EndlessLoopsEnd) {
  const Sass sass = Code().label("again").add("BRA `(again)").sass();
  Launch launch;
  launch.instruction_limit = 1000;
  try {
    run_code(sass, launch);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("more than 1000 instructions"));
  }
}

TEST(Interpreter, CodeWithoutAnEndIsAnError) {
  EXPECT_THROW(run_code(Code().add("NOP").sass()), Error);
  EXPECT_THROW(run_code(Code().add("IADD3 R1, R2").sass()), Error);
}

}  // namespace
}  // namespace kiln::timing::interpreter_control_test
