// Planted reads of what was never written, and barriers that a block's threads do not meet at together.
#include "core_strict_fixture.h"

namespace kiln::emulator::test::core_strict_faults_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr auto uninitialised = FaultKind::uninitialised_read;

std::string unwritten(const std::string& verb, uint32_t bytes, uint32_t offset) {
  return verb + " " + std::to_string(bytes) + " bytes, among them offset " + std::to_string(offset) +
         " of shared memory, which no thread of the block has written (uninitialised)";
}

/// Expects the report of a load whose value (%r9) is stored behind it.
void expect_unwritten(StrictKernel kernel, const Party& load, const std::string& what) {
  const std::string use = "st.global.u32 [%rd0], %r9";
  kernel.body += "\n" + use + ";";
  const Fault fault = run_strict(kernel);
  EXPECT_EQ(fault.kind, uninitialised) << kernel.body;
  const std::string thread =
      "block (" + std::to_string(kernel.blocks - 1) + ", 0, 0), thread (" + std::to_string(load.thread) + ", 0, 0)";
  EXPECT_THAT(fault.report,
              AllOf(HasSubstr(thread), HasSubstr(": " + what + "\n  PTX line "),
                    HasSubstr(": " + load.instruction + "\n  stored here: PTX line "), HasSubstr(": " + use)));
}

TEST(UninitialisedReads, OfSharedMemoryThatNobodyHasWritten) {
  expect_unwritten({"ld.shared.u32 %r9, [%r2+4];"}, {0, "ld.shared.u32 %r9, [%r2+4]"}, unwritten("reads", 4, 4));
}

TEST(UninitialisedReads, OfTheOneElementThatALoopLeavesOut) {
  expect_unwritten(
      {"setp.ne.u32 %p1, %r0, 37;\n@%p1 st.shared.u32 [%r2], %r0;\nbar.sync 0;\nld.shared.u32 %r9, [%r2];"},
      {37, "ld.shared.u32 %r9, [%r2]"}, unwritten("reads", 4, 148));
}

TEST(UninitialisedReads, OfTheLastWordOfAVector) {
  expect_unwritten({"mad.lo.u32 %r8, %r0, 16, %r1;\nst.shared.v2.u32 [%r8], {%r0, %r0};\nst.shared.u32 [%r8+8], %r0;\n"
                    "ld.shared.v4.u32 {%r10, %r11, %r12, %r9}, [%r8];"},
                   {0, "ld.shared.v4.u32 {%r10, %r11, %r12, %r9}, [%r8]"}, unwritten("reads", 16, 12));
}

TEST(UninitialisedReads, OfWhatOnlyAnEarlierBlockHasWritten) {
  expect_unwritten({"mov.u32 %r4, %ctaid.x;\nsetp.eq.u32 %p1, %r4, 0;\n@%p1 st.shared.u32 [%r2], %r0;\nbar.sync 0;\n"
                    "ld.shared.u32 %r9, [%r2];",
                    32, 2},
                   {0, "ld.shared.u32 %r9, [%r2]"}, unwritten("reads", 4, 0));
}

TEST(UninitialisedReads, ByAnAtomicOnSharedMemory) {
  expect_report({"atom.shared.add.u32 %r9, [%r1+16], 1;"}, uninitialised, {0, "atom.shared.add.u32 %r9, [%r1+16], 1"},
                unwritten("updates", 4, 16));
}

/// Expects a fault where the first 128 of 256 bytes of input are written.
void expect_unwritten_input(const std::string& setup, const std::string& instruction, const std::string& verb,
                            uint32_t bytes, uint32_t thread, uint32_t hole, uint32_t offset) {
  const StrictKernel kernel{setup + instruction + ";\nst.global.u32 [%rd0], %r9;", 64};
  const Fault fault = run_strict(kernel);
  EXPECT_EQ(fault.kind, uninitialised);
  EXPECT_THAT(fault.report, AllOf(HasSubstr("thread (" + std::to_string(thread) + ", 0, 0)"),
                                  HasSubstr(": " + verb + " " + std::to_string(bytes) + " bytes at 0x"),
                                  HasSubstr(", of which byte " + std::to_string(hole) + ", " + std::to_string(offset) +
                                            " bytes into the input, has never been written (uninitialised)"),
                                  HasSubstr(": " + instruction)));
}

TEST(UninitialisedReads, OfGlobalMemory) {
  expect_unwritten_input("add.u64 %rd3, %rd1, %rd2;\n", "ld.global.u32 %r9, [%rd3]", "reads", 4, 32, 0, 128);
  expect_unwritten_input("add.u64 %rd3, %rd1, %rd2;\n", "ld.global.nc.u8 %r9, [%rd3+3]", "reads", 1, 32, 0, 131);
  expect_unwritten_input("mul.wide.u32 %rd4, %r3, 4;\nadd.u64 %rd3, %rd1, %rd4;\n",
                         "ld.global.v4.u32 {%r9, %r11, %r12, %r13}, [%rd1+128]", "reads", 16, 0, 0, 128);
}

TEST(LinesOfAddresses, MayWrapAroundTheEndOfTheAddressSpace) {
  const std::string of_second_block = "setp.eq.u32 %p2, %r20, 0;\n@%p2 bra done;\nmul.wide.u32 %rd4, %r3, 4;\n";
  for (const std::string load :
       {"add.u64 %rd4, %rd4, -8;\nld.global.u32 %r9, [%rd4];\ndone:", "ld.global.u32 %r9, [%rd4+-8];\ndone:"}) {
    const Fault fault = run_strict({of_second_block + load, 32, 2});
    EXPECT_EQ(fault.kind, FaultKind::illegal_address);
    EXPECT_THAT(fault.report, HasSubstr("block (1, 0, 0), thread (0, 0, 0)"));
    EXPECT_THAT(fault.report, HasSubstr("reads 4 bytes at 0xfffffffffffffff8"));
  }
}

TEST(LinesOfAddresses, MayEndWithTheAddressSpace) {
  const std::string of_second_block = "setp.eq.u32 %p2, %r20, 0;\n@%p2 bra done;\nmov.u64 %rd4, 0;\n";
  for (const std::string access : {"ld.global.u32 %r9, [%rd4+-4]", "st.global.u32 [%rd4+-4], 5"}) {
    const Fault fault = run_strict({of_second_block + access + ";\ndone:", 32, 2});
    EXPECT_EQ(fault.kind, FaultKind::illegal_address) << access;
    EXPECT_THAT(fault.report, HasSubstr("s 4 bytes at 0xfffffffffffffffc"));
  }
}

TEST(UninitialisedReads, OfGlobalMemoryByAnAtomicOrACopy) {
  expect_unwritten_input("", "atom.global.add.u32 %r9, [%rd1+132], 1", "updates", 4, 0, 0, 132);
  expect_unwritten_input(
      "mad.lo.u32 %r8, %r0, 16, %r1;\nmul.wide.u32 %rd4, %r3, 16;\nadd.u64 %rd3, %rd1, %rd4;\n"
      "setp.lt.u32 %p1, %r0, 9;\n",
      "@%p1 cp.async.cg.shared.global [%r8], [%rd3], 16", "reads", 16, 8, 0, 128);
}

TEST(UninitialisedReads, WhatTheKernelHasWrittenItselfIsWritten) {
  expect_silence(
      {"setp.ge.u32 %p1, %r0, 32;\nadd.u64 %rd3, %rd1, %rd2;\n@%p1 st.global.u32 [%rd3], 5;\n"
       "ld.global.u32 %r9, [%rd3];\nst.global.u32 [%rd0], %r9;"});
}

const std::string local_array = ".local .align 8 .b8 mine[32];\n";

TEST(UninitialisedReads, OfLocalMemory) {
  expect_unwritten(
      {local_array + "st.local.u32 [mine+8], %r0;\nld.local.u32 %r8, [mine+8];\nld.local.u32 %r9, [mine+4];"},
      {0, "ld.local.u32 %r9, [mine+4]"},
      "reads 4 bytes at offset 4 of its local memory, of which it has not written byte 0 (uninitialised)");
}

TEST(UninitialisedReads, OfTheLocalMemoryThatOneThreadLeavesOut) {
  expect_unwritten({local_array + "setp.ne.u32 %p1, %r0, 37;\n@%p1 st.local.u16 [mine+2], 5;\nst.local.u16 [mine], 5;\n"
                                  "ld.local.u32 %r9, [mine];"},
                   {37, "ld.local.u32 %r9, [mine]"},
                   "reads 4 bytes at offset 0 of its local memory, of which it has not written byte 2 (uninitialised)");
}

TEST(UninitialisedReads, OfLocalMemoryByAGenericAddress) {
  expect_unwritten(
      {local_array + "mov.u64 %rd4, mine;\ncvta.local.u64 %rd5, %rd4;\nst.u32 [%rd5], %r0;\n"
                     "ld.u32 %r9, [%rd5];\nld.u32 %r9, [%rd5+16];"},
      {0, "ld.u32 %r9, [%rd5+16]"},
      "reads 4 bytes at offset 16 of its local memory, of which it has not written byte 0 (uninitialised)");
}

TEST(UninitialisedReads, OfLocalMemoryThatOnlyAnEarlierBlockHasWritten) {
  expect_unwritten(
      {local_array + "setp.eq.u32 %p1, %r20, 0;\n@%p1 st.local.u32 [mine], 1;\nld.local.u32 %r9, [mine];", 32, 2},
      {0, "ld.local.u32 %r9, [mine]"},
      "reads 4 bytes at offset 0 of its local memory, of which it has not written byte 0 (uninitialised)");
}

const std::string divergent_block =
    "comes to barrier 0 of the whole block here, while {other} waits there at another instruction (divergent barrier)";
const std::string divergent_warp =
    "comes to this barrier, which all threads of a warp must reach together, while thread (";

TEST(DivergentBarriers, OneForEachSideOfABranchBetweenWarps) {
  expect_report({"setp.ge.u32 %p1, %r0, 32;\n@%p1 bra upper;\nadd.u32 %r5, %r5, 1;\nbar.sync 0;\nbra done;\nupper:\n"
                 "barrier.sync.aligned 0;\ndone:"},
                FaultKind::divergent_barrier, {32, "barrier.sync.aligned 0"}, divergent_block, {0, "bar.sync 0"});
}

TEST(DivergentBarriers, OneForEachSideOfABranchWithinAWarp) {
  expect_report({"setp.ge.u32 %p1, %r3, 16;\n@%p1 bra upper;\nbar.sync 0;\nbra done;\nupper:\nbarrier.sync.aligned 0;\n"
                 "done:",
                 32},
                FaultKind::divergent_barrier, {16, "barrier.sync.aligned 0"},
                divergent_warp + "0, 0, 0) of its warp waits at another (divergent barrier)", {0, "bar.sync 0"});
}

TEST(DivergentBarriers, LanesThatSkipOneAndComeToTheNext) {
  expect_report({"setp.ge.u32 %p1, %r3, 5;\n@%p1 bra after;\nbar.sync 0;\nafter:\nadd.u32 %r5, %r5, 1;\nbar.sync 1;"},
                FaultKind::divergent_barrier, {5, "bar.sync 1"},
                divergent_warp + "0, 0, 0) of its warp waits at another (divergent barrier)", {0, "bar.sync 0"});
}

TEST(DivergentBarriers, AVoteAndAPlainOneDoNotMatch) {
  expect_report(
      {"setp.lt.u32 %p1, %r0, 32;\n@%p1 bra lower;\nbar.red.popc.u32 %r9, 0, %p1;\nbra done;\nlower:\nbar.sync 0;\n"
       "done:"},
      FaultKind::divergent_barrier, {32, "bar.red.popc.u32 %r9, 0, %p1"}, divergent_block, {0, "bar.sync 0"});
}

}  // namespace
}  // namespace kiln::emulator::test::core_strict_faults_test
