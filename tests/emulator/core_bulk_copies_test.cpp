// cp.async.bulk of bytes in a row: when copies happen, who learns of them, their checks and counts.
#include <array>
#include <numeric>

#include "core_fixture.h"

namespace kiln::emulator::test::core_bulk_copies_test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

const std::string wait_for_phase_0 =
    "waiting:\nmbarrier.try_wait.parity.shared.b64 %p3, [%r1], 0;\n@!%p3 bra waiting;\n";

/// Device memory that begins with a sector, so that sectors can be counted.
struct alignas(32) Words {
  std::array<uint32_t, 256> words{};
  uint64_t address() const { return reinterpret_cast<uint64_t>(words.data()); }
  Region region(std::string name) const { return {address(), address() + sizeof words, std::move(name)}; }
};

/// %r0: thread; %r1: an mbarrier for one arrival; %r2: 1 KB of shared memory that holds 77 in each word, %r4: the
/// thread's own word of it; %rd0: out, %rd2: the thread's own word of it; %rd1: the source, whose words count from
/// 1000; %p1: thread 0. Each thread stores %r9 to out at the end.
class BulkCopies : public testing::Test {
 protected:
  static std::string kernel(const std::string& text) {
    return ptx_kernel(
        ".shared .align 8 .b8 bar[8];\n.shared .align 128 .b8 tile[1024];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, bar;\n"
        "mov.u32 %r2, tile;\nmad.lo.u32 %r4, %r0, 4, %r2;\nld.param.u64 %rd0, [p0];\nld.param.u64 %rd1, [p1];\n"
        "mul.wide.u32 %rd2, %r0, 4;\nadd.u64 %rd2, %rd0, %rd2;\nsetp.eq.u32 %p1, %r0, 0;\n"
        "@%p1 mbarrier.init.shared.b64 [%r1], 1;\nst.shared.u32 [%r4], 77;\nbar.sync 0;\nmov.u32 %r9, 0;\n" +
        text + "\nst.global.u32 [%rd2], %r9;");
  }
  LaunchRequest request(const Module& module, CheckLevel level) {
    LaunchRequest result = module.request(
        "k", {1}, {threads}, arguments_ = Arguments(out_.address(), source_.address(), uint64_t{0}, uint64_t{0}));
    result.check = level;
    result.instruction_limit = 1'000'000;
    return result;
  }
  std::vector<uint32_t> run(const std::string& text, CheckLevel level = CheckLevel::full) {
    Module module(kernel(text));
    module.allow(out_.region("out")).allow(source_.region("the source"));
    const LaunchOutcome outcome = kiln::emulator::run(request(module, level));
    EXPECT_FALSE(outcome.fault) << outcome.fault->report;
    counters_ = outcome.counters;
    return {out_.words.begin(), out_.words.end()};
  }
  Fault fault(const std::string& text, CheckLevel level = CheckLevel::full) {
    Module module(kernel(text));
    module.allow(out_.region("out")).allow(source_.region("the source"));
    const LaunchOutcome outcome = kiln::emulator::run(request(module, level));
    EXPECT_TRUE(outcome.fault);
    return outcome.fault.value_or(Fault{});
  }

  void SetUp() override { std::iota(source_.words.begin(), source_.words.end(), 1000u); }

  static constexpr uint32_t threads = 64;
  const std::string load_256 =
      "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 256;\n"
      "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 256, [%r1];\n";
  Words source_, out_;
  Arguments arguments_;
  Counters counters_;
};

TEST_F(BulkCopies, ToSharedMemoryEndTheirMbarriersPhase) {
  for (const CheckLevel level : {CheckLevel::off, CheckLevel::bounds, CheckLevel::full}) {
    const std::vector<uint32_t> out = run(load_256 + wait_for_phase_0 + "ld.shared.u32 %r9, [%r4];", level);
    for (uint32_t k = 0; k < threads; ++k) EXPECT_EQ(out[k], 1000 + k);
  }
}

TEST_F(BulkCopies, TakeSizesAndAddressesOfEachLaneWithEveryHint) {
  // Lanes 0 to 15 copy 16 bytes each, in reverse.
  const std::vector<uint32_t> out = run(
      "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 256;\nsetp.lt.u32 %p2, %r0, 16;\nsub.u32 %r5, 15, %r0;\n"
      "mul.wide.u32 %rd4, %r5, 16;\nadd.u64 %rd4, %rd1, %rd4;\nmad.lo.u32 %r6, %r0, 16, %r2;\nmov.u32 %r7, 16;\n"
      "@%p2 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r6], [%rd4], %r7, [bar], "
      "%rd5;\n" +
      wait_for_phase_0 + "ld.shared.u32 %r9, [%r4];");
  for (uint32_t k = 0; k < threads; ++k) EXPECT_EQ(out[k], 1000 + 4 * (15 - k / 4) + k % 4) << k;
}

TEST_F(BulkCopies, OfNothingHoldUpNoOthers) {
  const std::vector<uint32_t> out =
      run("@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 0, [%r1];\n" +
          load_256 + wait_for_phase_0 + "ld.shared.u32 %r9, [%r4];");
  EXPECT_EQ(out[threads - 1], 1000 + threads - 1);
}

TEST_F(BulkCopies, HappenNoEarlierThanTheirWait) {
  EXPECT_THAT(run(load_256 + "bar.sync 0;\nld.shared.u32 %r9, [%r4];", CheckLevel::bounds), testing::Contains(77u));
  const Fault early = fault(load_256 + "bar.sync 0;\nld.shared.u32 %r9, [%r4];");
  EXPECT_EQ(early.kind, FaultKind::race);
  EXPECT_THAT(early.report, AllOf(HasSubstr("thread (0, 0, 0) (warp 0, lane 0) is still writing"),
                                  HasSubstr("the other: "), HasSubstr("cp.async.bulk.shared::cluster.global")));
}

TEST_F(BulkCopies, ThatOneWarpHasWaitedForAreNotThereForTheOthers) {
  // Warp 0 waits, and nothing tells warp 1.
  const Fault other = fault(load_256 + "setp.ge.u32 %p4, %r0, 32;\n@%p4 bra read;\n" + wait_for_phase_0 +
                            "read:\n@%p4 nanosleep.u32 100;\nld.shared.u32 %r9, [%r4];");
  EXPECT_EQ(other.kind, FaultKind::race);
  EXPECT_THAT(other.report, HasSubstr("thread (32, 0, 0)"));
}

TEST_F(BulkCopies, ThatFindTheirBytesAnnouncedLaterStillEndThePhase) {
  const std::vector<uint32_t> out =
      run("@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1+512], 128, [%r1];\n"
          "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+128], [%rd1], 128, [%r1];\n"
          "setp.ne.u32 %p2, %r0, 63;\n@%p2 bra wait;\nmbarrier.arrive.expect_tx.shared.b64 _, [%r1], 256;\nwait:\n" +
          wait_for_phase_0 + "ld.shared.u32 %r9, [%r4];");
  for (uint32_t k = 0; k < threads; ++k) EXPECT_EQ(out[k], k < 32 ? 1128 + k : 1000 + k - 32) << k;
}

TEST_F(BulkCopies, OfFewerBytesThanAnnouncedLeaveTheirThreadsWaiting) {
  const Fault waiting = fault(
      "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 512;\n"
      "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 256, [%r1];\n" +
      wait_for_phase_0);
  EXPECT_EQ(waiting.kind, FaultKind::deadlock);
  EXPECT_THAT(waiting.report, HasSubstr("lacks 0 of 1 arrivals and 256 bytes"));
}

const std::string store_256 =
    "st.shared.u32 [%r4], %r0;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n"
    "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd0+512], [%r2], 256;\n";

TEST_F(BulkCopies, ToGlobalMemoryAreThereWhenTheirThreadHasEnded) {
  for (const CheckLevel level : {CheckLevel::off, CheckLevel::bounds, CheckLevel::full}) {
    out_.words.fill(0);
    const std::vector<uint32_t> out = run(store_256, level);
    for (uint32_t k = 0; k < threads; ++k) EXPECT_EQ(out[128 + k], k);
  }
}

TEST_F(BulkCopies, ToGlobalMemoryAreThereWhenTheirGroupHasBeenWaitedFor) {
  const std::string two =
      store_256 +
      "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%rd0+768], "
      "[%r2+4-4], 128, %rd9;\n@%p1 cp.async.bulk.commit_group;\n";
  const auto read = [](const std::string& wait, int offset) {
    return wait + "\n@%p1 ld.global.u32 %r9, [%rd0+" + std::to_string(offset) + "];";
  };
  std::string one = two;
  one.replace(one.find("+4-4"), 4, "");
  EXPECT_EQ(run(one + read("cp.async.bulk.wait_group 1;", 512 + 4))[0], 1u) << "the first group is there";
  out_.words.fill(5);
  EXPECT_EQ(run(one + read("cp.async.bulk.wait_group 1;", 768 + 4))[0], 5u) << "the second may be on its way";
  EXPECT_EQ(run(one + read("cp.async.bulk.wait_group.read 0;", 768 + 4))[0], 1u);
}

TEST_F(BulkCopies, AreWaitedForByTheirOwnThreadOnly) {
  // Threads 0, 1 and 32 copy 16 bytes each; thread 0 waits for its own, and reads a word of each.
  const std::string three =
      "setp.eq.u32 %p2, %r0, 1;\nsetp.eq.u32 %p4, %r0, 32;\nor.pred %p2, %p2, %p4;\nor.pred %p2, %p2, %p1;\n"
      "mul.wide.u32 %rd4, %r0, 16;\nadd.u64 %rd4, %rd0, %rd4;\n"
      "@%p2 cp.async.bulk.global.shared::cta.bulk_group [%rd4+256], [%r2], 16;\n@%p2 cp.async.bulk.commit_group;\n"
      "@%p1 cp.async.bulk.wait_group 0;\nbar.sync 0;\n@%p1 ld.global.u32 %r9, [%rd0+";
  for (const auto& [thread, there] : {std::pair{0, true}, std::pair{1, false}, std::pair{32, false}}) {
    out_.words.fill(5);
    const std::string text = three + std::to_string(256 + 16 * thread) + "];\nbar.sync 0;";
    EXPECT_EQ(run(text, CheckLevel::bounds)[0], there ? 77u : 5u) << thread;
    EXPECT_EQ(out_.words[static_cast<size_t>(64 + 4 * thread)], 77u) << "in the end";
  }
}

TEST_F(BulkCopies, ReadSharedMemoryAsLateAsTheyMay) {
  // Words written before the group has been waited for are copied: a bug of the kernel's.
  EXPECT_EQ(run(store_256 + "@%p1 cp.async.bulk.commit_group;\n@%p1 st.shared.u32 [%r2], 4711;\n"
                            "@%p1 cp.async.bulk.wait_group.read 0;",
                CheckLevel::bounds)[128],
            4711u);
}

TEST_F(BulkCopies, AreCheckedOnBothSides) {
  const auto load = [](const std::string& to, const std::string& from, const std::string& bytes) {
    return "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [" + to + "], [" + from + "], " +
           bytes + ", [%r1];";
  };
  for (const CheckLevel level : {CheckLevel::bounds, CheckLevel::full}) {
    EXPECT_THAT(fault(load("%r2", "%rd1+768", "272"), level).report,
                AllOf(HasSubstr("thread (0, 0, 0)"), HasSubstr("reads 272 bytes"), HasSubstr("the source")));
    EXPECT_THAT(fault(load("%r2+896", "%rd1", "144"), level).report,
                AllOf(HasSubstr("writes 144 bytes"), HasSubstr("shared memory")));
    EXPECT_EQ(fault(load("%r2+896", "%rd1", "144"), level).kind, FaultKind::illegal_address);
    EXPECT_THAT(fault("@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd0+1008], [%r2], 32;", level).report,
                AllOf(HasSubstr("writes 32 bytes"), HasSubstr("out")));
  }
  for (const std::string& wrong :
       {load("%r2", "%rd1", "24"), load("%r2+8", "%rd1", "16"), load("%r2", "%rd1+8", "16")}) {
    const Fault misaligned = fault(wrong, CheckLevel::off);
    EXPECT_EQ(misaligned.kind, FaultKind::misaligned_address) << wrong;
    EXPECT_THAT(misaligned.report, HasSubstr("no multiple of 16"));
  }
  EXPECT_THAT(fault("@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 16, [%r2+512];",
                    CheckLevel::bounds)
                  .report,
              HasSubstr("there is no mbarrier at offset"));
}

TEST_F(BulkCopies, OfMemoryThatOtherThreadsHaveJustWrittenAreRaces) {
  const Fault race =
      fault("st.shared.u32 [%r4], %r0;\n@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd0+512], [%r2], 256;");
  EXPECT_EQ(race.kind, FaultKind::race);
  EXPECT_THAT(race.report,
              AllOf(HasSubstr("cp.async.bulk.global"), HasSubstr("the other: "), HasSubstr("st.shared.u32")));
  const Fault overwritten = fault("ld.shared.u32 %r9, [%r4];\n" + load_256);
  EXPECT_EQ(overwritten.kind, FaultKind::race) << "others may not have read yet";
}

TEST_F(BulkCopies, TakeWhatThreadsHaveWrittenByAFenceOfProxies) {
  const auto stored = [](const std::string& before, const std::string& after, const std::string& then) {
    return before + "st.shared.u32 [%r4], %r0;\n" + after + "bar.sync 0;\n" + then +
           "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd0+512], [%r2], 256;";
  };
  const std::string fence = "fence.proxy.async.shared::cta;\n";
  run(stored("", fence, ""));
  run(stored("", "", "@%p1 fence.proxy.async;\n"));
  for (const std::string& text :
       {stored("", "", ""), stored(fence, "", ""), stored("", "fence.proxy.async.global;\n", ""),
        stored("", "setp.gt.u32 %p5, %r0, 40;\n@%p5 " + fence, "")}) {
    const Fault missing = fault(text);
    EXPECT_EQ(missing.kind, FaultKind::race);
    EXPECT_THAT(missing.report, AllOf(HasSubstr("has written, and no fence.proxy.async stands between the two (race)"),
                                      HasSubstr("the other: "), HasSubstr("st.shared.u32 [%r4], %r0")));
  }
  run(load_256 + wait_for_phase_0 +
      "bar.sync 0;\n@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd0+512], [%r2], 256;");  // from copy to copy
}

TEST_F(BulkCopies, CountTheirBytesAsTrafficOfGlobalAndSharedMemory) {
  run(load_256 + wait_for_phase_0, CheckLevel::bounds);
  EXPECT_EQ(counters_.global_load, 2u) << "an instruction of each warp, though only one of them copies";
  EXPECT_EQ(counters_.unique_load_sectors, 256u / 32);
  EXPECT_EQ(counters_.unique_store_sectors, threads * 4 / 32) << "what the threads store at the end";
  EXPECT_EQ(counters_.global_sectors, 256u / 32 + threads * 4 / 32);
  EXPECT_EQ(counters_.block_sectors, counters_.global_sectors);
  run(store_256, CheckLevel::bounds);
  EXPECT_EQ(counters_.unique_store_sectors, (256 + threads * 4) / 32);
  EXPECT_EQ(counters_.unique_load_sectors, 0u);
}

}  // namespace
}  // namespace kiln::emulator::test::core_bulk_copies_test
