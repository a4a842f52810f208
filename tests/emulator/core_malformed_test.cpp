// PTX that cannot be executed is refused when it is loaded, with the line and what is wrong there.
#include <algorithm>

#include "core_fixture.h"

namespace kiln::emulator::test::core_malformed_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Loads a kernel with `line` in its body; the message must name that line of the module and contain `reason`.
void expect_refused(const std::string& line, const std::string& reason) {
  const std::string ptx = ptx_kernel("mov.u32 %r0, %tid.x;\n" + line + "\nmov.u32 %r1, 0;");
  const auto at = static_cast<std::ptrdiff_t>(ptx.find(line));
  const auto number = std::count(ptx.begin(), ptx.begin() + at, '\n') + 1;
  EXPECT_THAT(load_error(ptx), AllOf(HasSubstr("PTX line " + std::to_string(number) + ":"), HasSubstr(reason))) << line;
}

TEST(MalformedPtx, UnknownInstructionsAndFormsAreNamed) {
  expect_refused("frobnicate.u32 %r1, %r0;", "frobnicate");
  expect_refused("add.q32 %r1, %r0, %r0;", "q32");
  expect_refused("add.u32.wide %r1, %r0, %r0;", "wide");
  expect_refused("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0}, {%r0}, {%r1}, {%f1};", "mma");
  expect_refused("shfl.bfly.b32 %r1, %r0, 1, 31;", ".sync");
  expect_refused("sin.f32 %f1, %f2;", ".approx");
  expect_refused("cvt.s32.f32 %r1, %f1;", "rni");
  expect_refused("add.f32x4 %f1, %f2, %f3;", "f32x4");
}

TEST(MalformedPtx, AnInstructionOfAnotherKindOfDeviceIsNamedWhateverItsOperandsLookLike) {
  for (const std::string line :
       {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], "
        "[%rd1, {%r2, %r3}], [%r4], %h1;",
        "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;",
        "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];",
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%rd1, {%r2}], [%r1];",
        "st.async.weak.shared::cluster.b32 [%r1], %r2, [%r3];",
        "multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, %p1, 1, 1, 0, 0;",
        "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", "fabric.submit.op_restrict::fetching;",
        "unheard.of::9z {%r1, <%r2>};"}) {
    expect_refused(line, line.substr(0, line.find_first_of(" ;")));
  }
}

TEST(MalformedPtx, FencesMeanWhatTheirWordsSay) {
  expect_refused("fence;", "expected .cta, .cluster, .gpu or .sys");
  expect_refused("fence.acq_rel;", "expected .cta, .cluster, .gpu or .sys");
  expect_refused("fence.acq_rel.gpu.sys;", "sys");
  expect_refused("fence.seq_cst.gpu;", "seq_cst");
  expect_refused("fence.proxy.asink;", "proxy");
  expect_refused("fence.proxy.tensormap::generic.acquire.gpu [%rd1], 64;", "expected 128");
  expect_refused("fence.proxy.tensormap::generic.gpu;", ".release or .acquire");
  expect_refused("fence.proxy.async.local;", ".global or .shared");
  expect_refused("fence.acquire.sync_restrict::shared::cluster.cluster;", "sync_restrict");
  expect_refused("fence.mbarrier_init.acquire.cluster;", "mbarrier_init");
  expect_refused("membar.gpu;", "expected .cta, .gl or .sys");
  expect_refused("fence.acq_rel.gpu %r1;", "operands");
}

TEST(MalformedPtx, MbarriersAndCopiesInBulkAreWordedAsTheIsaSays) {
  expect_refused("mbarrier.init.shared.b32 [%r1], 1;", "expected .b64");
  expect_refused("mbarrier.init.global.b64 [%rd1], 1;", "state space");
  expect_refused("mbarrier.open.shared.b64 [%r1];", "not known");
  expect_refused("mbarrier.arrive.release.gpu.shared.b64 %rd1, [%r1];", ".cta or .cluster");
  expect_refused("mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1];", "operands");
  expect_refused("mbarrier.try_wait.parity.shared.b64 %r2, [%r1], %r3;", "predicate");
  expect_refused("mbarrier.try_wait.shared.b64 %p1, [%r1], %r3;", "%r3");
  expect_refused("mbarrier.test_wait.shared.b64 %p1, [%r1], %rd3, %r4;", "operands");
  const std::string to = "cp.async.bulk.shared::cluster.global";
  expect_refused(to + " [%r1], [%rd1], 16, [%r2];", "mbarrier::complete_tx::bytes");
  expect_refused(to + ".mbarrier::complete_tx::bytes [%r1], [%rd1], 16;", "operands");
  expect_refused("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r3], 16, [%r2];",
                 "between .shared and .global");
  expect_refused("cp.async.bulk.global.shared::cta.mbarrier::complete_tx::bytes [%rd1], [%r1], 16;", ".bulk_group");
  const std::string box = "cp.async.bulk.tensor.2d.shared::cta.global";
  expect_refused(box + ".mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];", "2 coordinates");
  expect_refused(box + ".mbarrier::complete_tx::bytes [%r1], [%rd1], [%r3];", "2 coordinates");
  expect_refused(box + ".im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r4}], [%r3];", "im2col");
  expect_refused("cp.async.bulk.tensor.6d.global.shared::cta.bulk_group [%rd1, {%r2}], [%r3];", ".1d to .5d");
  expect_refused("cp.async.bulk.wait_group -1;", "number of groups");
  expect_refused("cp.async.bulk.wait_all;", "wait_all");
}

TEST(MalformedPtx, HintsAreReadThoughTheyChangeNothing) {
  expect_refused("prefetch.global.L3 [%rd1];", ".L1 or .L2");
  expect_refused("prefetch.shared.L1 [%r1];", "state space");
  expect_refused("prefetch.L2::evict_last [%rd1];", ".global");
  expect_refused("prefetch.global.L1 [%rd99];", "%rd99");
  expect_refused("prefetchu.L2 [%rd1];", ".L1");
  expect_refused("discard.global.L2 [%rd1], 64;", "expected 128");
  expect_refused("applypriority.global.L2::evict_last [%rd1], 128;", "L2::evict_normal");
  expect_refused("createpolicy.fractional.L2::evict_soon.b64 %rd1;", "eviction priority");
  expect_refused("createpolicy.fractional.L2::evict_first.b64 %r1;", "%r1");
  expect_refused("createpolicy.range.L2::evict_first.b64 %rd1, [%rd2], 128;", "operands");
  expect_refused("setmaxnreg.inc.sync.aligned.u32 20;", "multiple of 8");
  expect_refused("setmaxnreg.grow.sync.aligned.u32 24;", ".inc or .dec");
  expect_refused("griddepcontrol.start;", "launch_dependents");
  expect_refused("pmevent %r1;", "literal");
  expect_refused("nanosleep.u32 %r99;", "%r99");
  expect_refused("nanosleep.b32 1;", ".u32");
  expect_refused("ld.global.L2::96B.u32 %r1, [%rd1];", "L2::96B");
  expect_refused("ld.global.L1::forget.u32 %r1, [%rd1];", "L1::forget");
}

TEST(Hints, AreTakenInEveryFormOfTheIsa) {
  load_program(ptx_kernel(R"(ld.param.u64 %rd0, [p0];
ld.global.L2::64B.u32 %r1, [%rd0];
ld.global.nc.L1::no_allocate.L2::evict_last.L2::128B.v2.u32 {%r1, %r2}, [%rd0];
ld.global.L1::evict_last.L2::cache_hint.L2::256B.u32 %r1, [%rd0], %rd1;
.shared .align 16 .b8 tile[16];
mov.u32 %r3, tile;
cp.async.ca.shared.global.L2::128B [%r3], [%rd0], 16;
cp.async.cg.shared::cta.global.L2::cache_hint.L2::256B [%r3], [%rd0], 16, 8, %rd1;
prefetch.global.L1 [%rd0];
prefetch.L2 [%rd0+64];
prefetch.local.L1 [%rd0];
prefetch.global.L2::evict_normal [%rd0];
prefetch.param.tensormap [%rd0];
prefetchu.L1 [%rd0];
discard.global.L2 [%rd0], 128;
applypriority.L2::evict_normal [%rd0], 128;
createpolicy.fractional.L2::evict_last.b64 %rd1;
createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %rd1, 0.5;
createpolicy.fractional.L2::evict_first.b64 %rd1, %f1;
createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %rd1, [%rd0], 0x100, %r1;
createpolicy.cvt.L2.b64 %rd1, %rd2;
setmaxnreg.dec.sync.aligned.u32 40;
griddepcontrol.wait;
griddepcontrol.launch_dependents;
pmevent 7;
pmevent.mask 3;
fence.proxy.alias;
fence.proxy.async;
fence.proxy.async.shared::cta;
fence.proxy.async.global;
fence.proxy.tensormap::generic.release.gpu;
fence.proxy.tensormap::generic.acquire.gpu [%rd0], 128;
cp.async.bulk.prefetch.L2.global [%rd0], %r1;
cp.async.bulk.prefetch.L2.global.L2::cache_hint [%rd0], 64, %rd1;
cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd0, {%r1, %r2}];
fence.mbarrier_init.release.cluster;
membar.proxy.alias;
fence.sc.cluster;
fence.gpu;
nanosleep.u32 %r1;)"));
}

TEST(MalformedPtx, WrongOperandsAreRefused) {
  expect_refused("add.u32 %r1, %r0;", "operand");
  expect_refused("add.u32 %r1, %r0, %r0, %r0;", "operand");
  expect_refused("add.u32 %r1, %r99, 1;", "%r99");
  expect_refused("add.u32 %r1, %rd1, 1;", "%rd1");
  expect_refused("add.u64 %r1, %rd1, 1;", "%r1");
  expect_refused("setp.eq.u32 %r1, %r0, 1;", "predicate");
  expect_refused("ld.global.v2.u32 %r1, [%rd0];", "vector");
  expect_refused("ld.global.v2.u32 {%r1, %r2, %r3}, [%rd0];", "vector");
  expect_refused("ld.global.u64 %r1, [%rd0];", "narrower");
  expect_refused("ld.param.u64 %rd1, [nowhere];", "nowhere");
  expect_refused("ld.param.u64 %rd1, [p3+8];", "beyond the kernel's parameters");
  expect_refused("st.param.u64 [p0], %rd1;", "cannot be written");
  expect_refused("cp.async.ca.shared.global [%r1], [%rd1], 12;", "4, 8 or 16");
  expect_refused("atom.local.add.u32 %r1, [%r0], 1;", "global and shared");
}

TEST(MalformedPtx, ControlFlowMustLeadSomewhere) {
  expect_refused("bra elsewhere;", "elsewhere");
  expect_refused("call unknown;", "unknown");
  expect_refused("@%p99 mov.u32 %r1, 0;", "%p99");
  expect_refused("@%r0 mov.u32 %r1, 0;", "%r0");
  expect_refused("brx.idx %r0, table;", "table");
}

TEST(MalformedPtx, TextThatDoesNotParseNamesItsLine) {
  expect_refused("add.u32 %r1, %r0, ;", "");
  expect_refused("add.u32 %r1 %r0, 1;", "");
  expect_refused("ld.global.u32 %r1, [%rd0;", "");
  expect_refused("mov.f32 %f1, 0fZZ;", "");
  expect_refused(".reg .b31 %q<4>;", "");
  expect_refused("mov.u32 %r1, \"text\";", "");
}

TEST(MalformedPtx, NumbersThatNoMachineHasAreRefusedBeforeAnythingIsComputedOfThem) {
  expect_refused(".local .align 4 .b8 stack[4294967296][4294967296][2];", "'stack' has more than 4294967296 bytes");
  expect_refused(".shared .b64 tile[4294967296];", "'tile' has more than 4294967296 bytes");
  expect_refused(".local .b8 a[4294967296];", "the function's variables have 4294967296 bytes");
  expect_refused(".local .align 3 .b8 a[16];", "the alignment 3 is no power of two");
  expect_refused(".local .align 4294967300 .b8 a[16];", "the alignment is 4294967300");
  expect_refused(".reg .b32 %many<4294967295>;", "the number of registers is 4294967295, expected at most 1048576");
}

TEST(MalformedPtx, NumbersOfModulesAndFunctionsHaveTheirLimitsToo) {
  const std::string head = ".version 8.0\n.target sm_90\n.address_size 64\n";
  EXPECT_THAT(load_error(head + ".global .b8 a[2305843009213693952][8] = {1};"), HasSubstr("an array extent is"));
  EXPECT_THAT(load_error(head + ".global .b8 a[4294967000];\n.global .b8 b[4294967000];"),
              HasSubstr("PTX line 5: with 'b' the module's variables"));
  EXPECT_THAT(load_error(head + ".visible .entry k(.param .b8 p[30000], .param .b8 q[30000])\n{ ret; }"),
              HasSubstr("with 'q' the parameters of 'k' have more than"));
  EXPECT_THAT(load_error(head + ".visible .entry k()\n.maxntid 65536, 65536, 1\n{ ret; }"),
              HasSubstr("extents whose product is at most 2147483647"));
  EXPECT_THAT(load_error(head + ".visible .entry k()\n.reqntid 4294967297, 1, 1\n{ ret; }"),
              HasSubstr("an extent is 4294967297"));
}

// A parser that calls itself for each of them would leave its stack.
TEST(MalformedPtx, NestingHasAnEnd) {
  constexpr size_t deep = 1'000'000;
  const auto nested = [](const std::string& open, const std::string& inside, const std::string& close) {
    std::string text;
    for (size_t i = 0; i < deep; ++i) text += open;
    text += inside;
    for (size_t i = 0; i < deep; ++i) text += close;
    return text;
  };
  const std::string reason = "500 deep at most";
  expect_refused(nested("{", "", "}"), reason);
  expect_refused("mov.b32 %r1, " + nested("{", "%r0", "}") + ";", reason);
  expect_refused("call (%r1), f, " + nested("(", "%r0", ")") + ";", reason);
  expect_refused("mov.b32 %r1, " + nested("[%r0, ", "%r0", "]") + ";", reason);
  expect_refused("mov.b32 %r1, " + nested("%r0|", "%r0", "") + ";", reason);
  EXPECT_THAT(
      load_error(".version 8.0\n.target sm_90\n.address_size 64\n.global .b32 a[] = " + nested("{", "1", "}") + ";"),
      HasSubstr(reason));
}

TEST(MalformedPtx, ModulesThatEndTooEarlyAreRefused) {
  const std::string whole = ptx_kernel("mov.u32 %r0, %tid.x;");
  for (size_t length = 60; length + 2 < whole.size(); length += 3) {
    try {
      load_program(whole.substr(0, length));
    } catch (const LoadError& error) {
      EXPECT_GT(error.line(), 0u);
      continue;
    }
    // The rest may be a whole module that merely lacks its kernel's body.
    EXPECT_EQ(whole.substr(0, length).find('{'), std::string::npos) << whole.substr(0, length);
  }
}

TEST(MalformedPtx, DamagedTextNeverCrashes) {
  const std::string whole = ptx_kernel(
      ".shared .align 4 .b8 tile[128];\nmov.u32 %r0, %tid.x;\nagain:\nld.global.v2.f32 {%f1, %f2}, [%rd0+8];\n"
      "fma.rn.f32 %f3, %f1, %f2, 0f3F800000;\nsetp.lt.f32 %p1, %f3, %f1;\n@%p1 bra again;\nst.shared.f32 [tile], %f3;");
  size_t refused = 0, loaded = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char c : {' ', ';', '{', '9', '.', '%', '\0', '\xFF'}) {
      std::string damaged = whole;
      damaged[at] = c;
      try {
        load_program(damaged);
        ++loaded;
      } catch (const LoadError& error) {
        EXPECT_GT(error.line(), 0u) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, loaded) << "most damage is noticed";
}

}  // namespace
}  // namespace kiln::emulator::test::core_malformed_test
