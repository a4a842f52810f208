// cp.async: when copies happen, what they fill, and their checks.
#include <numeric>

#include "core_fixture.h"

namespace kiln::emulator::test::core_copies_test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

/// 32 threads run `text` with %rd4 = source + 16 tid, %r4 = tile + 16 tid (1 KB of shared memory), and store %r9.
class AsyncCopies : public testing::Test {
 protected:
  static std::string kernel(const std::string& text) {
    return ptx_kernel(
        ".shared .align 16 .b8 tile[1024];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, tile;\nmad.lo.u32 %r4, %r0, 16, %r1;\n"
        "ld.param.u64 %rd0, [p0];\nld.param.u64 %rd1, [p1];\nmul.wide.u32 %rd2, %r0, 16;\nadd.u64 %rd4, %rd1, %rd2;\n"
        "st.shared.u32 [%r4], 77;\nst.shared.u32 [%r4+4], 77;\nst.shared.u32 [%r4+8], 77;\nst.shared.u32 [%r4+12], "
        "77;\n" +
        text + "\nmul.wide.u32 %rd3, %r0, 4;\nadd.u64 %rd3, %rd0, %rd3;\nst.global.u32 [%rd3], %r9;");
  }
  std::vector<uint32_t> run(const std::string& text) {
    Module module(kernel(text));
    Buffer<uint32_t> out(32);
    module.allow(out).allow(source_);
    module.launch("k", {1}, {32}, Arguments(out.address(), source_.address(), uint64_t{0}, uint64_t{0}));
    return out.values();
  }
  std::string fault(const std::string& text) {
    Module module(kernel(text));
    Buffer<uint32_t> out(32);
    module.allow(out).allow(source_, "the source");
    return module.fault("k", {1}, {32}, Arguments(out.address(), source_.address(), uint64_t{0}, uint64_t{0})).report;
  }
  /// Word `word` of the source's 16 bytes of each thread.
  static std::vector<uint32_t> words(uint32_t word) {
    std::vector<uint32_t> result(32);
    for (uint32_t k = 0; k < 32; ++k) result[k] = 1000 + 4 * k + word;
    return result;
  }

  void SetUp() override { std::iota(source_.values().begin(), source_.values().end(), 1000u); }
  Buffer<uint32_t> source_ = Buffer<uint32_t>(128);
};

TEST_F(AsyncCopies, HappenNoEarlierThanTheirWait) {
  EXPECT_THAT(run("cp.async.ca.shared.global [%r4], [%rd4], 16;\nld.shared.u32 %r9, [%r4];"), Each(77u));
  EXPECT_THAT(run("cp.async.ca.shared.global [%r4], [%rd4], 16;\ncp.async.commit_group;\nld.shared.u32 %r9, [%r4];"),
              Each(77u));
  EXPECT_EQ(run("cp.async.cg.shared.global [%r4], [%rd4], 16;\ncp.async.wait_all;\nld.shared.u32 %r9, [%r4+12];"),
            words(3));
  EXPECT_EQ(run("cp.async.ca.shared.global [%r4+4], [%rd4+4], 4;\ncp.async.commit_group;\ncp.async.wait_group 0;\n"
                "ld.shared.u32 %r9, [%r4+4];"),
            words(1));
}

TEST_F(AsyncCopies, WaitGroupLeavesTheLatestPending) {
  const std::string two =
      "cp.async.ca.shared.global [%r4], [%rd4], 8;\ncp.async.commit_group;\n"
      "cp.async.ca.shared.global [%r4+8], [%rd4+8], 8;\ncp.async.commit_group;\ncp.async.wait_group 1;\n";
  EXPECT_EQ(run(two + "ld.shared.u32 %r9, [%r4+4];"), words(1)) << "the first group is there";
  EXPECT_THAT(run(two + "ld.shared.u32 %r9, [%r4+8];"), Each(77u)) << "the second may be on its way";
  EXPECT_EQ(run(two + "cp.async.wait_group 0;\nld.shared.u32 %r9, [%r4+12];"), words(3));
  const std::string uncommitted =
      "cp.async.ca.shared.global [%r4], [%rd4], 8;\ncp.async.wait_group 0;\nld.shared.u32 %r9, [%r4];";
  EXPECT_THAT(run(uncommitted), Each(77u)) << "a copy in no group is not waited for";
}

TEST_F(AsyncCopies, FewerSourceBytesAreFilledUpWithZeros) {
  const std::string some =
      "mul.lo.u32 %r5, %r0, 3;\nmin.u32 %r5, %r5, 16;\n"
      "cp.async.ca.shared.global [%r4], [%rd4], 16, %r5;\ncp.async.wait_all;\n";
  const std::vector<uint32_t> first = run(some + "ld.shared.u32 %r9, [%r4];");
  const std::vector<uint32_t> last = run(some + "ld.shared.u32 %r9, [%r4+12];");
  for (uint32_t k = 0; k < 32; ++k) {
    const uint32_t present = std::min(3 * k, 16u);
    EXPECT_EQ(first[k], present == 0 ? 0 : present == 3 ? (1000 + 4 * k) & 0xFFFFFF : 1000 + 4 * k) << k;
    EXPECT_EQ(last[k], present < 13 ? 0 : present == 15 ? (1003 + 4 * k) & 0xFFFFFF : 1003 + 4 * k) << k;
  }
  const std::string ignored =
      "setp.lt.u32 %p1, %r0, 16;\ncp.async.cg.shared.global [%r4], [%rd4], 16, %p1;\n"
      "cp.async.wait_all;\nld.shared.u32 %r9, [%r4];";
  const std::vector<uint32_t> upper = run(ignored);
  for (uint32_t k = 0; k < 32; ++k) EXPECT_EQ(upper[k], k < 16 ? 0 : 1000 + 4 * k) << k;
}

TEST_F(AsyncCopies, GuardedLanesCopyNothing) {
  const std::vector<uint32_t> odd =
      run("and.b32 %r5, %r0, 1;\nsetp.eq.u32 %p1, %r5, 1;\n@%p1 cp.async.ca.shared.global [%r4], [%rd4], 4;\n"
          "cp.async.commit_group;\ncp.async.wait_group 0;\nld.shared.u32 %r9, [%r4];");
  for (uint32_t k = 0; k < 32; ++k) EXPECT_EQ(odd[k], k % 2 == 1 ? 1000 + 4 * k : 77) << k;
}

TEST_F(AsyncCopies, AreCheckedOnBothSides) {
  EXPECT_THAT(fault("cp.async.ca.shared.global [%r4], [%rd4+16], 16;"),
              AllOf(HasSubstr("thread (31, 0, 0)"), HasSubstr("reads 16 bytes"), HasSubstr("the source")));
  EXPECT_THAT(fault("cp.async.ca.shared.global [%r4+528], [%rd4], 16;"),
              AllOf(HasSubstr("thread (31, 0, 0)"), HasSubstr("writes 16 bytes"), HasSubstr("shared memory")));
  EXPECT_THAT(fault("cp.async.ca.shared.global [%r4+4], [%rd4], 16;"), HasSubstr("not aligned to 16"));
  // A copy that reads nothing may point anywhere.
  run("mov.u64 %rd5, 64;\nmov.u32 %r5, 0;\ncp.async.ca.shared.global [%r4], [%rd5], 16, %r5;\nmov.u32 %r9, 0;");
}

}  // namespace
}  // namespace kiln::emulator::test::core_copies_test
