// mbarrier: phases, arrivals, announced bytes, and threads that wait for them, from the text of the PTX ISA.
#include "core_fixture.h"

namespace kiln::emulator::test::core_mbarrier_test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

/// A thread's number is %r0, the mbarrier's address %r1 (another one stands 8 bytes on), out's address %rd0, the
/// thread's own word of it at %rd2.
std::string barrier_kernel(const std::string& body) {
  return ptx_kernel(
      ".shared .align 8 .b8 bar[16];\n.shared .align 4 .b8 data[512];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, bar;\n"
      "ld.param.u64 %rd0, [p0];\nmul.wide.u32 %rd2, %r0, 4;\nadd.u64 %rd2, %rd0, %rd2;\n" +
      body);
}

std::vector<uint32_t> run_barrier(const std::string& body, uint32_t threads, size_t words) {
  Module module(barrier_kernel(body));
  Buffer<uint32_t> out(words, 99);
  module.allow(out);
  for (const CheckLevel level : {CheckLevel::off, CheckLevel::bounds, CheckLevel::full}) {
    module.check(level);
    module.launch("k", {2}, {threads}, Arguments(out.address(), uint64_t{0}, uint64_t{0}, uint64_t{0}));
  }
  return out.values();
}

Fault barrier_fault(const std::string& body, uint32_t threads, CheckLevel level = CheckLevel::full) {
  Module module(barrier_kernel(body));
  Buffer<uint32_t> out(threads);
  module.allow(out).check(level);
  return module.fault("k", {1}, {threads}, Arguments(out.address(), uint64_t{0}, uint64_t{0}, uint64_t{0}));
}

/// One thread executes `steps`, in which "?state" stands for storing whether the phase in `state` has ended, and "?0",
/// "?1" for the same of a parity. Returns what was stored, one after the other.
std::vector<uint32_t> answers(const std::string& steps) {
  std::string body;
  uint32_t words = 0;
  for (size_t at = 0; at < steps.size();) {
    const size_t end = steps.find('\n', at);
    const std::string line = steps.substr(at, end - at);
    at = end == std::string::npos ? steps.size() : end + 1;
    if (line.empty() || line[0] != '?') {
      body += line + "\n";
      continue;
    }
    const std::string phase = line.substr(1);
    body += (phase.size() == 1 ? "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], "
                               : "mbarrier.test_wait.shared.b64 %p1, [%r1], ") +
            phase + ";\nselp.u32 %r9, 1, 0, %p1;\nst.global.u32 [%rd0+" + std::to_string(4 * words++) + "], %r9;\n";
  }
  return run_barrier(body, 1, words);
}

TEST(Mbarrier, APhaseEndsWhenAllHaveArrivedAndTheNextBegins) {
  EXPECT_THAT(
      answers("mbarrier.init.shared.b64 [%r1], 2;\n?0\n?1\nmbarrier.arrive.shared.b64 %rd4, [%r1];\n?%rd4\n"
              "mbarrier.arrive.shared::cta.b64 %rd5, [%r1];\n?%rd4\n?%rd5\n?0\n?1\n"
              "mbarrier.arrive.shared.b64 %rd6, [%r1];\n?%rd6\nmbarrier.arrive.shared.b64 _, [%r1];\n?%rd6\n?1"),
      ElementsAre(0, 1, 0, 1, 1, 1, 0, 0, 1, 1))
      << "at first the phase before, of parity 1, counts as ended";
}

TEST(Mbarrier, AStateTellsHowManyArrivalsWereLacking) {
  EXPECT_THAT(run_barrier("mbarrier.init.shared.b64 [%r1], 1000;\nmbarrier.arrive.shared.b64 %rd4, [%r1], 300;\n"
                          "mbarrier.arrive.release.cta.shared::cta.b64 %rd5, [%r1], 700;\n"
                          "mbarrier.arrive.shared.b64 %rd6, [%r1];\nmbarrier.pending_count.b64 %r3, %rd4;\n"
                          "mbarrier.pending_count.b64 %r4, %rd5;\nmbarrier.pending_count.b64 %r5, %rd6;\n"
                          "st.global.u32 [%rd0], %r3;\nst.global.u32 [%rd0+4], %r4;\nst.global.u32 [%rd0+8], %r5;",
                          1, 3),
              ElementsAre(1000, 700, 1000));
}

TEST(Mbarrier, APhaseLastsUntilTheBytesThatWereAnnouncedHaveCome) {
  EXPECT_THAT(
      answers("mbarrier.init.shared.b64 [%r1], 1;\nmbarrier.arrive.expect_tx.shared.b64 %rd4, [%r1], 64;\n?%rd4\n"
              "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 60;\n?%rd4\n"
              "mbarrier.complete_tx.shared.b64 [%r1], 4;\n?%rd4"),
      ElementsAre(0, 0, 1));
  EXPECT_THAT(answers("mbarrier.init.shared.b64 [%r1], 1;\nmbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 16;\n"
                      "mbarrier.expect_tx.shared.b64 [%r1], 8;\nmbarrier.complete_tx.shared.b64 [%r1], 24;\n?0\n"
                      "mbarrier.arrive.shared.b64 _, [%r1];\n?0"),
              ElementsAre(0, 1))
      << "bytes alone end no phase";
  EXPECT_THAT(answers("mbarrier.init.shared.b64 [%r1], 1;\nmbarrier.complete_tx.shared.b64 [%r1], 32;\n"
                      "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r1], 32;\n?0"),
              ElementsAre(1))
      << "they may come before they are announced";
}

TEST(Mbarrier, AnArrivalThatDropsOutIsNotExpectedAgain) {
  EXPECT_THAT(answers("mbarrier.init.shared.b64 [%r1], 3;\nmbarrier.arrive.shared.b64 _, [%r1], 2;\n"
                      "mbarrier.arrive_drop.shared.b64 %rd4, [%r1];\n?%rd4\n"
                      "mbarrier.arrive.shared.b64 %rd5, [%r1];\n?%rd5\nmbarrier.arrive.shared.b64 _, [%r1];\n?%rd5"),
              ElementsAre(1, 0, 1));
}

TEST(Mbarrier, MayBeMadeAnewAfterItIsNoLongerOne) {
  EXPECT_THAT(answers("mbarrier.init.shared.b64 [%r1], 1;\nmbarrier.arrive.shared.b64 %rd4, [%r1];\n?0\n"
                      "mbarrier.inval.shared.b64 [%r1];\nmbarrier.init.shared.b64 [%r1], 2;\n?0\n"
                      "mbarrier.arrive.noComplete.release.cta.shared::cta.b64 _, [%r1], 1;\n?0\n"
                      "mbarrier.arrive.shared.b64 _, [%r1];\n?0"),
              ElementsAre(1, 0, 0, 1));
}

TEST(Mbarrier, IsReachedByGenericAddressesAndAsTheClustersMemory) {
  EXPECT_THAT(
      answers("cvt.u64.u32 %rd8, %r1;\ncvta.shared.u64 %rd9, %rd8;\nmbarrier.init.b64 [%rd9], 2;\n"
              "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];\nmbarrier.arrive.b64 %rd4, [%rd9+0];\n"
              "?%rd4\nmbarrier.init.shared.b64 [bar+8], 1;\nmbarrier.arrive.shared.b64 %rd5, [%rd8+8];\n"
              "add.u32 %r1, %r1, 16;\nmbarrier.try_wait.acquire.cluster.shared::cta.b64 %p2, [%r1+-8], %rd5, 1000;\n"
              "selp.u32 %r9, 1, 0, %p2;\nst.global.u32 [%rd0], %r9;"),
      ElementsAre(1));
}

// Threads.

const std::string first_thread_inits = "setp.eq.u32 %p1, %r0, 0;\n@%p1 mbarrier.init.shared.b64 [%r1], ";
const std::string wait_for_phase_0 =
    "waiting:\nmbarrier.try_wait.parity.shared.b64 %p3, [%r1], 0;\n@!%p3 bra waiting;\n";

/// Warps 0 and 1 read what warp 2 writes. `arrival` is warp 2's.
std::string handed_over(const std::string& arrival, const std::string& wait = wait_for_phase_0) {
  return first_thread_inits +
         "32;\nbar.sync 0;\nand.b32 %r4, %r0, 31;\nshl.b32 %r4, %r4, 2;\nmov.u32 %r5, data;\nadd.u32 %r5, %r5, %r4;\n"
         "setp.ge.u32 %p2, %r0, 64;\n@%p2 bra produce;\n" +
         wait +
         "ld.shared.u32 %r6, [%r5];\nst.global.u32 [%rd2], %r6;\nbra done;\nproduce:\nst.shared.u32 [%r5], %r0;\n" +
         arrival + "\ndone:";
}

TEST(Mbarrier, ThreadsThatWaitSeeWhatThoseThatArrivedHaveWritten) {
  const std::vector<uint32_t> out = run_barrier(handed_over("mbarrier.arrive.shared.b64 _, [%r1];"), 96, 64);
  for (uint32_t k = 0; k < 64; ++k) EXPECT_EQ(out[k], 64 + k % 32) << k;
}

TEST(Mbarrier, NoOrderComesOfRelaxedArrivalsAndWaits) {
  for (const std::string& body :
       {handed_over("mbarrier.arrive.relaxed.cta.shared.b64 _, [%r1];"),
        handed_over("mbarrier.arrive.shared.b64 _, [%r1];",
                    "waiting:\nmbarrier.try_wait.parity.relaxed.cta.shared.b64 %p3, [%r1], 0;\n@!%p3 bra waiting;\n"),
        handed_over("mbarrier.arrive.shared.b64 _, [%r1];", "nanosleep.u32 10;\n")}) {
    const Fault fault = barrier_fault(body, 96);
    EXPECT_EQ(fault.kind, FaultKind::race);
    EXPECT_THAT(fault.report, HasSubstr("ld.shared.u32"));
  }
}

TEST(Mbarrier, LanesOfOneWarpMayWaitForEachOther) {
  EXPECT_THAT(
      run_barrier(first_thread_inits + "1;\nbar.sync 0;\nsetp.eq.u32 %p2, %r0, 31;\n@%p2 bra produce;\n" +
                      wait_for_phase_0 +
                      "ld.shared.u32 %r6, [data];\nst.global.u32 [%rd2], %r6;\nbra done;\nproduce:\n"
                      "st.shared.u32 [data], 7;\nmbarrier.arrive.shared.b64 _, [%r1];\nst.global.u32 [%rd2], 7;\n"
                      "done:",
                  32, 32),
      Each(7));
}

TEST(Mbarrier, LanesMayWaitForDifferentOnes) {
  // Even lanes wait for the first, which is over, odd ones for the second, which thread 32 ends.
  EXPECT_THAT(
      run_barrier(first_thread_inits +
                      "1;\n@%p1 mbarrier.init.shared.b64 [%r1+8], 1;\n@%p1 mbarrier.arrive.shared.b64 _, [%r1];\n"
                      "bar.sync 0;\nsetp.ge.u32 %p2, %r0, 32;\n@%p2 bra produce;\nand.b32 %r4, %r0, 1;\n"
                      "shl.b32 %r4, %r4, 3;\nadd.u32 %r1, %r1, %r4;\n" +
                      wait_for_phase_0 +
                      "st.global.u32 [%rd2], 5;\nbra done;\nproduce:\nsetp.eq.u32 %p4, %r0, 32;\n"
                      "@%p4 mbarrier.arrive.shared.b64 _, [%r1+8];\ndone:",
                  64, 32),
      Each(5));
}

TEST(Mbarrier, AWaitThatLastsTooLongEndsInVain) {
  // The loop gives up after 20 attempts and says how many there were.
  EXPECT_THAT(run_barrier(first_thread_inits +
                              "1;\nbar.sync 0;\nmov.u32 %r4, 0;\nwaiting:\nadd.u32 %r4, %r4, 1;\n"
                              "mbarrier.try_wait.parity.shared.b64 %p3, [%r1], 0;\n@%p3 bra done;\n"
                              "setp.lt.u32 %p4, %r4, 20;\n@%p4 bra waiting;\ndone:\nst.global.u32 [%rd2], %r4;",
                          64, 64),
              Each(20));
}

TEST(Mbarrier, WaitsThatEndInVainAreNoDeadlockWhileSomethingElseIsDone) {
  // 3000 phases: each is waited for in vain, and then ended.
  EXPECT_THAT(run_barrier("mbarrier.init.shared.b64 [%r1], 1;\nmov.u32 %r4, 0;\nmov.u32 %r5, 0;\nnext:\n"
                          "and.b32 %r6, %r4, 1;\nmbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r6;\n"
                          "@!%p1 add.u32 %r5, %r5, 1;\nmbarrier.arrive.shared.b64 _, [%r1];\nadd.u32 %r4, %r4, 1;\n"
                          "setp.lt.u32 %p2, %r4, 3000;\n@%p2 bra next;\nst.global.u32 [%rd0], %r5;",
                          1, 1),
              ElementsAre(3000));
}

TEST(Mbarrier, WaitingForEverIsADeadlockThatNamesIt) {
  const Fault fault = barrier_fault(first_thread_inits +
                                        "3;\nbar.sync 0;\nsetp.eq.u32 %p2, %r0, 5;\n"
                                        "@%p2 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 128;\n" +
                                        wait_for_phase_0,
                                    64);
  EXPECT_EQ(fault.kind, FaultKind::deadlock);
  EXPECT_THAT(fault.report,
              AllOf(HasSubstr("no warp can go on (deadlock)"),
                    HasSubstr("warp 1, lanes 0xffffffff, from thread (32, 0, 0): waits at the mbarrier at "
                              "offset 0 of shared memory, whose phase 0 lacks 2 of 3 arrivals and 128 bytes"),
                    HasSubstr("mbarrier.try_wait.parity.shared.b64")));
}

// Misuse.

TEST(Mbarrier, ThatNothingHasInitialisedIsAFault) {
  for (const CheckLevel level : {CheckLevel::off, CheckLevel::bounds}) {
    for (const std::string use :
         {"mbarrier.arrive.shared.b64 _, [%r1+8]", "mbarrier.expect_tx.shared.b64 [%r1+8], 4",
          "mbarrier.try_wait.parity.shared.b64 %p1, [%r1+8], 0", "mbarrier.inval.shared.b64 [%r1+8]"}) {
      const Fault fault = barrier_fault("mbarrier.init.shared.b64 [%r1], 1;\n" + use + ";", 1, level);
      EXPECT_EQ(fault.kind, FaultKind::illegal_instruction) << use;
      EXPECT_THAT(fault.report, AllOf(HasSubstr("there is no mbarrier at offset 8 of shared memory"), HasSubstr(use)));
    }
  }
  EXPECT_EQ(barrier_fault("mbarrier.arrive.shared.b64 _, [%r1];", 1).kind, FaultKind::uninitialised_read);
  EXPECT_THAT(barrier_fault("mbarrier.init.shared.b64 [%r1], 1;\nmbarrier.inval.shared.b64 [%r1];\n"
                            "mbarrier.arrive.shared.b64 _, [%r1];",
                            1)
                  .report,
              HasSubstr("there is no mbarrier at offset 0"));
}

TEST(Mbarrier, ThatOtherThreadsUseWithoutABarrierBehindItsInitialisationIsARace) {
  const Fault fault = barrier_fault(first_thread_inits + "64;\nmbarrier.arrive.shared.b64 _, [%r1];", 64);
  EXPECT_EQ(fault.kind, FaultKind::race);
  EXPECT_THAT(fault.report, AllOf(HasSubstr("mbarrier.arrive"), HasSubstr("the other: "), HasSubstr("mbarrier.init")));
}

TEST(Mbarrier, IsHeldAgainstItsLimits) {
  EXPECT_EQ(barrier_fault("mbarrier.init.shared.b64 [%r1+4], 1;", 1, CheckLevel::bounds).kind,
            FaultKind::misaligned_address);
  EXPECT_EQ(barrier_fault("mbarrier.init.shared.b64 [%r1+4096], 1;", 1, CheckLevel::bounds).kind,
            FaultKind::illegal_address);
  EXPECT_THAT(barrier_fault("mbarrier.init.shared.b64 [%r1], 0;", 1).report, HasSubstr("expected 1 to 1048575"));
  EXPECT_THAT(barrier_fault("mbarrier.init.shared.b64 [%r1], 0x100000;", 1).report, HasSubstr("expected 1 to 1048575"));
  EXPECT_THAT(barrier_fault("mbarrier.init.shared.b64 [%r1], 2;\nmbarrier.arrive.shared.b64 _, [%r1], 3;", 1).report,
              HasSubstr("arrives 3 times at the mbarrier at offset 0 of shared memory, whose phase 0 lacks 2"));
  EXPECT_THAT(barrier_fault("mbarrier.init.shared.b64 [%r1], 2;\n"
                            "mbarrier.arrive.noComplete.release.cta.shared.b64 _, [%r1], 2;",
                            1)
                  .report,
              HasSubstr("may not end the phase"));
}

}  // namespace
}  // namespace kiln::emulator::test::core_mbarrier_test
