// Bounds and alignment in every state space and by every kind of access: each planted fault is found, and its report
// names the kernel, the block, the thread, the PTX line and the instruction.
#include <algorithm>

#include "core_fixture.h"

namespace kiln::emulator::test {
namespace {

using testing::HasSubstr;

struct Planted {
  const char* name;
  const char* body;     // of a kernel with p0: an address of 32 floats, p1: the number 1000
  const char* culprit;  // the instruction at fault
  FaultKind kind;
  const char* before = "";  // module scope
};

class Spaces : public testing::TestWithParam<Planted> {};

TEST_P(Spaces, AFaultIsFoundAndNamed) {
  const Planted& planted = GetParam();
  // Only thread 5 of block 1 goes on to the fault.
  const std::string body = std::string(R"(ld.param.u64 %rd0, [p0];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
setp.eq.u32 %p1, %r0, 5;
setp.eq.and.u32 %p1, %r1, 1, %p1;
@!%p1 bra done;
ld.param.u64 %rd9, [p1];
cvt.u32.u64 %r9, %rd9;
)") + planted.body + "\ndone:";
  const std::string ptx =
      ptx_kernel(body, ".param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3", planted.before);
  Buffer<float> values(32, 1.0f);
  Module module(ptx);
  module.allow(values, "the values");
  const Fault fault =
      module.fault("k", {2}, {32}, Arguments(values.address(), uint64_t{1000}, uint64_t{0}, uint64_t{0}));
  const auto line = std::count(ptx.begin(), ptx.begin() + static_cast<ptrdiff_t>(ptx.find(planted.culprit)), '\n') + 1;
  EXPECT_EQ(fault.kind, planted.kind) << fault.report;
  EXPECT_THAT(fault.report, HasSubstr("kernel k"));
  EXPECT_THAT(fault.report, HasSubstr("block (1, 0, 0)"));
  EXPECT_THAT(fault.report, HasSubstr("thread (5, 0, 0)"));
  EXPECT_THAT(fault.report, HasSubstr("PTX line " + std::to_string(line)));
  EXPECT_THAT(fault.report, HasSubstr(planted.culprit));
}

constexpr FaultKind outside = FaultKind::illegal_address, misaligned = FaultKind::misaligned_address;

INSTANTIATE_TEST_SUITE_P(
    Planted, Spaces,
    testing::Values(
        Planted{
            "LocalLoadOutside",
            ".local .align 4 .b8 own[16];\nmov.u64 %rd1, own;\nadd.u64 %rd1, %rd1, %rd9;\nld.local.u32 %r2, [%rd1];",
            "ld.local.u32", outside},
        Planted{
            "LocalStoreOutside",
            ".local .align 4 .b8 own[16];\nmov.u64 %rd1, own;\nadd.u64 %rd1, %rd1, %rd9;\nst.local.u32 [%rd1], %r0;",
            "st.local.u32", outside},
        Planted{"LocalMisaligned",
                ".local .align 4 .b8 own[16];\nmov.u64 %rd1, own;\nadd.u64 %rd1, %rd1, 1;\nst.local.u32 [%rd1], %r0;",
                "st.local.u32", misaligned},
        Planted{"ConstantOutside", "mov.u64 %rd1, fixed;\nadd.u64 %rd1, %rd1, %rd9;\nld.const.u32 %r2, [%rd1];",
                "ld.const.u32", outside, ".const .align 4 .b8 fixed[16];"},
        Planted{"ConstantMisaligned", "mov.u64 %rd1, fixed;\nadd.u64 %rd1, %rd1, 2;\nld.const.u32 %r2, [%rd1];",
                "ld.const.u32", misaligned, ".const .align 4 .b8 fixed[16];"},
        Planted{"ParameterOutside", "mov.u64 %rd1, p1;\nadd.u64 %rd1, %rd1, %rd9;\nld.param.u32 %r2, [%rd1];",
                "ld.param.u32", outside},
        Planted{"SharedStoreOutside",
                ".shared .align 4 .b8 tile[16];\nmov.u32 %r2, tile;\nadd.u32 %r2, %r2, %r9;\nst.shared.u32 [%r2], %r0;",
                "st.shared.u32", outside},
        Planted{"SharedLoadBefore",
                ".shared .align 4 .b8 tile[16];\nmov.u32 %r2, tile;\nsub.u32 %r2, %r2, 4;\nld.shared.u32 %r3, [%r2];",
                "ld.shared.u32", outside},
        Planted{"SharedMisaligned",
                ".shared .align 4 .b8 tile[16];\nmov.u32 %r2, tile;\nadd.u32 %r2, %r2, 2;\nld.shared.u32 %r3, [%r2];",
                "ld.shared.u32", misaligned},
        Planted{"SharedVectorMisaligned",
                ".shared .align 16 .b8 tile[64];\nmov.u32 %r2, tile;\nadd.u32 %r2, %r2, 8;\n"
                "ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r2];",
                "ld.shared.v4.f32", misaligned},
        Planted{"SharedAtomicOutside",
                ".shared .align 4 .b8 tile[16];\nmov.u32 %r2, tile;\nadd.u32 %r2, %r2, %r9;\n"
                "atom.shared.add.u32 %r3, [%r2], 1;",
                "atom.shared.add.u32", outside},
        Planted{"GlobalAtomicMisaligned", "add.u64 %rd1, %rd0, 2;\natom.global.add.u32 %r2, [%rd1], 1;",
                "atom.global.add.u32", misaligned},
        Planted{"GlobalReductionOutside", "add.u64 %rd1, %rd0, %rd9;\nred.global.add.f32 [%rd1], 0f3f800000;",
                "red.global.add.f32", outside},
        Planted{"GlobalByteOutside", "ld.global.u8 %r2, [%rd0+128];", "ld.global.u8", outside},
        Planted{"GenericOutside", "add.u64 %rd1, %rd0, %rd9;\nld.u32 %r2, [%rd1];", "ld.u32", outside},
        Planted{"GenericIntoSharedOutside",
                ".shared .align 4 .b8 tile[16];\nmov.u64 %rd1, tile;\ncvta.shared.u64 %rd1, %rd1;\n"
                "add.u64 %rd1, %rd1, %rd9;\nld.u32 %r2, [%rd1];",
                "ld.u32", outside},
        Planted{"AsynchronousCopyReadsOutside",
                ".shared .align 16 .b8 tile[16];\nmov.u32 %r2, tile;\nadd.u64 %rd1, %rd0, 1008;\n"
                "cp.async.ca.shared.global [%r2], [%rd1], 16;\ncp.async.commit_group;\ncp.async.wait_group 0;",
                "cp.async.ca.shared.global", outside},
        Planted{"AsynchronousCopyWritesOutside",
                ".shared .align 16 .b8 tile[16];\nmov.u32 %r2, tile;\nadd.u32 %r2, %r2, 16;\n"
                "cp.async.ca.shared.global [%r2], [%rd0], 16;\ncp.async.commit_group;\ncp.async.wait_group 0;",
                "cp.async.ca.shared.global", outside},
        Planted{"AsynchronousCopyMisaligned",
                ".shared .align 16 .b8 tile[64];\nmov.u32 %r2, tile;\nadd.u64 %rd1, %rd0, 4;\n"
                "cp.async.ca.shared.global [%r2], [%rd1], 16;\ncp.async.commit_group;\ncp.async.wait_group 0;",
                "cp.async.ca.shared.global", misaligned}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace kiln::emulator::test
