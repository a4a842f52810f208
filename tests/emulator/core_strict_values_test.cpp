// Values that nobody has written: reported where they matter, with the load that found them, and nowhere else.
#include "core_strict_fixture.h"

namespace kiln::emulator::test::core_strict_values_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// %r9 is a word of shared memory that only the threads below 32 have written.
const std::string half_written =
    "setp.lt.u32 %p1, %r0, 32;\n@%p1 st.shared.u32 [%r2], %r0;\nbar.sync 0;\nld.shared.u32 %r9, [%r2];\n";

/// Expects that `use`, behind `before`, is where the value of %r9 matters, first in `thread`'s warp.
void expect_use(const std::string& before, const std::string& use, const std::string& where) {
  const Fault fault = run_strict({half_written + before + use + ";\ndone:"});
  EXPECT_EQ(fault.kind, FaultKind::uninitialised_read) << before << use;
  EXPECT_THAT(fault.report,
              AllOf(HasSubstr("thread (32, 0, 0) (warp 1, lane 0): reads 4 bytes, among them offset 128 of shared "
                              "memory, which no thread of the block has written (uninitialised)\n  PTX line "),
                    HasSubstr(": ld.shared.u32 %r9, [%r2]\n  " + where + ": PTX line "), HasSubstr(": " + use)));
}

/// Expects nothing of it in half_written's situation.
void expect_no_use(const std::string& body) {
  expect_silence({half_written + body + "\ndone:"});
}

TEST(UnwrittenValues, MatterWhereTheyAreStoredForOthersToSee) {
  expect_use("", "st.global.u32 [%rd0], %r9", "stored here");
  expect_use("", "st.global.u8 [%rd0], %r9", "stored here");
  expect_use("add.u64 %rd3, %rd11, %rd2;\n", "st.global.v2.u32 [%rd3], {%r0, %r9}", "stored here");
  expect_use("", "atom.global.add.u32 %r8, [%rd10], %r9", "stored here");
  expect_use("", "red.global.add.u32 [%rd10], %r9", "stored here");
  expect_use("", "atom.global.cas.b32 %r8, [%rd10], 1, %r9", "stored here");
}

TEST(UnwrittenValues, MayBeAnyElementOfAVector) {
  const std::string first_of_four =
      "mad.lo.u32 %r8, %r0, 16, %r1;\nst.shared.u32 [%r8], %r0;\nbar.sync 0;\n"
      "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r8];\n";
  expect_silence({first_of_four + "st.global.u32 [%rd0], %r4;"});
  for (const char* element : {"%r5", "%r7"}) {
    const Fault fault = run_strict({first_of_four + "st.global.u32 [%rd0], " + element + ";"});
    EXPECT_EQ(fault.kind, FaultKind::uninitialised_read) << element;
    EXPECT_THAT(fault.report, HasSubstr("reads 16 bytes, among them offset 516 of shared memory, which no thread"))
        << element;
  }
}

TEST(UnwrittenValues, MatterInAddressesAndDecisions) {
  expect_use("mul.wide.u32 %rd3, %r9, 4;\nadd.u64 %rd3, %rd3, %rd0;\n", "ld.global.u32 %r8, [%rd3]", "an address here");
  expect_use("mad.lo.u32 %r8, %r9, 4, %r1;\n", "st.shared.u32 [%r8], %r0", "an address here");
  expect_use("setp.eq.u32 %p2, %r9, 5;\n", "@%p2 bra done", "decides here");
  expect_use("setp.eq.u32 %p2, %r9, 5;\n", "@!%p2 add.u32 %r8, %r8, 1", "decides here");
  expect_use("and.b32 %r8, %r9, 1;\n", "bar.sync %r8", "used here");
}

TEST(UnwrittenValues, PassThroughWhatIsComputedOfThem) {
  const std::string use = "st.global.u32 [%rd0], %r8";
  for (const std::string step :
       {"add.u32 %r8, %r9, 1;\n", "mov.u32 %r7, %r9;\nmad.lo.u32 %r8, %r0, %r0, %r7;\n",
        "cvt.rn.f32.u32 %f1, %r9;\nfma.rn.f32 %f2, %f1, %f1, %f1;\nfma.rn.f32 %f3, %f2, %f2, %f2;\nmov.b32 %r8, %f3;\n",
        "mov.b64 %rd3, {%r0, %r9};\nmov.b64 {%r7, %r8}, %rd3;\n",
        "setp.eq.u32 %p2, %r9, 1;\nselp.u32 %r8, 1, 2, %p2;\n", "prmt.b32 %r8, %r9, %r0, 0x5410;\n",
        "mul.wide.u32 %rd3, %r9, 4;\ncvt.u32.u64 %r8, %rd3;\n"}) {
    expect_use(step, use, "stored here");
  }
}

TEST(UnwrittenValues, DoNotMatterWhereNobodyLooksAtThem) {
  expect_no_use("");
  expect_no_use("add.u32 %r8, %r9, 1;\nmov.u32 %r9, 5;\nst.global.u32 [%rd0], %r9;");
  expect_no_use("@%p1 st.global.u32 [%rd0], %r9;");  // the written ones
  // One word of a vector.
  expect_silence(
      {"mad.lo.u32 %r8, %r0, 16, %r1;\nst.shared.v2.u32 [%r8], {%r0, %r0};\nst.shared.u32 [%r8+8], %r0;\n"
       "ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r8];\nadd.u32 %r9, %r10, %r11;\nadd.u32 %r9, %r9, %r12;\n"
       "st.global.u32 [%rd0], %r9;"});
}

TEST(UnwrittenValues, DoNotMatterWhereSomethingElseDecides) {
  expect_no_use("selp.u32 %r8, %r9, 7, %p1;\nst.global.u32 [%rd0], %r8;");
  // In range and positive: where a thread is out of range, it does not matter what it loaded.
  expect_no_use("setp.gt.u32 %p2, %r9, 3;\nand.pred %p3, %p1, %p2;\n@%p3 st.global.u32 [%rd0], %r9;");
  expect_no_use("setp.gt.u32 %p2, %r9, 3;\nnot.pred %p4, %p1;\nor.pred %p3, %p2, %p4;\n@%p3 bra done;\n");
}

TEST(UnwrittenValues, PassFromLaneToLane) {
  // Lanes of warp 1 from 8 on have a value; shuffles that stay among them are silent.
  const std::string some =
      "setp.lt.u32 %p1, %r3, 8;\n@!%p1 st.shared.u32 [%r2], %r0;\nbar.sync 0;\nld.shared.u32 %r9, [%r2];\n";
  expect_silence({some + "add.u32 %r7, %r3, 8;\nshfl.sync.idx.b32 %r8, %r9, %r7, 31, -1;\nsetp.lt.u32 %p2, %r3, 24;\n"
                         "@%p2 st.global.u32 [%rd0], %r8;"});
  const Fault fault = run_strict({some + "shfl.sync.up.b32 %r9, %r9, 8, 0, -1;\nsetp.ge.u32 %p2, %r3, 8;\n"
                                         "@%p2 st.global.u32 [%rd0], %r9;"});
  EXPECT_THAT(fault.report, AllOf(HasSubstr(", lane 0): reads"), HasSubstr("stored here: PTX line ")));
}

TEST(UnwrittenValues, MayRestInLocalMemory) {
  const std::string local = ".local .align 8 .b8 mine[16];\n";
  expect_no_use(local + "st.local.v2.u32 [mine], {%r0, %r9};\nld.local.u32 %r8, [mine];\nst.global.u32 [%rd0], %r8;");
  expect_no_use(local +
                "st.local.u32 [mine], %r9;\nst.local.u32 [mine], %r0;\nld.local.u32 %r8, [mine];\n"
                "st.global.u32 [%rd0], %r8;");
  expect_use(local + "st.local.v2.u32 [mine], {%r0, %r9};\nld.local.u32 %r8, [mine+4];\n", "st.global.u32 [%rd0], %r8",
             "stored here");
}

TEST(UnwrittenValues, MayRestInSharedMemory) {
  const std::string stored = "st.shared.u32 [%r2+1024], %r9;\n", use = "st.global.u32 [%rd0], %r8";
  expect_no_use(stored);
  expect_no_use(stored + "ld.shared.u32 %r8, [%r2+1024];\n@%p1 " + use + ";");  // the written ones
  expect_use(stored + "ld.shared.u32 %r8, [%r2+1024];\n", use, "stored here");
  // A store of something else takes their place: of one thread alone, and of a whole warp.
  expect_no_use(stored + "@!%p1 st.shared.u32 [%r2+1024], %r0;\nld.shared.u32 %r8, [%r2+1024];\n" + use + ";");
  expect_no_use(stored + "st.shared.u32 [%r2+1024], %r0;\nld.shared.u32 %r8, [%r2+1024];\n" + use + ";");
  // One element of a vector is unwritten, and one word of it is loaded.
  const std::string vector = "mad.lo.u32 %r7, %r0, 8, %r1;\nst.shared.v2.u32 [%r7+1024], {%r0, %r9};\n";
  expect_no_use(vector + "ld.shared.u32 %r8, [%r7+1024];\n" + use + ";");
  expect_use(vector + "ld.shared.u32 %r8, [%r7+1028];\n", use, "stored here");
}

TEST(UnwrittenValues, PassToOtherWarpsThroughSharedMemory) {
  // Warp 1 stores what it has not written to where warp 0 loads, which knows of none before.
  const std::string passed = half_written +
                             "add.u32 %r7, %r0, 32;\nand.b32 %r7, %r7, 63;\nmad.lo.u32 %r7, %r7, 4, %r1;\n"
                             "st.shared.u32 [%r7+1024], %r9;\nbar.sync 0;\nld.shared.u32 %r8, [%r2+1024];\n";
  const Fault fault = run_strict({passed + "st.global.u32 [%rd0], %r8;"});
  EXPECT_EQ(fault.kind, FaultKind::uninitialised_read);
  EXPECT_THAT(fault.report, AllOf(HasSubstr("thread (32, 0, 0) (warp 1, lane 0): reads 4 bytes, among them offset 128"),
                                  HasSubstr(": ld.shared.u32 %r9, [%r2]\n  stored here: PTX line "),
                                  HasSubstr(": st.global.u32 [%rd0], %r8")));
  expect_silence({passed + "@!%p1 st.global.u32 [%rd0], %r8;"});
}

TEST(UnwrittenValues, RaceInSharedMemoryLikeOthers) {
  const Fault fault =
      run_strict({half_written + "add.u32 %r7, %r0, 32;\nand.b32 %r7, %r7, 63;\nmad.lo.u32 %r7, %r7, 4, %r1;\n"
                                 "st.shared.u32 [%r7+1024], %r9;\nld.shared.u32 %r8, [%r2+1024];\n"});
  EXPECT_EQ(fault.kind, FaultKind::race) << fault.report;
}

TEST(UnwrittenValues, OfSharedMemoryAreGoneWithTheirBlock) {
  // Both blocks leave an unwritten value; the second stores to that place before it loads.
  const std::string body =
      "setp.eq.u32 %p2, %r20, 0;\n@%p2 bra first;\nst.shared.u32 [%r2+1024], %r0;\nld.shared.u32 %r8, [%r2+1024];\n"
      "st.global.u32 [%rd0], %r8;\nbra done;\nfirst:\n";
  expect_silence({body + half_written + "st.shared.u32 [%r2+1024], %r9;\ndone:", 64, 2});
}

TEST(UnwrittenValues, OfGlobalMemoryAreFoundAgainAndAgain) {
  // A loop that reads all of the input, of which the second half is unwritten, and stores what the first half gives.
  const std::string loop =
      "mov.u32 %r7, 0;\nmov.u32 %r8, 0;\nagain:\nmul.wide.u32 %rd4, %r7, 4;\nadd.u64 %rd4, %rd1, %rd4;\n"
      "ld.global.u32 %r9, [%rd4];\nsetp.lt.u32 %p2, %r7, LIMIT;\nselp.u32 %r9, %r9, 0, %p2;\n"
      "add.u32 %r8, %r8, %r9;\nadd.u32 %r7, %r7, 1;\nsetp.lt.u32 %p3, %r7, 64;\n@%p3 bra again;\n"
      "st.global.u32 [%rd0], %r8;";
  const auto with_limit = [&](const std::string& limit) {
    std::string body = loop;
    return body.replace(body.find("LIMIT"), 5, limit);
  };
  EXPECT_EQ(expect_silence({with_limit("32"), 64, 3})[5], 32u * 0x01010101u);
  const Fault fault = run_strict({with_limit("33"), 64, 3});
  EXPECT_THAT(fault.report, AllOf(HasSubstr("128 bytes into the input, has never been written (uninitialised)\n"),
                                  HasSubstr("\n  stored here: PTX line "), HasSubstr("st.global.u32 [%rd0], %r8")));
}

}  // namespace
}  // namespace kiln::emulator::test::core_strict_values_test
