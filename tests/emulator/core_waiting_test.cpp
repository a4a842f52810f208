// Threads that wait for each other: within a warp, between warps, and for ever.
#include <algorithm>
#include <numeric>

#include "core_fixture.h"

namespace kiln::emulator::test::core_waiting_test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

/// Thread number in %r0, the output's address in %rd0, shared words `flag` and `data`.
std::string waiting_kernel(const std::string& body) {
  return ptx_kernel(
      ".shared .align 4 .b8 flag[4];\n.shared .align 4 .b8 data[256];\nmov.u32 %r0, %tid.x;\n"
      "ld.param.u64 %rd0, [p0];\nmul.wide.u32 %rd2, %r0, 4;\nadd.u64 %rd2, %rd0, %rd2;\n" +
      body);
}

std::vector<uint32_t> run_waiting(const std::string& body, uint32_t threads) {
  Module module(waiting_kernel(body));
  Buffer<uint32_t> out(threads);
  module.allow(out).check(CheckLevel::full);
  module.launch("k", {1}, {threads}, Arguments(out.address(), uint64_t{0}, uint64_t{0}, uint64_t{0}));
  return out.values();
}

Fault waiting_fault(const std::string& body, uint32_t threads) {
  Module module(waiting_kernel(body));
  Buffer<uint32_t> out(threads);
  module.allow(out).check(CheckLevel::full);
  return module.fault("k", {1}, {threads}, Arguments(out.address(), uint64_t{0}, uint64_t{0}, uint64_t{0}));
}

const std::string clear_flag = "setp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.u32 [flag], 0;\nbar.sync 0;\n";

TEST(Waiting, ALaneThatSpinsLetsTheLaneOfItsOwnWarpProduce) {
  // Lane 31 produces; the others spin on the flag, in a loop that stands before the producer's code and after it.
  const std::string before =
      clear_flag +
      "setp.eq.u32 %p2, %r0, 31;\n@%p2 bra produce;\nspin:\nld.volatile.shared.u32 %r2, [flag];\n"
      "setp.eq.u32 %p3, %r2, 0;\n@%p3 bra spin;\nbra done;\nproduce:\nst.shared.u32 [data], 42;\nmembar.cta;\n"
      "st.volatile.shared.u32 [flag], 1;\ndone:\nmembar.cta;\nld.shared.u32 %r3, [data];\nst.global.u32 [%rd2], %r3;";
  EXPECT_THAT(run_waiting(before, 32), Each(42u));
  const std::string after = clear_flag +
                            "setp.ne.u32 %p2, %r0, 0;\n@%p2 bra spin;\nst.shared.u32 [data], 43;\nmembar.cta;\n"
                            "st.volatile.shared.u32 [flag], 1;\nbra done;\nspin:\nld.volatile.shared.u32 %r2, [flag];\n"
                            "setp.eq.u32 %p3, %r2, 0;\n@%p3 bra spin;\ndone:\nmembar.cta;\nld.shared.u32 %r3, [data];\n"
                            "st.global.u32 [%rd2], %r3;";
  EXPECT_THAT(run_waiting(after, 32), Each(43u));
}

TEST(Waiting, AWarpThatSpinsLetsALaterWarpProduce) {
  const std::string body =
      clear_flag +
      "setp.ge.u32 %p2, %r0, 64;\n@%p2 bra produce;\nspin:\nld.volatile.shared.u32 %r2, [flag];\n"
      "setp.ne.u32 %p3, %r2, 32;\n@%p3 bra spin;\nbra done;\nproduce:\natom.shared.add.u32 %r4, [flag], 1;\ndone:\n"
      "st.global.u32 [%rd2], %r0;";
  const std::vector<uint32_t> out = run_waiting(body, 96);
  for (uint32_t k = 0; k < 96; ++k) EXPECT_EQ(out[k], k);
}

TEST(Waiting, ALockPassesFromLaneToLane) {
  const std::string body =
      clear_flag +
      "setp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.u32 [data], 0;\nbar.sync 0;\nacquire:\n"
      "atom.shared.cas.b32 %r1, [flag], 0, 1;\nsetp.ne.u32 %p2, %r1, 0;\n@%p2 bra acquire;\nmembar.cta;\n"
      "ld.shared.u32 %r2, [data];\nadd.u32 %r2, %r2, %r0;\nst.shared.u32 [data], %r2;\nmembar.cta;\n"
      "atom.shared.exch.b32 %r3, [flag], 0;\nbar.sync 0;\nld.shared.u32 %r4, [data];\nst.global.u32 [%rd2], %r4;";
  EXPECT_THAT(run_waiting(body, 64), Each(64u * 63 / 2));
}

TEST(Waiting, NamedBarriersHandOverBetweenWarps) {
  // Warp 0 fills and arrives at barrier 1; warp 1 waits there, doubles, and both meet at barrier 2.
  const std::string body =
      "and.b32 %r5, %r0, 31;\nshl.b32 %r6, %r5, 2;\nmov.u32 %r7, data;\nadd.u32 %r7, %r7, %r6;\n"
      "setp.ge.u32 %p1, %r0, 32;\n@%p1 bra consume;\nst.shared.u32 [%r7], %r0;\nbar.arrive 1, 64;\nbra "
      "join;\nconsume:\n"
      "bar.sync 1, 64;\nld.shared.u32 %r8, [%r7];\nadd.u32 %r8, %r8, %r8;\nst.shared.u32 [%r7], %r8;\njoin:\n"
      "bar.sync 2, 64;\nld.shared.u32 %r9, [%r7];\nst.global.u32 [%rd2], %r9;";
  const std::vector<uint32_t> out = run_waiting(body, 64);
  for (uint32_t k = 0; k < 64; ++k) EXPECT_EQ(out[k], 2 * (k % 32)) << k;
}

TEST(Waiting, ACountedBarrierCountsWholeWarpsThoughLanesHaveLeft) {
  // Lanes 16 to 31 of warp 1 are gone; "the operand b specifies the number of threads participating", in whole warps.
  const std::vector<uint32_t> out =
      run_waiting("setp.ge.u32 %p1, %r0, 48;\n@%p1 ret;\nbar.sync 0, 64;\nst.global.u32 [%rd2], 7;", 64);
  for (uint32_t k = 0; k < 64; ++k) EXPECT_EQ(out[k], k < 48 ? 7u : 0u) << k;
}

TEST(Waiting, ACopyThatReadsMoreThanItWritesIsRefused) {
  const Fault fault =
      waiting_fault("mov.u32 %r1, data;\nmov.u32 %r2, 8;\ncp.async.ca.shared.global [%r1], [%rd0], 4, %r2;", 32);
  EXPECT_EQ(fault.kind, FaultKind::illegal_instruction);
  EXPECT_THAT(fault.report, HasSubstr("the copy is to read more bytes than it writes"));
}

TEST(Waiting, WholeWarpsThatWaitForEachOtherAreADeadlockThatListsThem) {
  // Warp 0 waits at barrier 1 for warp 1, which waits at barrier 2 for warp 0; warp 2 has left.
  const Fault fault = waiting_fault(
      "setp.ge.u32 %p1, %r0, 64;\n@%p1 ret;\nsetp.ge.u32 %p2, %r0, 32;\n@%p2 bra second;\nbar.sync 1, 64;\nbra done;\n"
      "second:\nbar.sync 2, 64;\ndone:",
      96);
  EXPECT_EQ(fault.kind, FaultKind::deadlock);
  EXPECT_THAT(fault.report,
              AllOf(HasSubstr("kernel k, block (0, 0, 0): no warp can go on (deadlock)"),
                    HasSubstr("warp 0, lanes 0xffffffff, from thread (0, 0, 0): waits at barrier 1, where 32 of 64"),
                    HasSubstr("warp 1, lanes 0xffffffff, from thread (32, 0, 0): waits at barrier 2, where 32 of 64"),
                    HasSubstr("bar.sync 1, 64"), HasSubstr("bar.sync 2, 64"), testing::Not(HasSubstr("warp 2"))));
}

TEST(Waiting, ABarrierThatAskedForMoreThreadsThanComeIsADeadlock) {
  const Fault fault = waiting_fault("bar.sync 3, 128;", 96);
  EXPECT_EQ(fault.kind, FaultKind::deadlock);
  EXPECT_THAT(fault.report, HasSubstr("96 of 128 threads have arrived"));
}

TEST(Waiting, AWarpSynchronisationWithALaneThatNeverComesIsADeadlock) {
  const Fault fault = waiting_fault(
      "setp.eq.u32 %p1, %r0, 5;\n@%p1 bra alone;\nbar.warp.sync -1;\nbra done;\nalone:\nbarrier.sync 1;\ndone:", 32);
  EXPECT_EQ(fault.kind, FaultKind::deadlock);
  EXPECT_THAT(fault.report, AllOf(HasSubstr("in a warp synchronisation of lanes 0xffffffff"),
                                  HasSubstr("thread (5, 0, 0)"), HasSubstr("at barrier 1")));
}

TEST(Waiting, AShuffleWithALaneThatNeverComesIsADeadlock) {
  const Fault fault = waiting_fault(
      "setp.lt.u32 %p1, %r0, 8;\n@%p1 bra stuck;\nshfl.sync.idx.b32 %r1, %r0, 0, 31, -1;\nbra done;\nstuck:\n"
      "barrier.sync 1;\ndone:",
      32);
  EXPECT_EQ(fault.kind, FaultKind::deadlock);
  EXPECT_THAT(fault.report, HasSubstr("for lanes 0x000000ff, which have not come to this instruction"));
}

TEST(Waiting, SpinningOnAFlagThatNobodySetsMeetsTheInstructionLimit) {
  const Fault fault = waiting_fault(clear_flag +
                                        "spin:\nld.volatile.shared.u32 %r2, [flag];\nsetp.eq.u32 %p3, %r2, 0;\n"
                                        "@%p3 bra spin;",
                                    64);
  EXPECT_EQ(fault.kind, FaultKind::timeout);
  EXPECT_THAT(fault.report, AllOf(HasSubstr("more than 1000000 warp instructions"), HasSubstr("thread (")));
}

TEST(Waiting, WarpsThatMeetForEverMeetTheInstructionLimit) {
  const Fault fault =
      waiting_fault("mov.u32 %r1, 0;\nagain:\nbar.sync 0;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra again;", 64);
  EXPECT_EQ(fault.kind, FaultKind::timeout);
  EXPECT_THAT(fault.report, HasSubstr("more than 1000000 warp instructions"));
}

}  // namespace
}  // namespace kiln::emulator::test::core_waiting_test
