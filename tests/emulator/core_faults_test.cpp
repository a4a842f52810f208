// Planted faults: each must be found, and its report must say where.
#include <algorithm>

#include "core_fixture.h"

namespace kiln::emulator::test::core_faults_test {
namespace {

using testing::HasSubstr;

constexpr const char* thread_address = R"(mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
ld.param.u64 %rd0, [p0];
)";

/// Launches two blocks of 32 threads of `body` on 32 floats; the fault must lie at the line that holds `culprit`.
Fault planted(const std::string& body, const std::string& culprit, const std::string& before = "") {
  const std::string ptx =
      ptx_kernel(thread_address + body, ".param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3", before);
  Buffer<float> values(32, 1.0f);
  Module module(ptx);
  module.allow(values, "the values");
  const Arguments arguments(values.address(), uint64_t{0}, uint64_t{0}, uint64_t{0});
  Fault fault = module.fault("k", {2}, {32}, arguments);
  const auto line = std::count(ptx.begin(), ptx.begin() + static_cast<ptrdiff_t>(ptx.find(culprit)), '\n') + 1;
  EXPECT_THAT(fault.report, HasSubstr("kernel k"));
  EXPECT_THAT(fault.report, HasSubstr("PTX line " + std::to_string(line)));
  EXPECT_THAT(fault.report, HasSubstr(culprit));
  return fault;
}

// Only thread 17 of block 1 goes wrong.
constexpr const char* only_one = R"(setp.eq.u32 %p1, %r0, 17;
setp.eq.and.u32 %p1, %r1, 1, %p1;
)";

TEST(Faults, ALoadPastTheEndNamesBlockThreadAndRegion) {
  const Fault fault = planted(std::string(only_one) + "@%p1 ld.global.f32 %f1, [%rd0+132];", "ld.global.f32");
  EXPECT_EQ(fault.kind, FaultKind::illegal_address);
  EXPECT_THAT(fault.report, HasSubstr("block (1, 0, 0)"));
  EXPECT_THAT(fault.report, HasSubstr("thread (17, 0, 0)"));
  EXPECT_THAT(fault.report, HasSubstr("the values"));
}

TEST(Faults, AStoreBeforeTheBeginningIsFound) {
  const Fault fault = planted(std::string(only_one) + "@%p1 st.global.f32 [%rd0+-4], %f1;", "st.global.f32");
  EXPECT_EQ(fault.kind, FaultKind::illegal_address);
  EXPECT_THAT(fault.report, HasSubstr("thread (17, 0, 0)"));
}

TEST(Faults, AnAtomicOnNullIsFound) {
  const Fault fault = planted("mov.u64 %rd1, 0;\natom.global.add.u32 %r2, [%rd1], 1;", "atom.global.add.u32");
  EXPECT_EQ(fault.kind, FaultKind::illegal_address);
  EXPECT_THAT(fault.report, HasSubstr("null"));
}

TEST(Faults, AVectorLoadThatStraddlesTheEndIsFound) {
  const Fault fault = planted("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd0+128];", "ld.global.v4.f32");
  EXPECT_EQ(fault.kind, FaultKind::illegal_address);
}

TEST(Faults, AMisalignedVectorAccessIsFound) {
  const Fault load = planted("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd0+4];", "ld.global.v4.f32");
  EXPECT_EQ(load.kind, FaultKind::misaligned_address);
  EXPECT_THAT(load.report, HasSubstr("thread (0, 0, 0)"));
  const Fault store = planted("st.global.v2.f32 [%rd0+4], {%f1, %f2};", "st.global.v2.f32");
  EXPECT_EQ(store.kind, FaultKind::misaligned_address);
}

TEST(Faults, SharedMemoryEndsWhereItWasDeclaredTo) {
  const std::string body =
      ".shared .align 4 .b8 tile[128];\nmov.u32 %r2, tile;\nmad.lo.u32 %r2, %r0, 8, %r2;\n"
      "ld.shared.f32 %f1, [%r2];";
  const Fault fault = planted(body, "ld.shared.f32");
  EXPECT_EQ(fault.kind, FaultKind::illegal_address);
  EXPECT_THAT(fault.report, HasSubstr("thread (16, 0, 0)"));
}

TEST(Faults, ARunawayLoopMeetsTheInstructionLimit) {
  const Fault fault = planted("again:\nadd.u32 %r2, %r2, 1;\nbra again;", "again");
  EXPECT_EQ(fault.kind, FaultKind::timeout);
  EXPECT_THAT(fault.report, HasSubstr("1000000"));
}

TEST(Faults, ABarrierThatSomeWarpsNeverReachIsADeadlock) {
  // Half of the first warp waits at barrier 1, the rest at barrier 2: neither can be complete.
  const std::string body =
      "setp.lt.u32 %p1, %r0, 16;\n@%p1 bra left;\nbarrier.sync 2;\nbra done;\nleft:\nbarrier.sync 1;\ndone:";
  const Fault fault = planted(body, "barrier.sync 1");
  EXPECT_EQ(fault.kind, FaultKind::deadlock);
  EXPECT_THAT(fault.report, HasSubstr("block ("));
  EXPECT_THAT(fault.report, HasSubstr("barrier 2"));
  EXPECT_THAT(fault.report, HasSubstr("thread (16, 0, 0)"));
}

TEST(Faults, ATrapIsAnAssertion) {
  const Fault fault = planted(std::string(only_one) + "@%p1 trap;", "trap");
  EXPECT_EQ(fault.kind, FaultKind::assertion);
  EXPECT_THAT(fault.report, HasSubstr("thread (17, 0, 0)"));
}

TEST(Faults, WhatWasStoredBeforeAFaultStays) {
  Buffer<float> values(32, 1.0f);
  Module module(ptx_kernel(std::string(thread_address) +
                           "mov.f32 %f1, 0f40400000;\nst.global.f32 [%rd0], %f1;\nst.global.f32 [%rd0+128], %f1;"));
  module.allow(values);
  module.fault("k", {1}, {1}, Arguments(values.address(), uint64_t{0}, uint64_t{0}, uint64_t{0}));
  EXPECT_EQ(values[0], 3.0f);
}

}  // namespace
}  // namespace kiln::emulator::test::core_faults_test
