// Counters of hand-written kernels, worked out on paper.
#include "core_fixture.h"

namespace kiln::emulator::test::core_counters_test {
namespace {

constexpr const char* thread_in_grid =
    "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmad.lo.u32 %r3, %r1, %r2, %r0;\n"
    "ld.param.u64 %rd0, [p0];\n";

class Counted {
 public:
  explicit Counted(const std::string& body, size_t elements = 4096) : module_(ptx_kernel(body)), memory_(elements) {
    module_.allow(memory_);
  }
  Counters run(Dim3 grid, Dim3 block) {
    return module_.launch("k", grid, block, Arguments(memory_.address(), uint64_t{0}, uint64_t{0}, uint64_t{0}));
  }

 private:
  Module module_;
  Buffer<float> memory_;
};

TEST(Counters, EveryInstructionOfAStraightKernelIsCountedOnceAWarp) {
  Counted kernel(std::string(thread_in_grid) +
                 "mul.wide.u32 %rd1, %r3, 4;\nadd.u64 %rd2, %rd0, %rd1;\nld.global.f32 %f1, [%rd2];\n"
                 "fma.rn.f32 %f2, %f1, %f1, %f1;\nex2.approx.f32 %f3, %f2;\ncvt.rn.f16.f32 %h1, %f3;\n"
                 "cvt.f32.f16 %f4, %h1;\nadd.rn.f16 %h1, %h1, %h1;\nadd.f64 %fd1, %fd1, %fd1;\n"
                 "shfl.sync.idx.b32 %r4, %r3, 0, 31, -1;\nbar.sync 0;\nst.global.f32 [%rd2], %f4;");
  const Counters c = kernel.run({3}, {64});  // 6 warps
  EXPECT_EQ(c.integer, 6u * 6) << "three moves, mad, mul, add";
  EXPECT_EQ(c.constant_access, 6u) << "the parameter";
  EXPECT_EQ(c.global_load, 6u);
  EXPECT_EQ(c.global_store, 6u);
  EXPECT_EQ(c.fma_f32, 6u);
  EXPECT_EQ(c.fma_f16, 6u);
  EXPECT_EQ(c.fma_f64, 6u);
  EXPECT_EQ(c.special, 6u);
  EXPECT_EQ(c.conversion, 12u);
  EXPECT_EQ(c.warp_exchange, 6u);
  EXPECT_EQ(c.barriers, 6u);
  EXPECT_EQ(c.control, 12u) << "the barrier and ret";
  EXPECT_EQ(c.issued, 6u * 18);
  uint64_t sum = 0;
  for (uint64_t Counters::*const count : class_counters) sum += c.*count;
  EXPECT_EQ(sum, c.issued);
  EXPECT_EQ(c.active_lanes, 32u * c.issued);
  EXPECT_EQ(c.blocks_total, 3u);
  EXPECT_EQ(c.blocks_counted, 3u);
}

TEST(Counters, LoopsAndDivergenceCountWhatIsIssuedAndForHowManyLanes) {
  // Lane l adds l % 4 times: the warp goes round three times more, with 24, 16 and 8 lanes in the body.
  Counted kernel(
      "mov.u32 %r0, %tid.x;\nand.b32 %r1, %r0, 3;\nmov.u32 %r2, 0;\nloop:\nsetp.ge.u32 %p1, %r2, %r1;\n@%p1 bra done;\n"
      "add.u32 %r2, %r2, 1;\nmul.lo.u32 %r3, %r2, %r2;\nbra loop;\ndone:");
  const Counters c = kernel.run({1}, {32});
  EXPECT_EQ(c.integer, 3u + 4 + 2 * 3) << "before the loop; four comparisons; three times the body";
  EXPECT_EQ(c.control, 4u + 3 + 1) << "branches out, branches back, ret";
  EXPECT_EQ(c.active_lanes, 32u * 3 + (32 + 24 + 16 + 8) * 2 + (24 + 16 + 8) * 3 + 32);
}

TEST(Counters, GuardedInstructionsAreIssuedThoughNoLaneTakesPart) {
  Counted kernel(
      "mov.u32 %r0, %tid.x;\nsetp.gt.u32 %p1, %r0, 99;\nld.param.u64 %rd0, [p0];\n"
      "@%p1 ld.global.f32 %f1, [%rd0];\n@!%p1 add.f32 %f2, %f2, %f2;");
  const Counters c = kernel.run({1}, {32});
  EXPECT_EQ(c.global_load, 1u);
  EXPECT_EQ(c.global_sectors, 0u);
  EXPECT_EQ(c.fma_f32, 1u);
}

TEST(Counters, SectorsFollowTheAddresses) {
  struct Case {
    const char* stride;  ///< bytes between lanes
    uint64_t sectors;
  };
  for (const Case& c : {Case{"0", 1}, Case{"4", 4}, Case{"8", 8}, Case{"32", 32}, Case{"128", 32}}) {
    Counted kernel(std::string("ld.param.u64 %rd0, [p0];\nadd.u64 %rd0, %rd0, 31;\nand.b64 %rd0, %rd0, -32;\n") +
                   "mov.u32 %r0, %tid.x;\nmul.wide.u32 %rd1, %r0, " + c.stride +
                   ";\nadd.u64 %rd2, %rd0, %rd1;\nld.global.f32 %f1, [%rd2];\nld.global.f32 %f2, [%rd2];\n"
                   "st.global.f32 [%rd2], %f1;");
    const Counters counted = kernel.run({1}, {32});
    EXPECT_EQ(counted.global_sectors, 3 * c.sectors) << c.stride;
    EXPECT_EQ(counted.unique_load_sectors, c.sectors) << c.stride;
    EXPECT_EQ(counted.unique_store_sectors, c.sectors) << c.stride;
    EXPECT_EQ(counted.block_sectors, 2 * c.sectors) << "read and written: " << c.stride;
  }
}

TEST(Counters, BankConflictsTakeOnePassForEachWordOfTheWorstBank) {
  struct Case {
    const char* instruction;
    const char* stride;
    uint64_t passes;
  };
  for (const Case& c :
       {Case{"ld.shared.f32 %f1", "0", 1}, Case{"ld.shared.f32 %f1", "4", 1}, Case{"ld.shared.f32 %f1", "8", 2},
        Case{"ld.shared.f32 %f1", "12", 1}, Case{"ld.shared.f32 %f1", "64", 16}, Case{"ld.shared.f32 %f1", "128", 32},
        Case{"ld.shared.v2.f32 {%f1, %f2}", "8", 2}, Case{"ld.shared.v4.f32 {%f1, %f2, %f3, %f4}", "16", 4},
        Case{"ld.shared.v4.f32 {%f1, %f2, %f3, %f4}", "0", 4}}) {
    Counted kernel(std::string(".shared .align 16 .b8 tile[8192];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, tile;\n") +
                   "mad.lo.u32 %r2, %r0, " + c.stride + ", %r1;\n" + c.instruction + ", [%r2];");
    const Counters counted = kernel.run({1}, {32});
    EXPECT_EQ(counted.shared_load, 1u);
    EXPECT_EQ(counted.shared_wavefronts, c.passes) << c.instruction << " with stride " << c.stride;
  }
}

TEST(Counters, ConstantsAndParametersHaveNothingToDoWithGlobalMemory) {
  // 100 blocks of which 64 are counted; nothing but constants and parameters, however they are addressed, and generic
  // accesses to shared and local memory.
  const std::string body = R"(.shared .align 16 .b8 tile[128];
.local .align 4 .b8 own[8];
mov.u64 %rd1, fixed;
ld.const.u32 %r1, [%rd1];
mov.u64 %rd2, p1;
ld.param.u32 %r2, [%rd2+4];
mov.u32 %r0, %tid.x;
mul.wide.u32 %rd3, %r0, 4;
mov.u64 %rd4, tile;
cvta.shared.u64 %rd4, %rd4;
add.u64 %rd4, %rd4, %rd3;
st.u32 [%rd4], %r1;
mov.u64 %rd5, own;
cvta.local.u64 %rd5, %rd5;
st.u32 [%rd5], %r1;)";
  Module module(ptx_kernel(body, ".param .u64 p0, .param .u64 p1", ".const .align 4 .b8 fixed[16] = {1, 2};"));
  const Counters c = module.launch("k", {100}, {32}, Arguments(uint64_t{0}, uint64_t{0}));
  EXPECT_EQ(c.constant_access, 200u);
  EXPECT_EQ(c.global_store, 200u) << "what they are by their text";
  EXPECT_EQ(c.global_sectors, 0u);
  EXPECT_EQ(c.block_sectors, 0u);
  EXPECT_EQ(c.unique_load_sectors, 0u);
  EXPECT_EQ(c.unique_store_sectors, 0u);
  EXPECT_EQ(c.shared_wavefronts, 100u) << "scaled with the generic accesses";
}

TEST(Counters, ConstantsDoNotScaleWhatGlobalMemoryDid) {
  // Every block counted does the same: a load of a constant beside one of global memory.
  const std::string body = std::string(thread_in_grid) +
                           "mov.u64 %rd1, fixed;\nld.const.u32 %r1, [%rd1];\nld.const.u32 %r1, [%rd1+4];\n"
                           "mul.wide.u32 %rd2, %r3, 4;\nadd.u64 %rd0, %rd0, 31;\nand.b64 %rd0, %rd0, -32;\n"
                           "add.u64 %rd2, %rd0, %rd2;\nld.global.f32 %f1, [%rd2];";
  Module module(ptx_kernel(body, ".param .u64 p0", ".const .align 4 .b8 fixed[16] = {1, 2};"));
  Buffer<float> memory(100 * 32 + 8);
  module.allow(memory);
  EXPECT_EQ(module.launch("k", {100}, {32}, Arguments(memory.address())).global_sectors, 400u);
  EXPECT_EQ(module.launch("k", {10}, {32}, Arguments(memory.address())).global_sectors, 40u) << "all blocks counted";
}

TEST(Counters, SampledBlocksScaleToAllOfThem) {
  Counted kernel(std::string(thread_in_grid) +
                     "mul.wide.u32 %rd1, %r3, 4;\nadd.u64 %rd0, %rd0, 31;\nand.b64 %rd0, %rd0, -32;\n"
                     "add.u64 %rd2, %rd0, %rd1;\nld.global.f32 %f1, [%rd2];",
                 100 * 32 + 8);
  const Counters c = kernel.run({100}, {32});
  EXPECT_EQ(c.blocks_counted, 64u);
  EXPECT_EQ(c.global_load, 100u) << "exact, whatever is sampled";
  EXPECT_EQ(c.global_sectors, 400u);
  EXPECT_EQ(c.block_sectors, 400u);
  EXPECT_NEAR(static_cast<double>(c.unique_load_sectors), 400, 10);
}

}  // namespace
}  // namespace kiln::emulator::test::core_counters_test
