// Planted races in global memory, within a block and between blocks, and correct code of which nothing may be said.
#include <algorithm>

#include "checks/global_shadow.h"
#include "core_strict_fixture.h"

namespace kiln::emulator::test::core_strict_global_test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

const std::string first_only = "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra done;\n";
const std::string first_block_only = "setp.ne.u32 %p2, %r20, 0;\n@%p2 bra other;\n";
const std::string load_partner =
    "xor.b32 %r8, %r0, 32;\nmul.wide.u32 %rd12, %r8, 4;\nadd.u64 %rd12, %rd10, %rd12;\nld.global.u32 %r9, [%rd12];\n";
const std::string store_result = "st.global.u32 [%rd0], %r9;\n";

/// `thread`: "block (1, 0, 0), thread (0, 0, 0)"; `does`: "writes 4"; `offset`: in the board; `other`: who has done
/// what.
void expect_race(const StrictKernel& kernel, const std::string& thread, const std::string& does, uint32_t offset,
                 const std::string& other, const std::string& instruction) {
  const Fault fault = run_strict(kernel);
  EXPECT_EQ(fault.kind, FaultKind::race);
  EXPECT_THAT(fault.report, AllOf(HasSubstr("kernel k, " + thread + " (warp "), HasSubstr(": " + does + " bytes at 0x"),
                                  HasSubstr(", " + std::to_string(offset) + " bytes into the board, which " + other +
                                            " in this launch, and nothing orders the two (race)\n  PTX line "),
                                  HasSubstr(": " + instruction)));
}

TEST(GlobalRaces, BlocksThatStoreToOneWord) {
  expect_race({first_only + "st.global.u32 [%rd10+8], %r20;\ndone:", 64, 2}, "block (1, 0, 0), thread (0, 0, 0)",
              "writes 4", 8, "thread (0, 0, 0) of block (0, 0, 0) has written", "st.global.u32 [%rd10+8], %r20");
}

TEST(GlobalRaces, ABlockThatReadsWhatAnotherHasWritten) {
  expect_race({first_block_only + "st.global.u32 [%rd11], %r0;\nbra done;\nother:\nld.global.u32 %r9, [%rd11+12];\n"
                                  "done:",
               64, 2},
              "block (1, 0, 0), thread (0, 0, 0)", "reads 4", 12, "thread (3, 0, 0) of block (0, 0, 0) has written",
              "ld.global.u32 %r9, [%rd11+12]");
}

TEST(GlobalRaces, ABlockThatOverwritesWhatAnotherHasRead) {
  expect_race({first_block_only + "ld.global.nc.u32 %r9, [%rd11];\nbra done;\nother:\nst.global.u32 [%rd11], %r0;\n"
                                  "done:",
               64, 2},
              "block (1, 0, 0), thread (0, 0, 0)", "writes 4", 0, "thread (0, 0, 0) of block (0, 0, 0) has read",
              "st.global.u32 [%rd11], %r0");
}

TEST(GlobalRaces, ABlockThatOverwritesWhatItIsNotAloneToRead) {
  // Two blocks that run at the same time: both read a word, then the first to read it stores to it.
  const SharedShadow time(0, 4, 32, false);
  GlobalShadow first(1, 4, time, nullptr), second(1, 4, time, nullptr);
  first.begin_block(0);
  second.begin_block(1);
  PieceMarks word;
  const GlobalShadow::Access access{&word};
  EXPECT_FALSE(first.read(access));
  EXPECT_FALSE(second.read(access));
  const auto other = first.write(access, [] { return true; });
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->is_known);
  EXPECT_FALSE(other->has_written);
}

TEST(GlobalRaces, AWordOfARowThatAllBlocksHaveReadAgainAndAgain) {
  const std::string read =
      "xor.b32 %r8, %r0, 32;\nmul.wide.u32 %rd12, %r8, 4;\nadd.u64 %rd12, %rd10, %rd12;\n"
      "ld.global.u32 %r9, [%rd12];\nld.global.u32 %r9, [%rd11];\n";
  const std::string fifth = "setp.ne.u32 %p2, %r20, 2;\n@%p2 bra done;\nsetp.ne.u32 %p1, %r0, 5;\n@%p1 bra done;\n";
  expect_race({read + read + read + fifth + "st.global.u32 [%rd11], %r0;\ndone:", 64, 3},
              "block (2, 0, 0), thread (5, 0, 0)", "writes 4", 20, "thread (5, 0, 0) of block (0, 0, 0) has read",
              "st.global.u32 [%rd11], %r0");
}

TEST(GlobalRaces, ARowWithOneNewWordAmongManyThatWereReadBefore) {
  const std::string store =
      "setp.ne.u32 %p2, %r20, 1;\n@%p2 bra read;\nsetp.ne.u32 %p1, %r0, 5;\n@%p1 bra done;\n"
      "st.volatile.global.u32 [%rd11+128], %r0;\nbra done;\n";
  expect_race({store + "read:\nld.global.u32 %r9, [%rd11];\nsetp.eq.u32 %p3, %r20, 0;\n@%p3 bra done;\n"
                       "ld.global.u32 %r9, [%rd11+128];\ndone:",
               32, 3},
              "block (2, 0, 0), thread (5, 0, 0)", "reads 4", 148, "thread (5, 0, 0) of block (1, 0, 0) has written",
              "ld.global.u32 %r9, [%rd11+128]");
}

TEST(GlobalRaces, AMissingBarrierBetweenWarps) {
  expect_race({"st.global.u32 [%rd11], %r0;\nsetp.lt.u32 %p9, %r0, 32;\n@%p9 bra done;\n" + load_partner + "done:"},
              "block (0, 0, 0), thread (32, 0, 0)", "reads 4", 0, "thread (0, 0, 0) (warp 0, lane 0) has written",
              "ld.global.u32 %r9, [%rd12]");
}

TEST(GlobalRaces, LanesThatOverwriteWhatTheirNeighboursRead) {
  expect_race({"ld.global.u32 %r9, [%rd11+4];\nst.global.u32 [%rd11], %r9;", 32}, "block (0, 0, 0), thread (1, 0, 0)",
              "writes 4", 4, "thread (0, 0, 0) (warp 0, lane 0) has read", "st.global.u32 [%rd11], %r9");
}

TEST(GlobalRaces, AThreadThatOverwritesWhatItIsNotAloneToRead) {
  expect_race({"ld.global.u32 %r8, [%rd11];\nld.global.u32 %r9, [%rd11+4];\nst.global.u32 [%rd11], %r9;", 32},
              "block (0, 0, 0), thread (1, 0, 0)", "writes 4", 4, "another thread of the block has read",
              "st.global.u32 [%rd11], %r9");
}

TEST(GlobalRaces, AnAtomicOnWhatAnotherBlockHasStored) {
  expect_race(
      {first_only + first_block_only + "st.global.u32 [%rd10], 0;\nother:\natom.global.add.u32 %r9, [%rd10], 1;\ndone:",
       32, 2},
      "block (1, 0, 0), thread (0, 0, 0)", "updates 4", 0, "thread (0, 0, 0) of block (0, 0, 0) has written",
      "atom.global.add.u32 %r9, [%rd10], 1");
}

TEST(GlobalRaces, APlainReadOfWhatOtherBlocksCount) {
  expect_race({first_only + "red.global.add.u32 [%rd10], 1;\nld.global.u32 %r9, [%rd10];\ndone:", 32, 2},
              "block (1, 0, 0), thread (0, 0, 0)", "updates 4", 0, "thread (0, 0, 0) of block (0, 0, 0) has read",
              "red.global.add.u32 [%rd10], 1");
}

TEST(GlobalRaces, ACopyOfWhatAnotherBlockHasWritten) {
  expect_race({first_block_only + "st.global.u32 [%rd11], %r0;\nbra done;\nother:\n"
                                  "cp.async.ca.shared.global [%r2], [%rd11], 4;\ncp.async.wait_all;\ndone:",
               64, 2},
              "block (1, 0, 0), thread (0, 0, 0)", "reads 4", 0, "thread (0, 0, 0) of block (0, 0, 0) has written",
              "cp.async.ca.shared.global [%r2], [%rd11], 4");
}

TEST(GlobalRaces, LanesOfOneInstructionThatWriteDifferentValues) {
  const Fault fault = run_strict({"st.global.u32 [%rd10+8], %r0;", 32});
  EXPECT_EQ(fault.kind, FaultKind::race);
  EXPECT_THAT(fault.report, AllOf(HasSubstr("thread (0, 0, 0) (warp 0, lane 0): writes 4 bytes at 0x"),
                                  HasSubstr(", 8 bytes into the board, where thread (1, 0, 0) (warp 0, lane 1) writes "
                                            "something else at the same time (race)")));
}

/// Each block leaves a number; the last to take a ticket sums them, with `fence` between what must be in order.
StrictKernel last_block(const std::string& fence) {
  return {first_only + "mul.wide.u32 %rd12, %r20, 4;\nadd.u64 %rd12, %rd10, %rd12;\nst.global.u32 [%rd12+4], 5;\n" +
              fence + "atom.global.add.u32 %r5, [%rd10], 1;\nsetp.ne.u32 %p3, %r5, 2;\n@%p3 bra done;\n" + fence +
              "ld.global.u32 %r9, [%rd10+4];\nld.global.u32 %r8, [%rd10+8];\nadd.u32 %r9, %r9, %r8;\n" + store_result +
              "done:",
          32, 3};
}

TEST(GlobalRaces, ATicketWithoutAFence) {
  expect_race(last_block(""), "block (2, 0, 0), thread (0, 0, 0)", "reads 4", 4,
              "thread (0, 0, 0) of block (0, 0, 0) has written", "ld.global.u32 %r9, [%rd10+4]");
}

TEST(GlobalRaces, ATicketWhoseFencesReachTheirBlockOnly) {
  expect_race(last_block("membar.cta;\n"), "block (2, 0, 0), thread (0, 0, 0)", "reads 4", 4,
              "thread (0, 0, 0) of block (0, 0, 0) has written", "ld.global.u32 %r9, [%rd10+4]");
}

TEST(GlobalRaces, ATicketBehindFencesOfAnotherKind) {
  // They put one thread's accesses through two proxies in order, and nothing between threads.
  for (const char* fence : {"fence.proxy.alias;\n", "fence.proxy.async;\n", "fence.proxy.async.global;\n",
                            "fence.mbarrier_init.release.cluster;\n", "membar.proxy.alias;\n"}) {
    expect_race(last_block(fence), "block (2, 0, 0), thread (0, 0, 0)", "reads 4", 4,
                "thread (0, 0, 0) of block (0, 0, 0) has written", "ld.global.u32 %r9, [%rd10+4]");
  }
}

TEST(GlobalRaces, ATicketBehindHalvesOfAFence) {
  for (const char* fence : {"fence.acquire.gpu;\n", "fence.release.gpu;\n", "fence.acq_rel.cluster;\n"}) {
    expect_race(last_block(fence), "block (2, 0, 0), thread (0, 0, 0)", "reads 4", 4,
                "thread (0, 0, 0) of block (0, 0, 0) has written", "ld.global.u32 %r9, [%rd10+4]");
  }
}

/// A thread of block 0 sees a flag and does not fence; in block 1 the same one fences and reads what the flag guards.
TEST(GlobalRaces, AFenceInALaterBlockThanTheReadOfTheFlag) {
  expect_race({first_only + "setp.eq.u32 %p2, %r20, 1;\n@%p2 bra second;\nsetp.eq.u32 %p3, %r20, 2;\n@%p3 bra third;\n"
                            "st.global.u32 [%rd10+8], 5;\nmembar.gl;\nst.volatile.global.u32 [%rd10+4], 1;\nbra done;\n"
                            "second:\nld.volatile.global.u32 %r9, [%rd10+4];\nbra done;\n"
                            "third:\nmembar.gl;\nld.global.u32 %r9, [%rd10+8];\ndone:",
               32, 3},
              "block (2, 0, 0), thread (0, 0, 0)", "reads 4", 8, "thread (0, 0, 0) of block (0, 0, 0) has written",
              "ld.global.u32 %r9, [%rd10+8]");
}

/// Each block adds to what the one before it has left, when its turn has come: word 0 is the turn, word 1 the sum.
/// `acquire` stands behind the wait, `release` before the turn is passed on; the sum is thread `adder`'s business.
StrictKernel ordered_sum(const std::string& acquire, const std::string& release, uint32_t adder = 0) {
  return {
      "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra come;\nwait:\nld.volatile.global.u32 %r5, [%rd10];\n"
      "setp.ne.u32 %p3, %r5, %r20;\n@%p3 bra wait;\n" +
          acquire + "come:\nsetp.ne.u32 %p4, %r0, " + std::to_string(adder) +
          ";\n@%p4 bra pass;\nld.global.u32 %r9, [%rd10+4];\nadd.u32 %r9, %r9, 5;\n"
          "st.global.u32 [%rd10+4], %r9;\nst.global.u32 [%rd0], %r9;\npass:\n" +
          release + "@%p1 bra done;\nadd.u32 %r5, %r20, 1;\nst.volatile.global.u32 [%rd10], %r5;\ndone:",
      64, 3};
}

TEST(GlobalRaces, ATurnThatIsPassedOnWithoutAFence) {
  expect_race(ordered_sum("membar.gl;\n", ""), "block (1, 0, 0), thread (0, 0, 0)", "reads 4", 4,
              "thread (0, 0, 0) of block (0, 0, 0) has written", "ld.global.u32 %r9, [%rd10+4]");
}

TEST(GlobalRaces, ATurnThatIsTakenWithoutAFence) {
  expect_race(ordered_sum("", "membar.gl;\n"), "block (1, 0, 0), thread (0, 0, 0)", "reads 4", 4,
              "thread (0, 0, 0) of block (0, 0, 0) has written", "ld.global.u32 %r9, [%rd10+4]");
}

TEST(GlobalRaces, ATurnThatOneThreadTakesAndAnotherMakesUseOf) {
  expect_race(ordered_sum("membar.gl;\n", "bar.sync 0;\nmembar.gl;\n", 40), "block (1, 0, 0), thread (40, 0, 0)",
              "reads 4", 4, "thread (40, 0, 0) of block (0, 0, 0) has written", "ld.global.u32 %r9, [%rd10+4]");
}

TEST(GlobalRaces, WorkThatGoesOnBehindTheRelease) {
  StrictKernel kernel = ordered_sum("membar.gl;\n", "membar.gl;\n");
  kernel.body += "\n@!%p1 st.global.u32 [%rd10+4], 7;";
  expect_race(kernel, "block (1, 0, 0), thread (0, 0, 0)", "reads 4", 4,
              "thread (0, 0, 0) of block (0, 0, 0) has written", "ld.global.u32 %r9, [%rd10+4]");
}

TEST(GlobalSilence, ATicketBehindFences) {
  EXPECT_EQ(expect_silence(last_block("membar.gl;\n"))[0], 10u);
  EXPECT_EQ(expect_silence(last_block("fence.acq_rel.gpu;\n"))[0], 10u);
  EXPECT_EQ(expect_silence(last_block("fence.sc.sys;\n"))[0], 10u);
  EXPECT_EQ(expect_silence(last_block("fence.release.gpu;\nfence.acquire.gpu;\n"))[0], 10u);
}

TEST(GlobalSilence, ATicketThatIsItsOwnFence) {
  StrictKernel kernel = last_block("");
  const std::string plain = "atom.global.add";
  kernel.body.replace(kernel.body.find(plain), plain.size(), "atom.acq_rel.gpu.global.add");
  EXPECT_EQ(expect_silence(kernel)[0], 10u);
}

TEST(GlobalSilence, BlocksThatTakeTurns) {
  // The third block comes after the first only because both are in order with the second.
  for (const uint32_t host_threads : {1u, 2u}) {
    StrictKernel kernel = ordered_sum("membar.gl;\n", "membar.gl;\n");
    kernel.host_threads = host_threads;
    expect_silence(kernel);
    // Barriers carry on what one thread has taken, and to it what another leaves.
    kernel = ordered_sum("membar.gl;\ncome:\nbar.sync 0;\nbra go;\n", "bar.sync 0;\nmembar.gl;\n", 40);
    kernel.body.replace(kernel.body.rfind("come:\nsetp"), 5, "go:");
    kernel.host_threads = host_threads;
    expect_silence(kernel);
  }
}

TEST(GlobalSilence, BlocksThatReadTheSameAndWriteTheirOwn) {
  expect_silence(
      {"ld.global.u32 %r9, [%rd10+1020];\nmad.lo.u32 %r8, %r20, 64, %r0;\nmul.wide.u32 %rd12, %r8, 4;\n"
       "add.u64 %rd12, %rd10, %rd12;\nld.global.u32 %r7, [%rd12];\nadd.u32 %r9, %r9, %r7;\n"
       "st.global.u32 [%rd12], %r9;\nld.global.u32 %r9, [%rd12];",
       64, 3, 2});
}

TEST(GlobalSilence, BlocksThatWriteTheHalvesOfAWord) {
  expect_silence({first_only + "mul.wide.u32 %rd12, %r20, 2;\nadd.u64 %rd12, %rd10, %rd12;\nmov.u16 %h1, 3;\n"
                               "st.global.u16 [%rd12], %h1;\ndone:",
                  32, 4, 2});
}

TEST(GlobalSilence, AtomicsOfManyBlocks) {
  expect_silence(
      {"red.global.add.u32 [%rd10], 1;\natom.global.max.u32 %r9, [%rd10], %r0;\n"
       "ld.volatile.global.u32 %r9, [%rd10];",
       64, 4, 2});
}

TEST(GlobalSilence, PartnersBehindABarrier) {
  const auto out = expect_silence({"st.global.u32 [%rd11], %r0;\nbar.sync 0;\n" + load_partner +
                                   "bar.sync 0;\nst.global.u32 [%rd11], %r9;\n" + store_result});
  for (uint32_t k = 0; k < 64; ++k) EXPECT_EQ(out[k], k ^ 32);
}

TEST(GlobalSilence, NeighboursThatReadBeforeABarrierAndWriteBehindIt) {
  expect_silence(
      {"ld.global.u32 %r8, [%rd11];\nld.global.u32 %r9, [%rd11+4];\nbar.sync 0;\n"
       "st.global.u32 [%rd11], %r9;"});
}

TEST(GlobalSilence, LanesBehindASynchronisationOfTheirWarp) {
  expect_silence(
      {"xor.b32 %r8, %r0, 1;\nmul.wide.u32 %rd12, %r8, 4;\nadd.u64 %rd12, %rd10, %rd12;\n"
       "st.global.u32 [%rd11], %r0;\nbar.warp.sync -1;\nld.global.u32 %r9, [%rd12];\nbar.warp.sync -1;\n"
       "st.global.u32 [%rd11], %r9;"});
}

TEST(GlobalSilence, AFlagThatThreadsOfABlockSetToTheSameValue) {
  expect_silence({"and.b32 %r5, %r0, 3;\nsetp.eq.u32 %p2, %r5, 1;\n@%p2 st.global.u32 [%rd10], 1;"});
}

TEST(GlobalSilence, ALaunchThatFollowsAnother) {
  const std::string body =
      "ld.param.u64 %rd0, [p0];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nxor.b32 %r0, %r0, "
      "%r1;\nmul.wide.u32 %rd1, %r0, 4;\nadd.u64 %rd0, %rd0, %rd1;\nst.global.u32 [%rd0], %r0;";
  Module module(ptx_kernel(body));
  Buffer<uint32_t> words(32);
  std::vector<PieceMarks> marks(words.size() * sizeof(uint32_t));
  Region region = words.region();
  region.marks = marks.data();
  module.allow(region).check(CheckLevel::full);
  const Arguments arguments(words.address(), uint64_t{0}, uint64_t{0}, uint64_t{0});
  LaunchRequest request = module.request("k", {1}, {32}, arguments);
  for (const uint32_t number : {1u, 2u, most_launches}) {
    request.number = number;
    EXPECT_FALSE(run(request).fault);
  }
  request.grid = {2};
  request.number = 3;
  EXPECT_TRUE(run(request).fault);
}

}  // namespace
}  // namespace kiln::emulator::test::core_strict_global_test
