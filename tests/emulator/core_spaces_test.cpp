// Bounds and alignment in every state space and by every kind of access: each planted fault is found, and its report
// names the kernel, the block, the thread, the PTX line and the instruction. Addresses and special registers of
// threads.
#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "core_fixture.h"

namespace kiln::emulator::test::core_spaces_test {
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
        Planted{"WideVectorMisaligned",  // 32 bytes, aligned to 16 only
                "add.u64 %rd1, %rd0, 31;\nand.b64 %rd1, %rd1, -32;\nadd.u64 %rd1, %rd1, 16;\n"
                "ld.global.v8.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, [%rd1];",
                "ld.global.v8.f32", misaligned},
        Planted{"WideVectorOfWideElementsMisaligned",
                "add.u64 %rd1, %rd0, 31;\nand.b64 %rd1, %rd1, -32;\nadd.u64 %rd1, %rd1, 16;\n"
                "st.global.v4.f64 [%rd1], {%fd1, %fd2, %fd3, %fd4};",
                "st.global.v4.f64", misaligned},
        Planted{"LocalBelowTheBeginning",
                ".local .align 4 .b8 own[16];\nmov.u32 %r2, own;\nsub.u32 %r2, %r2, 4;\nst.local.u32 [%r2], %r0;",
                "st.local.u32", outside},
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

/// Words that the threads of one block of 32 store, given p1 = `word`.
std::vector<uint32_t> stored(const std::string& body, const std::string& before = "",
                             CheckLevel level = CheckLevel::full) {
  Module module(ptx_kernel("mov.u32 %r0, %tid.x;\nld.param.u64 %rd0, [p0];\n" + body +
                               "\nmul.wide.u32 %rd9, %r0, 4;\nadd.u64 %rd9, %rd0, %rd9;\nst.global.u32 [%rd9], %r9;",
                           ".param .u64 p0, .param .u64 p1", before));
  Buffer<uint32_t> out(32);
  module.allow(out).check(level);
  module.launch("k", {1}, {32}, Arguments(out.address(), out.address()));
  return out.values();
}

TEST(LocalAddresses, Of32BitsMayPassBelowZeroAndComeBack) {
  // As the sine of the device library does: a pointer before the array, and a displacement that leads into it.
  const std::string body =
      ".local .align 8 .b8 mine[32];\nmov.u32 %r1, mine;\nadd.u32 %r2, %r0, 100;\nst.local.u32 [%r1+20], %r2;\n"
      "sub.s32 %r3, %r1, 4;\nld.local.u32 %r9, [%r3+24];";
  for (const CheckLevel level : {CheckLevel::off, CheckLevel::bounds, CheckLevel::full}) {
    const std::vector<uint32_t> out = stored(body, "", level);
    for (uint32_t k = 0; k < 32; ++k) EXPECT_EQ(out[k], k + 100);
  }
}

TEST(GenericAddresses, LieInTheWindowsThatTheIsaNames) {
  // Bits: global, const, shared, shared::cluster, local, param.
  const std::string test =
      "mov.u32 %r9, 0;\n"
      "isspacep.global %p1, %rd1;\n@%p1 or.b32 %r9, %r9, 1;\n"
      "isspacep.const %p1, %rd1;\n@%p1 or.b32 %r9, %r9, 2;\n"
      "isspacep.shared::cta %p1, %rd1;\n@%p1 or.b32 %r9, %r9, 4;\n"
      "isspacep.shared::cluster %p1, %rd1;\n@%p1 or.b32 %r9, %r9, 8;\n"
      "isspacep.local %p1, %rd1;\n@%p1 or.b32 %r9, %r9, 16;\n"
      "isspacep.param::entry %p1, %rd1;\n@%p1 or.b32 %r9, %r9, 32;";
  const std::string variables = ".const .align 4 .b8 fixed[16];\n.global .align 4 .b8 moving[16];";
  const auto windows = [&](const std::string& address) { return stored(address + "\n" + test, variables)[7]; };
  EXPECT_EQ(windows("mov.u64 %rd1, %rd0;"), 1u) << "an allocation";
  EXPECT_EQ(windows("mov.u64 %rd1, moving;\ncvta.global.u64 %rd1, %rd1;"), 1u);
  EXPECT_EQ(windows("mov.u64 %rd1, fixed;\ncvta.const.u64 %rd1, %rd1;"), 2u);
  EXPECT_EQ(windows(".shared .align 4 .b8 tile[16];\nmov.u64 %rd1, tile;\ncvta.shared.u64 %rd1, %rd1;"), 4u + 8);
  EXPECT_EQ(windows(".local .align 4 .b8 own[16];\nmov.u64 %rd1, own;\ncvta.local.u64 %rd1, %rd1;"), 16u);
  // "isspacep.global returns 1 for Kernel Function Parameters as .param window is contained within the .global window."
  EXPECT_EQ(windows("mov.u64 %rd1, p1;\ncvta.param.u64 %rd1, %rd1;"), 1u + 32);
}

// The values of special registers in thread `thread` of block `block`, of a grid of 3 x 2 x 2 blocks of 5 x 3 x 4.
struct Place {
  Dim3 block, thread;
  uint32_t lane, warp;
};

constexpr uint32_t dynamic_bytes = 48;

const std::pair<const char*, std::function<uint32_t(const Place&)>> special_registers[] = {
    {"%tid.x", [](const Place& p) { return p.thread.x; }},
    {"%tid.y", [](const Place& p) { return p.thread.y; }},
    {"%tid.z", [](const Place& p) { return p.thread.z; }},
    {"%ntid.x", [](const Place&) { return 5U; }},
    {"%ntid.y", [](const Place&) { return 3U; }},
    {"%ntid.z", [](const Place&) { return 4U; }},
    {"%ctaid.x", [](const Place& p) { return p.block.x; }},
    {"%ctaid.y", [](const Place& p) { return p.block.y; }},
    {"%ctaid.z", [](const Place& p) { return p.block.z; }},
    {"%nctaid.x", [](const Place&) { return 3U; }},
    {"%nctaid.y", [](const Place&) { return 2U; }},
    {"%nctaid.z", [](const Place&) { return 2U; }},
    {"%clusterid.x", [](const Place& p) { return p.block.x; }},
    {"%clusterid.y", [](const Place& p) { return p.block.y; }},
    {"%clusterid.z", [](const Place& p) { return p.block.z; }},
    {"%nclusterid.x", [](const Place&) { return 3U; }},
    {"%nclusterid.y", [](const Place&) { return 2U; }},
    {"%nclusterid.z", [](const Place&) { return 2U; }},
    {"%cluster_ctaid.x", [](const Place&) { return 0U; }},
    {"%cluster_ctaid.y", [](const Place&) { return 0U; }},
    {"%cluster_ctaid.z", [](const Place&) { return 0U; }},
    {"%cluster_nctaid.x", [](const Place&) { return 1U; }},
    {"%cluster_nctaid.y", [](const Place&) { return 1U; }},
    {"%cluster_nctaid.z", [](const Place&) { return 1U; }},
    {"%cluster_ctarank", [](const Place&) { return 0U; }},
    {"%cluster_nctarank", [](const Place&) { return 1U; }},
    {"%laneid", [](const Place& p) { return p.lane; }},
    {"%warpid", [](const Place& p) { return p.warp; }},
    {"%nwarpid", [](const Place&) { return 2U; }},
    {"%lanemask_eq", [](const Place& p) { return 1U << p.lane; }},
    {"%lanemask_le", [](const Place& p) { return static_cast<uint32_t>((uint64_t{2} << p.lane) - 1); }},
    {"%lanemask_lt", [](const Place& p) { return (1U << p.lane) - 1; }},
    {"%lanemask_ge", [](const Place& p) { return ~((1U << p.lane) - 1); }},
    {"%lanemask_gt", [](const Place& p) { return static_cast<uint32_t>(~((uint64_t{2} << p.lane) - 1)); }},
    {"%dynamic_smem_size", [](const Place&) { return dynamic_bytes; }},
    {"%total_smem_size", [](const Place&) { return dynamic_bytes; }},
};

TEST(SpecialRegisters, SayWhereAThreadIs) {
  const Dim3 grid{3, 2, 2}, block{5, 3, 4};
  constexpr uint32_t threads = 60, blocks = 12;
  // A row of words for each thread: what the registers hold.
  std::string body =
      "mov.u32 %r0, %ctaid.z;\nmov.u32 %r1, %ctaid.y;\nmad.lo.u32 %r0, %r0, 2, %r1;\nmov.u32 %r1, %ctaid.x;\n"
      "mad.lo.u32 %r0, %r0, 3, %r1;\nmov.u32 %r1, %tid.z;\nmad.lo.u32 %r0, %r0, 4, %r1;\nmov.u32 %r1, %tid.y;\n"
      "mad.lo.u32 %r0, %r0, 3, %r1;\nmov.u32 %r1, %tid.x;\nmad.lo.u32 %r0, %r0, 5, %r1;\nld.param.u64 %rd0, [p0];\n"
      "mul.wide.u32 %rd1, %r0, " +
      std::to_string(4 * std::size(special_registers)) + ";\nadd.u64 %rd0, %rd0, %rd1;\n";
  size_t column = 0;
  for (const auto& [name, value] : special_registers) {
    body +=
        std::string("mov.u32 %r2, ") + name + ";\nst.global.u32 [%rd0+" + std::to_string(4 * column++) + "], %r2;\n";
  }
  Module module(ptx_kernel(body));
  Buffer<uint32_t> out(size_t{threads} * blocks * std::size(special_registers), 0xdeadU);
  module.allow(out);
  module.launch("k", grid, block, Arguments(out.address(), uint64_t{0}, uint64_t{0}, uint64_t{0}), dynamic_bytes);
  for (uint32_t row = 0; row < threads * blocks; ++row) {
    const uint32_t t = row % threads, b = row / threads;
    const Place place{{b % 3, b / 3 % 2, b / 6}, {t % 5, t / 5 % 3, t / 15}, t % 32, t / 32};
    column = 0;
    for (const auto& [name, value] : special_registers) {
      ASSERT_EQ(out[row * std::size(special_registers) + column++], value(place))
          << name << ", thread " << t << " of block " << b;
    }
  }
}

TEST(ClockRegisters, CountInstructionsAndNanoseconds) {
  Module module(ptx_kernel(
      "ld.param.u64 %rd0, [p0];\nmov.u64 %rd1, %clock64;\nst.global.u64 [%rd0], %rd1;\nmov.u32 %r1, %clock;\n"
      "st.global.u32 [%rd0+8], %r1;\nmov.u32 %r1, %clock_hi;\nst.global.u32 [%rd0+12], %r1;\n"
      "mov.u64 %rd1, %globaltimer;\nst.global.u64 [%rd0+16], %rd1;\nmov.u32 %r1, %globaltimer_lo;\n"
      "st.global.u32 [%rd0+24], %r1;\nmov.u32 %r1, %globaltimer_hi;\nst.global.u32 [%rd0+28], %r1;\n"
      "mov.u32 %r3, 0;\nagain:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 10;\n@%p1 bra again;\n"
      "mov.u64 %rd1, %clock64;\nst.global.u64 [%rd0+32], %rd1;"));
  Buffer<uint64_t> out(5, ~uint64_t{0});
  module.allow(out);
  const auto now = [] {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count());
  };
  const uint64_t before = now();
  module.launch("k", {1}, {1}, Arguments(out.address(), uint64_t{0}, uint64_t{0}, uint64_t{0}));
  const uint64_t after = now();
  EXPECT_LT(out[0], 100U) << "the kernel has just begun";
  EXPECT_GE(out[1], out[0]) << "two instructions later";
  EXPECT_LT(out[1], 100U) << "the upper half is 0";
  EXPECT_GE(out[4], out[0] + 30) << "after a loop of three instructions, ten times";
  EXPECT_LT(out[4], out[0] + 100);
  for (const size_t time : {size_t{2}, size_t{3}}) {  // the second in two halves
    EXPECT_GE(out[time], before);
    EXPECT_LE(out[time], after);
  }
}

TEST(Faults, AreNamedByTheirPlaceInThreeDimensions) {
  Module module(ptx_kernel(
      "mov.u32 %r0, %tid.x;\nsetp.eq.u32 %p1, %r0, 3;\nmov.u32 %r0, %tid.y;\nsetp.eq.and.u32 %p1, %r0, 1, %p1;\n"
      "mov.u32 %r0, %tid.z;\nsetp.eq.and.u32 %p1, %r0, 2, %p1;\nmov.u32 %r0, %ctaid.x;\n"
      "setp.eq.and.u32 %p1, %r0, 1, %p1;\nmov.u32 %r0, %ctaid.y;\nsetp.eq.and.u32 %p1, %r0, 2, %p1;\n"
      "mov.u32 %r0, %ctaid.z;\nsetp.eq.and.u32 %p1, %r0, 1, %p1;\nmov.u64 %rd0, 0;\n@%p1 ld.global.u32 %r1, [%rd0];"));
  const Fault fault =
      module.fault("k", {2, 3, 2}, {5, 3, 4}, Arguments(uint64_t{0}, uint64_t{0}, uint64_t{0}, uint64_t{0}));
  EXPECT_THAT(fault.report, HasSubstr("block (1, 2, 1)"));
  EXPECT_THAT(fault.report, HasSubstr("thread (3, 1, 2)"));
}

TEST(ModuleVariables, BeginWithAddressesAndSingleBytesOfThem) {
  // In words, whether two double words are equal.
  const auto differ = [](const std::string& one, const std::string& other) {
    return "ld.global.u64 %rd1, [" + one + "];\n" + other + "\nsub.u64 %rd1, %rd1, %rd2;\ncvt.u32.u64 %r9, %rd1;\n" +
           "shr.u64 %rd1, %rd1, 32;\ncvt.u32.u64 %r8, %rd1;\nor.b32 %r9, %r9, %r8;";
  };
  const auto bytes_of = [](const std::string& symbol) {
    std::string list;
    for (int byte = 0; byte < 8; ++byte) {
      list += (byte == 0 ? "0xFF" : ", 0xFF") + std::string(static_cast<size_t>(2 * byte), '0') + "(" + symbol + ")";
    }
    return ".global .align 8 .b8 parts[8] = {" + list + "};\n";
  };
  const std::string target = ".global .align 8 .u64 target[2] = {7, 9};\n";
  const std::string whole = target + ".global .align 8 .u64 whole = ";
  const std::string its_address = "mov.u64 %rd2, target;", behind = its_address + "\nadd.u64 %rd2, %rd2, 8;";
  EXPECT_EQ(stored(differ("whole", its_address), whole + "target;")[0], 0U);
  EXPECT_EQ(stored(differ("whole", behind), whole + "target+8;")[0], 0U);
  EXPECT_EQ(stored(differ("whole", behind), whole + "generic(target)+8;")[0], 0U);
  EXPECT_EQ(stored(differ("parts", its_address), target + bytes_of("target"))[0], 0U);
  EXPECT_EQ(stored(differ("parts", behind), target + bytes_of("target+8"))[0], 0U);
  EXPECT_EQ(stored(differ("parts", its_address), target + bytes_of("generic(target)"))[0], 0U);
  for (const char* mask : {"0", "0x7F", "0xFFFF", "0xFF0", "0x1FF"}) {
    const std::string wrong = target + ".global .b8 part[1] = {" + mask + "(target)};\n";
    EXPECT_THAT(load_error(ptx_kernel("ret;", "", wrong)), HasSubstr("an address mask must select one byte")) << mask;
  }
  EXPECT_THAT(load_error(ptx_kernel("ret;", "", target + ".global .u32 half = target;\n")),
              HasSubstr("an address needs 64 bits"));
  EXPECT_THAT(load_error(ptx_kernel("ret;", "", ".global .u64 none = nobody;\n")),
              HasSubstr("'nobody' in an initialiser is not a .global or .const variable"));
}

TEST(ModuleVariables, HaveTheAlignmentThatTheyAskFor) {
  const std::string before =
      ".global .align 4 .b8 small[4];\n.global .align 4096 .b8 large[16];\n"
      ".const .align 1024 .b8 fixed[16];";
  for (const char* name : {"large", "fixed"}) {
    const uint64_t alignment = name == std::string("large") ? 4096 : 1024;
    const std::vector<uint32_t> out =
        stored(std::string("mov.u64 %rd1, ") + name + ";\ncvt.u32.u64 %r9, %rd1;", before);
    EXPECT_EQ(out[0] % alignment, 0u) << name;
  }
}

}  // namespace
}  // namespace kiln::emulator::test::core_spaces_test
