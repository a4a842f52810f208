// Correct code that a naive checker would report: full checks must say nothing.
#include <algorithm>

#include "core_strict_fixture.h"

namespace kiln::emulator::test::core_strict_silent_test {
namespace {

using testing::Each;

const std::string store_own = "st.shared.u32 [%r2], %r0;\n";
const std::string load_partner = "xor.b32 %r8, %r0, 32;\nmad.lo.u32 %r8, %r8, 4, %r1;\nld.shared.u32 %r9, [%r8];\n";
const std::string mirrored = "sub.u32 %r8, 31, %r3;\nmad.lo.u32 %r8, %r8, 4, %r1;\n";
const std::string store_result = "st.global.u32 [%rd0], %r9;\n";

TEST(StrictSilence, ATileThatIsReusedBehindTwoBarriers) {
  const auto out = expect_silence(
      {"mov.u32 %r7, 0;\nloop:\nadd.u32 %r6, %r0, %r7;\nst.shared.u32 [%r2], %r6;\nbar.sync 0;\n" + load_partner +
       "bar.sync 0;\nadd.u32 %r7, %r7, 1;\nsetp.lt.u32 %p1, %r7, 3;\n@%p1 bra loop;\n" + store_result});
  for (uint32_t k = 0; k < 64; ++k) EXPECT_EQ(out[k], (k ^ 32) + 2);
}

TEST(StrictSilence, DoubleBufferingWithOneBarrierAStep) {
  const auto out = expect_silence(
      {"mov.u32 %r7, 0;\nst.shared.u32 [%r2], %r0;\nbar.sync 0;\nloop:\nand.b32 %r6, %r7, 1;\nadd.u32 %r7, %r7, 1;\n"
       "xor.b32 %r5, %r6, 1;\nmad.lo.u32 %r5, %r5, 512, %r2;\nadd.u32 %r4, %r0, %r7;\nst.shared.u32 [%r5], %r4;\n"
       "xor.b32 %r8, %r0, 32;\nmad.lo.u32 %r8, %r8, 4, %r1;\nmad.lo.u32 %r8, %r6, 512, %r8;\nld.shared.u32 %r9, "
       "[%r8];\n"
       "bar.sync 0;\nsetp.lt.u32 %p1, %r7, 5;\n@%p1 bra loop;\n" +
       store_result});
  for (uint32_t k = 0; k < 64; ++k) EXPECT_EQ(out[k], (k ^ 32) + 4);
}

TEST(StrictSilence, AWarpReductionWithASynchronisationBetweenReadsAndWrites) {
  std::string body = store_own;
  for (const uint32_t step : {16, 8, 4, 2, 1}) {
    const std::string s = std::to_string(step), bytes = std::to_string(4 * step);
    body += "bar.warp.sync -1;\nsetp.lt.u32 %p1, %r3, " + s + ";\n@%p1 ld.shared.u32 %r5, [%r2+" + bytes +
            "];\n@%p1 ld.shared.u32 %r6, [%r2];\nadd.u32 %r6, %r6, %r5;\nbar.warp.sync -1;\n"
            "@%p1 st.shared.u32 [%r2], %r6;\n";
  }
  body += "bar.warp.sync -1;\nand.b32 %r8, %r0, -32;\nmad.lo.u32 %r8, %r8, 4, %r1;\nld.shared.u32 %r9, [%r8];\n";
  const auto out = expect_silence({body + store_result});
  for (uint32_t k = 0; k < 64; ++k) EXPECT_EQ(out[k], k < 32 ? 496u : 1520u);
}

TEST(StrictSilence, AReductionTreeInWhichFewerAndFewerThreadsTakePart) {
  std::string body = store_own + "bar.sync 0;\n";
  for (const uint32_t step : {32, 16, 8, 4, 2, 1}) {
    body += "setp.lt.u32 %p1, %r0, " + std::to_string(step) + ";\n@%p1 ld.shared.u32 %r5, [%r2+" +
            std::to_string(4 * step) +
            "];\n@%p1 ld.shared.u32 %r6, [%r2];\nadd.u32 %r6, %r6, %r5;\n@%p1 st.shared.u32 [%r2], %r6;\nbar.sync 0;\n";
  }
  EXPECT_THAT(expect_silence({body + "ld.shared.u32 %r9, [%r1];\n" + store_result}), Each(2016u));
}

TEST(StrictSilence, HalvesOfAWarpThatSynchroniseWithThemselves) {
  const auto out = expect_silence(
      {store_own +
           "mov.u32 %r7, 0xFFFF;\nsetp.ge.u32 %p1, %r3, 16;\n@%p1 mov.u32 %r7, 0xFFFF0000;\n@%p1 bra upper;\n"
           "bar.warp.sync %r7;\nbra both;\nupper:\nbar.warp.sync %r7;\nboth:\nxor.b32 %r8, %r0, 15;\n"
           "mad.lo.u32 %r8, %r8, 4, %r1;\nld.shared.u32 %r9, [%r8];\n" +
           store_result,
       32});
  for (uint32_t k = 0; k < 32; ++k) EXPECT_EQ(out[k], k ^ 15);
}

TEST(StrictSilence, AFlagThatManyThreadsSetToTheSameValue) {
  EXPECT_THAT(
      expect_silence({"setp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.u32 [%r1], 0;\nbar.sync 0;\nand.b32 %r5, %r0, 3;\n"
                      "setp.eq.u32 %p2, %r5, 1;\n@%p2 st.shared.u32 [%r1], 1;\nbar.sync 0;\n"
                      "ld.shared.u32 %r9, [%r1];\n" +
                      store_result}),
      Each(1u));
}

TEST(StrictSilence, AtomicsAmongThemselves) {
  EXPECT_THAT(expect_silence({"setp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.u32 [%r1], 0;\nbar.sync 0;\n"
                              "atom.shared.add.u32 %r5, [%r1], 1;\nred.shared.max.u32 [%r1], 5;\nbar.sync 0;\n"
                              "ld.shared.u32 %r9, [%r1];\n" +
                              store_result}),
              Each(testing::Ge(64u)));
}

TEST(StrictSilence, WarpsThatHandBuffersOverByNamedBarriers) {
  // Warp 0 produces into two buffers in turn; warp 1 consumes: "full" barriers 1 and 2, "empty" barriers 3 and 4.
  const std::string body =
      "mov.u32 %r7, 0;\nmov.u32 %r9, 0;\nsetp.ge.u32 %p1, %r0, 32;\nmad.lo.u32 %r6, %r3, 4, %r1;\n@%p1 bra consume;\n"
      "produce:\nand.b32 %r5, %r7, 1;\nadd.u32 %r10, %r5, 1;\nadd.u32 %r11, %r5, 3;\nmad.lo.u32 %r12, %r5, 512, %r6;\n"
      "setp.lt.u32 %p2, %r7, 2;\n@%p2 bra fill;\nbar.sync %r11, 64;\nfill:\nst.shared.u32 [%r12], %r7;\n"
      "bar.arrive %r10, 64;\nadd.u32 %r7, %r7, 1;\nsetp.lt.u32 %p3, %r7, 6;\n@%p3 bra produce;\nbra done;\nconsume:\n"
      "and.b32 %r5, %r7, 1;\nadd.u32 %r10, %r5, 1;\nadd.u32 %r11, %r5, 3;\nmad.lo.u32 %r12, %r5, 512, %r1;\n"
      "bar.sync %r10, 64;\nld.shared.u32 %r13, [%r12];\nadd.u32 %r9, %r9, %r13;\nsetp.ge.u32 %p2, %r7, 4;\n@%p2 bra "
      "next;\n"
      "bar.arrive %r11, 64;\nnext:\nadd.u32 %r7, %r7, 1;\nsetp.lt.u32 %p3, %r7, 6;\n@%p3 bra consume;\ndone:\n";
  const auto out = expect_silence({body + store_result});
  for (uint32_t k = 32; k < 64; ++k) EXPECT_EQ(out[k], 15u);
}

const std::string flag_kernel_start =
    "setp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.u32 [%r1+4], 0;\nbar.sync 0;\nsetp.ge.u32 %p2, %r0, 32;\n@%p2 bra "
    "consume;\n"
    "mov.u32 %r9, 42;\n@!%p1 bra done;\nst.shared.u32 [%r1], 42;\n";

TEST(StrictSilence, AFlagBehindFences) {
  EXPECT_THAT(expect_silence({flag_kernel_start +
                              "membar.cta;\nst.volatile.shared.u32 [%r1+4], 1;\nbra done;\nconsume:\n"
                              "ld.volatile.shared.u32 %r7, [%r1+4];\nsetp.eq.u32 %p3, %r7, 0;\n"
                              "@%p3 bra consume;\nmembar.cta;\nld.shared.u32 %r9, [%r1];\ndone:\n" +
                              store_result}),
              Each(42u));
}

TEST(StrictSilence, AFlagThatIsReleasedAndAcquired) {
  EXPECT_THAT(expect_silence({flag_kernel_start +
                              "st.release.cta.shared.u32 [%r1+4], 1;\nbra done;\nconsume:\n"
                              "ld.acquire.cta.shared.u32 %r7, [%r1+4];\nsetp.eq.u32 %p3, %r7, 0;\n"
                              "@%p3 bra consume;\nld.shared.u32 %r9, [%r1];\ndone:\n" +
                              store_result}),
              Each(42u));
}

TEST(StrictSilence, ATicketThatAnAtomicHandsOut) {
  // The last thread to take a ticket sums what the others left, as the last block of a grid does.
  const auto out = expect_silence(
      {"setp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.u32 [%r1+1024], 0;\nbar.sync 0;\nmov.u32 %r9, 0;\nst.shared.u32 "
       "[%r2], %r0;\n"
       "fence.acq_rel.cta;\natom.shared.add.u32 %r5, [%r1+1024], 1;\nsetp.ne.u32 %p2, %r5, 63;\n@%p2 bra done;\n"
       "fence.acq_rel.cta;\nmov.u32 %r6, 0;\nsum:\nmad.lo.u32 %r7, %r6, 4, %r1;\nld.shared.u32 %r8, [%r7];\n"
       "add.u32 %r9, %r9, %r8;\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p3, %r6, 64;\n@%p3 bra sum;\ndone:\n" +
       store_result});
  EXPECT_EQ(*std::max_element(out.begin(), out.end()), 2016u);
}

TEST(StrictSilence, NeighboursThatWriteBytesAndHalvesOfOneWord) {
  EXPECT_THAT(expect_silence({"add.u32 %r8, %r1, %r0;\nst.shared.u8 [%r8], 1;\nmad.lo.u32 %r7, %r0, 2, %r1;\n"
                              "mov.u16 %h1, 2;\nst.shared.u16 [%r7+512], %h1;\nbar.sync 0;\nld.shared.u32 %r5, [%r1];\n"
                              "ld.shared.u32 %r6, [%r1+512];\nadd.u32 %r9, %r5, %r6;\n" +
                              store_result}),
              Each(0x01010101u + 0x00020002u));
}

TEST(StrictSilence, SharedMemoryThatChangesItsTypeBetweenPhases) {
  EXPECT_THAT(
      expect_silence({"add.u32 %r8, %r1, %r0;\nst.shared.u8 [%r8], 7;\nbar.sync 0;\n"
                      "ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r1+16];\nbar.sync 0;\n"
                      "mad.lo.u32 %r7, %r0, 16, %r1;\nst.shared.v4.u32 [%r7], {%r10, %r11, %r12, %r13};\nbar.sync 0;\n"
                      "ld.shared.u32 %r9, [%r1+60];\n" +
                      store_result}),
      Each(0x07070707u));
}

TEST(StrictSilence, ThreadsThatReadTheirOwnStores) {
  const auto out = expect_silence({store_own +
                                   "ld.shared.u32 %r9, [%r2];\nadd.u32 %r9, %r9, 1;\nst.shared.u32 [%r2], %r9;\n"
                                   "ld.shared.u32 %r9, [%r2];\n" +
                                   store_result});
  for (uint32_t k = 0; k < 64; ++k) EXPECT_EQ(out[k], k + 1);
}

TEST(StrictSilence, ThreadsThatLeaveBeforeTheBarrier) {
  const auto out = expect_silence({"setp.ge.u32 %p1, %r0, 40;\n@%p1 ret;\n" + store_own +
                                   "bar.sync 0;\nxor.b32 %r8, %r0, 7;\nmad.lo.u32 %r8, %r8, 4, %r1;\n"
                                   "ld.shared.u32 %r9, [%r8];\n" +
                                   store_result});
  for (uint32_t k = 0; k < 40; ++k) EXPECT_EQ(out[k], k ^ 7);
}

TEST(StrictSilence, OldWarpSynchronousCodeThatIsVolatile) {
  const auto out = expect_silence(
      {"st.volatile.shared.u32 [%r2], %r0;\n" + mirrored + "ld.volatile.shared.u32 %r9, [%r8];\n" + store_result, 32});
  for (uint32_t k = 0; k < 32; ++k) EXPECT_EQ(out[k], 31 - k);
}

TEST(StrictSilence, CopiesThatAreWaitedForBehindABarrier) {
  EXPECT_THAT(expect_silence({"cp.async.ca.shared.global [%r2], [%rd1], 4;\ncp.async.commit_group;\n"
                              "cp.async.ca.shared.global [%r2+512], [%rd1], 4;\ncp.async.commit_group;\n"
                              "cp.async.wait_group 1;\nbar.sync 0;\n" +
                              load_partner + "cp.async.wait_group 0;\nbar.sync 0;\nld.shared.u32 %r7, [%r8+512];\n" +
                              "add.u32 %r9, %r9, %r7;\n" + store_result}),
              Each(0x02020202u));
}

TEST(StrictSilence, BarriersThatVote) {
  EXPECT_THAT(expect_silence({store_own +
                              "setp.lt.u32 %p1, %r0, 10;\nbar.red.popc.u32 %r9, 0, %p1;\n"
                              "xor.b32 %r8, %r0, 32;\nmad.lo.u32 %r8, %r8, 4, %r1;\nld.shared.u32 %r7, [%r8];\n" +
                              store_result}),
              Each(10u));
}

TEST(StrictSilence, BlocksThatFollowOneAnother) {
  const auto out = expect_silence({store_own + "bar.sync 0;\n" + load_partner + store_result, 64, 5});
  for (uint32_t k = 0; k < 64; ++k) EXPECT_EQ(out[k], k ^ 32);
}

}  // namespace
}  // namespace kiln::emulator::test::core_strict_silent_test
