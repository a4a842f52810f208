// Planted races in shared memory: each is found, and the report names both parties.
#include "checks/shared_shadow.h"
#include "core_strict_fixture.h"

namespace kiln::emulator::test::core_strict_races_test {
namespace {

constexpr auto race = FaultKind::race;

std::string touches(const std::string& verb, uint32_t bytes, uint32_t offset) {
  return verb + " " + std::to_string(bytes) + " bytes, among them offset " + std::to_string(offset) +
         " of shared memory, which ";
}
const std::string after_write = "{other} has written, and nothing orders the two (race)";
const std::string after_read = "{other} has read, and nothing orders the two (race)";
const std::string in_flight = "a cp.async of {other} is still writing: nothing has waited for it (race)";

const std::string store_own = "st.shared.u32 [%r2], %r0;\n";
// %r9 = tile[thread ^ 32]
const std::string load_partner = "xor.b32 %r8, %r0, 32;\nmad.lo.u32 %r8, %r8, 4, %r1;\nld.shared.u32 %r9, [%r8];\n";
// The same in warp 1 only.
const std::string load_from_first_warp = "setp.lt.u32 %p9, %r0, 32;\n@%p9 bra skip;\n" + load_partner + "skip:\n";
const std::string mirrored = "sub.u32 %r8, 31, %r3;\nmad.lo.u32 %r8, %r8, 4, %r1;\n";

TEST(Races, AMissingBarrierBetweenWarps) {
  expect_report({store_own + load_from_first_warp}, race, {32, "ld.shared.u32 %r9, [%r8]"},
                touches("reads", 4, 0) + after_write, {0, "st.shared.u32 [%r2], %r0"});
}

TEST(Races, AMissingSecondBarrierOfALoop) {
  // One warp goes on to write the next step's values over those that the other has yet to read.
  const std::string body = "mov.u32 %r7, 0;\nloop:\nst.shared.u32 [%r2], %r7;\nbar.sync 0;\n" + load_partner +
                           "add.u32 %r7, %r7, 1;\nsetp.lt.u32 %p1, %r7, 3;\n@%p1 bra loop;";
  expect_report({body}, race, {0, "ld.shared.u32 %r9, [%r8]"}, touches("reads", 4, 128) + after_write,
                {32, "st.shared.u32 [%r2], %r7"});
}

TEST(Races, TwoWarpsThatWriteDifferentValues) {
  expect_report({"shr.u32 %r8, %r0, 5;\nmad.lo.u32 %r7, %r3, 4, %r1;\nst.shared.u32 [%r7+64], %r8;"}, race,
                {32, "st.shared.u32 [%r7+64], %r8"}, touches("writes", 4, 64) + after_write,
                {0, "st.shared.u32 [%r7+64], %r8"});
}

TEST(Races, LanesOfOneInstructionThatWriteDifferentValues) {
  expect_report(
      {"st.shared.u32 [%r1+8], %r0;", 32}, race, {0, "st.shared.u32 [%r1+8], %r0"},
      "writes 4 bytes at offset 8 of shared memory, where {other} writes something else at the same time (race)",
      {1, "st.shared.u32 [%r1+8], %r0"});
}

// Pairs of lanes copy different words to one place; the places are near each other, and far.
TEST(Races, CopiesOfOneInstructionToOnePlace) {
  const std::string copy = "cp.async.ca.shared.global [%r8], [%rd3], 4";
  for (const char* distance : {"8", "128"}) {
    const std::string places =
        "and.b32 %r8, %r3, 1;\nsetp.eq.u32 %p1, %r8, 1;\nselp.b64 %rd3, %rd10, %rd1, %p1;\n"
        "shr.u32 %r8, %r3, 1;\nmad.lo.u32 %r8, %r8, " +
        std::string(distance) + ", %r1;\n";
    expect_report(
        {places + copy + ";\ncp.async.wait_all;", 32}, race, {0, copy},
        "writes 4 bytes at offset 0 of shared memory, where {other} writes something else at the same time (race)",
        {1, copy});
  }
}

TEST(Races, LanesOfAWarpWithoutASynchronisation) {
  expect_report({store_own + mirrored + "ld.shared.u32 %r9, [%r8];", 32}, race, {0, "ld.shared.u32 %r9, [%r8]"},
                touches("reads", 4, 124) + after_write, {31, "st.shared.u32 [%r2], %r0"});
}

TEST(Races, LanesOfAWarpThatOverwriteWhatOthersRead) {
  expect_report({store_own + "bar.warp.sync -1;\n" + mirrored +
                     "ld.shared.u32 %r9, [%r8];\nadd.u32 %r9, %r9, 1;\nst.shared.u32 [%r2], %r9;",
                 32},
                race, {0, "st.shared.u32 [%r2], %r9"}, touches("writes", 4, 0) + after_read,
                {31, "ld.shared.u32 %r9, [%r8]"});
}

TEST(Races, AWarpSynchronisationWithoutTheWriter) {
  // Each half synchronises with itself and then reads what the other half wrote.
  expect_report({store_own +
                     "mov.u32 %r7, 0xFFFF;\nsetp.ge.u32 %p1, %r3, 16;\n@%p1 mov.u32 %r7, 0xFFFF0000;\n"
                     "@%p1 bra upper;\nbar.warp.sync %r7;\nbra both;\nupper:\nbar.warp.sync %r7;\nboth:\n" +
                     mirrored + "ld.shared.u32 %r9, [%r8];",
                 32},
                race, {0, "ld.shared.u32 %r9, [%r8]"}, touches("reads", 4, 124) + after_write,
                {31, "st.shared.u32 [%r2], %r0"});
}

TEST(Races, AShuffleIsNoSynchronisationOfMemory) {
  expect_report({store_own + "shfl.sync.idx.b32 %r7, %r0, 0, 31, -1;\n" + mirrored + "ld.shared.u32 %r9, [%r8];", 32},
                race, {0, "ld.shared.u32 %r9, [%r8]"}, touches("reads", 4, 124) + after_write,
                {31, "st.shared.u32 [%r2], %r0"});
}

const std::string clear_counter = "setp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.u32 [%r1], 0;\nbar.sync 0;\n";

TEST(Races, APlainReadBesideAtomics) {
  expect_report({clear_counter + "atom.shared.add.u32 %r8, [%r1], 1;\nld.shared.u32 %r9, [%r1];", 32}, race,
                {0, "ld.shared.u32 %r9, [%r1]"}, touches("reads", 4, 0) + after_write,
                {31, "atom.shared.add.u32 %r8, [%r1], 1"});
}

// A plain read makes a race of the update, though an atomic one of the same place was noted before.
TEST(Races, AnAtomicOnWhatOneLaneReadsAtomicallyAndAnotherPlainly) {
  const std::string atomic_read = "@%p1 ld.relaxed.cta.shared.u32 %r8, [%r1]",
                    update = "@%p1 atom.shared.add.u32 %r9, [%r1], 1";
  const auto in_lane = [](int lane) { return "setp.eq.u32 %p1, %r3, " + std::to_string(lane) + ";\n"; };
  expect_report({clear_counter + in_lane(0) + atomic_read + ";\n" + in_lane(1) + "@%p1 ld.shared.u32 %r8, [%r1];\n" +
                     in_lane(2) + update + ";",
                 32},
                race, {2, update}, touches("updates", 4, 0) + after_read, {0, atomic_read});
  expect_silence({clear_counter + in_lane(0) + atomic_read + ";\n" + in_lane(2) + update + ";", 32});
}

TEST(Races, AnAtomicOnWhatAnotherHasJustCleared) {
  expect_report({"setp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.u32 [%r1], 0;\natom.shared.add.u32 %r8, [%r1], 1;"}, race,
                {1, "atom.shared.add.u32 %r8, [%r1], 1"}, touches("updates", 4, 0) + after_write,
                {0, "@%p1 st.shared.u32 [%r1], 0"});
}

const std::string copy_own = "add.u64 %rd3, %rd1, 0;\ncp.async.ca.shared.global [%r2], [%rd3], 4;\n";

TEST(Races, ACopyThatTheThreadItselfDoesNotWaitFor) {
  expect_report({copy_own + "cp.async.commit_group;\nld.shared.u32 %r9, [%r2];"}, race, {0, "ld.shared.u32 %r9, [%r2]"},
                touches("reads", 4, 0) + in_flight, {0, "cp.async.ca.shared.global [%r2], [%rd3], 4"});
}

TEST(Races, ACopyThatIsWaitedForButNotByTheOthers) {
  expect_report({copy_own + "cp.async.wait_all;\n" + load_from_first_warp}, race, {32, "ld.shared.u32 %r9, [%r8]"},
                touches("reads", 4, 0) + after_write, {0, "cp.async.ca.shared.global [%r2], [%rd3], 4"});
}

TEST(Races, TheLatestCopyOfAPipelineThatWaitsForTheOneBefore) {
  expect_report(
      {copy_own + "cp.async.commit_group;\ncp.async.ca.shared.global [%r2+512], [%rd3], 4;\n"
                  "cp.async.commit_group;\ncp.async.wait_group 1;\nbar.sync 0;\nld.shared.u32 %r9, [%r2+512];",
       32},
      race, {0, "ld.shared.u32 %r9, [%r2+512]"}, touches("reads", 4, 512) + in_flight,
      {0, "cp.async.ca.shared.global [%r2+512], [%rd3], 4"});
}

TEST(Races, AStoreToWhereACopyIsOnItsWay) {
  expect_report({copy_own + "bar.sync 0;\nst.shared.u32 [%r2], 0;\ncp.async.wait_all;", 32}, race,
                {0, "st.shared.u32 [%r2], 0"}, touches("writes", 4, 0) + in_flight,
                {0, "cp.async.ca.shared.global [%r2], [%rd3], 4"});
}

TEST(Races, ACopyIntoABufferThatOthersStillRead) {
  expect_report({store_own + "bar.sync 0;\n" + load_from_first_warp + "@!%p9 bra done;\n" + copy_own +
                 "cp.async.wait_all;\ndone:"},
                race, {0, "cp.async.ca.shared.global [%r2], [%rd3], 4"}, touches("writes", 4, 0) + after_read,
                {32, "ld.shared.u32 %r9, [%r8]"});
}

TEST(Races, DoubleBufferingThatReadsTheBufferBeingFilled) {
  const std::string body =
      "mov.u32 %r7, 0;\nst.shared.u32 [%r2], %r0;\nst.shared.u32 [%r2+512], %r0;\nbar.sync 0;\nloop:\nadd.u32 %r7, "
      "%r7, 1;\nand.b32 %r6, %r7, 1;\n"
      "mad.lo.u32 %r5, %r6, 512, %r2;\nst.shared.u32 [%r5], %r7;\nxor.b32 %r8, %r0, 32;\nmad.lo.u32 %r8, %r8, 4, %r1;\n"
      "mad.lo.u32 %r8, %r6, 512, %r8;\nld.shared.u32 %r9, [%r8];\nbar.sync 0;\nsetp.lt.u32 %p1, %r7, 4;\n@%p1 bra "
      "loop;";
  expect_report({body}, race, {0, "st.shared.u32 [%r5], %r7"}, touches("writes", 4, 512) + after_read,
                {32, "ld.shared.u32 %r9, [%r8]"});
}

TEST(Races, OneByteOfAWordThatNeighboursShare) {
  // Threads write two bytes each, one byte apart: every second byte is written by two threads.
  expect_report(
      {"add.u32 %r8, %r1, %r0;\nst.shared.u8 [%r8+64], %r0;\nadd.u32 %r7, %r0, 100;\nst.shared.u8 [%r8+65], %r7;", 32},
      race, {0, "st.shared.u8 [%r8+65], %r7"}, touches("writes", 1, 65) + after_write,
      {1, "st.shared.u8 [%r8+64], %r0"});
}

TEST(Races, AVectorThatReachesIntoTheNeighboursWord) {
  expect_report({"mad.lo.u32 %r8, %r0, 8, %r1;\nst.shared.v2.u32 [%r8], {%r0, %r0};\nand.b32 %r7, %r0, -2;\n"
                 "mad.lo.u32 %r7, %r7, 8, %r1;\nld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r7];",
                 32},
                race, {1, "ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r7]"}, touches("reads", 16, 0) + after_write,
                {0, "st.shared.v2.u32 [%r8], {%r0, %r0}"});
}

TEST(Races, AConsumerThatArrivesWhereItShouldWait) {
  expect_report({"setp.ge.u32 %p1, %r0, 32;\n@%p1 bra consume;\nst.shared.u32 [%r2], %r0;\nbar.sync 1, 64;\nbra done;\n"
                 "consume:\nbar.arrive 1, 64;\n" +
                 load_partner + "done:"},
                race, {32, "ld.shared.u32 %r9, [%r8]"}, touches("reads", 4, 0) + after_write,
                {0, "st.shared.u32 [%r2], %r0"});
}

TEST(Races, AWarpThatStaysAwayFromTheOthersBarrier) {
  // Warps 0 and 1 meet; warp 2 reads as if it had been there.
  expect_report(
      {"setp.ge.u32 %p1, %r0, 64;\n@%p1 bra third;\nst.shared.u32 [%r2], %r0;\nbar.sync 1, 64;\nbra done;\nthird:\n"
       "ld.shared.u32 %r9, [%r2+-256];\ndone:",
       96},
      race, {64, "ld.shared.u32 %r9, [%r2+-256]"}, touches("reads", 4, 0) + after_write,
      {0, "st.shared.u32 [%r2], %r0"});
}

TEST(Races, AFlagWithoutAFence) {
  expect_report(
      {"setp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.u32 [%r1+4], 0;\nbar.sync 0;\nsetp.ge.u32 %p2, %r0, 32;\n"
       "@%p2 bra consume;\n@!%p1 bra done;\nst.shared.u32 [%r1], 42;\nst.volatile.shared.u32 [%r1+4], 1;\nbra done;\n"
       "consume:\nld.volatile.shared.u32 %r7, [%r1+4];\nsetp.eq.u32 %p3, %r7, 0;\n@%p3 bra consume;\n"
       "ld.shared.u32 %r9, [%r1];\ndone:"},
      race, {32, "ld.shared.u32 %r9, [%r1]"}, touches("reads", 4, 0) + after_write, {0, "st.shared.u32 [%r1], 42"});
}

TEST(Races, ThroughGenericAddresses) {
  expect_report(
      {"cvt.u64.u32 %rd3, %r1;\ncvta.shared.u64 %rd4, %rd3;\nadd.u64 %rd5, %rd4, %rd2;\nst.u32 [%rd5], %r0;\n" +
       load_from_first_warp},
      race, {32, "ld.shared.u32 %r9, [%r8]"}, touches("reads", 4, 0) + after_write, {0, "st.u32 [%rd5], %r0"});
}

}  // namespace
}  // namespace kiln::emulator::test::core_strict_races_test
