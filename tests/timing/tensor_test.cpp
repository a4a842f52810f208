// Tensor instructions and asynchronous copies, in code that NVRTC writes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"
#include "kiln/timing/time_model.h"
#include "machine_code_texts.h"

namespace kiln::timing::tensor_test {
namespace {

constexpr uint32_t turns = 16;

struct Rate {
  const char* card;
  const char* arch;
  const char* shape;
  double cycles;  // of a scheduler for one instruction, with enough warps
  uint32_t latency;
};

class TensorRate : public testing::TestWithParam<Rate> {
 protected:
  // Cycles of one SM that a warp's products take longer if there are twice as many, for each of them.
  std::optional<double> cycles(uint32_t chains, uint32_t length, uint32_t warps) {
    const Rate& rate = GetParam();
    double sums[2];
    for (const uint32_t longer : {0, 1}) {
      const auto compiled =
          compile("tensor_rate.cu", rate.arch,
                  {fmt::format("-DCHAINS={}", chains), fmt::format("-DLENGTH={}", length),
                   fmt::format("-DTURNS={}", turns << longer), fmt::format("-DSHAPE=\"{}\"", rate.shape)});
      if (!compiled) return {};
      Launch launch;
      launch.block = {32 * warps, 1, 1};
      launch.parameters = std::string(8, '\0');
      const ModelledTime time = model_time(compiled->sass, compiled->facts, launch, find_card(rate.card));
      EXPECT_THAT(time.unclassified, testing::IsEmpty());
      EXPECT_THAT(time.report.unknown_opcodes, testing::IsEmpty());
      sums[longer] = static_cast<double>(time.replayed.cycles);
    }
    return (sums[1] - sums[0]) / (turns * chains * length);
  }
};

TEST_P(TensorRate, IsThePeaksWithEnoughWarps) {
  const auto measured = cycles(8, 8, 16);
  if (!measured) GTEST_SKIP() << "no nvdisasm";
  EXPECT_NEAR(*measured / 4, GetParam().cycles, 0.03 * GetParam().cycles) << "four warps on a scheduler";
}

TEST_P(TensorRate, OfAChainIsItsLatency) {
  const auto measured = cycles(1, 32, 1);
  if (!measured) GTEST_SKIP() << "no nvdisasm";
  EXPECT_NEAR(*measured, GetParam().latency, 0.08 * GetParam().latency);
}

// Rates as measured by Sun et al. (A100), by Kiln's calibration of an H100, by the tests of RTX 5090 and
// GA102 in cicuvc/nvidia-sass-document and Blakexx/rola; those of A10 and RTX 4000 Ada by their peaks. Latencies:
// A100 24.7 for m16n8k16 of f16 in Sun et al., Dissecting Tensor Cores via Microbenchmarks, 2022. They are what the
// compiler counts, so those of other chips are the compiler's, unless the unit takes longer.
INSTANTIATE_TEST_SUITE_P(Shapes, TensorRate,
                         testing::Values(Rate{"a100", "sm_80", "m16n8k16.row.col.f32.f16.f16.f32", 8.16, 25},
                                         Rate{"a100", "sm_80", "m16n8k16.row.col.f32.bf16.bf16.f32", 8.16, 25},
                                         Rate{"a100", "sm_80", "m16n8k8.row.col.f32.tf32.tf32.f32", 8.2, 25},
                                         Rate{"a100", "sm_80", "m16n8k32.row.col.s32.s8.s8.s32", 8.2, 25},
                                         Rate{"a10", "sm_86", "m16n8k16.row.col.f32.f16.f16.f32", 16, 25},
                                         Rate{"rtx5090", "sm_120", "m16n8k16.row.col.f32.f16.f16.f32", 32, 32},
                                         Rate{"rtx5090", "sm_120", "m16n8k32.row.col.f32.e4m3.e4m3.f32", 32, 32},
                                         Rate{"h100", "sm_90", "m16n8k16.row.col.f32.f16.f16.f32", 6.72, 25},
                                         Rate{"h100", "sm_90", "m16n8k32.row.col.s32.s8.s8.s32", 6.90, 25}),
                         [](const auto& rate) { return fmt::format("{}_{}", rate.param.card, rate.index); });

// Cycles of one SM for a product of 128 columns by 128 rows and K = 4096 on each of its blocks.
std::optional<uint64_t> multistage(int stages, int depth, uint32_t blocks_of_sm) {
  const auto compiled =
      compile("multistage.cu", "sm_80", {fmt::format("-DSTAGES={}", stages), fmt::format("-DDEPTH={}", depth)});
  if (!compiled) return {};
  Launch launch;
  launch.block = {128, 1, 1};
  launch.grid = {4, 27 * blocks_of_sm, 1};
  launch.dynamic_shared_bytes = static_cast<uint32_t>(2 * 128 * 2 * depth * stages);
  const uint64_t pointers[] = {0x7f0000000000, 0x7f1000000000, 0x7f2000000000};
  const uint32_t extents[] = {512, 4096};
  launch.parameters.append(reinterpret_cast<const char*>(pointers), sizeof pointers);
  launch.parameters.append(reinterpret_cast<const char*>(extents), sizeof extents);
  const ModelledTime time = model_time(compiled->sass, compiled->facts, launch, find_card("a100"));
  EXPECT_THAT(time.report.unknown_opcodes, testing::IsEmpty());
  EXPECT_EQ(time.report.unknown_addresses, 0U);
  return time.replayed.cycles;
}

// A part of K = 16 takes 256 cycles on the tensor units and comes after 262 from L2, 728 from DRAM.
TEST(AsynchronousCopies, MoreStagesHideMore) {
  std::vector<uint64_t> cycles;
  for (const int stages : {1, 2, 3, 4}) {
    const auto measured = multistage(stages, 16, 1);
    if (!measured) GTEST_SKIP() << "no nvdisasm";
    cycles.push_back(*measured);
  }
  EXPECT_GT(cycles[0], cycles[1] * 12 / 10) << testing::PrintToString(cycles);
  EXPECT_GT(cycles[1], cycles[2] * 105 / 100) << testing::PrintToString(cycles);
  EXPECT_GT(cycles[2] * 101 / 100, cycles[3]) << testing::PrintToString(cycles);
}

// With two blocks on an SM the copies of one go on below the products of the other.
TEST(AsynchronousCopies, TwoBlocksKeepTheTensorUnitsBusy) {
  const auto measured = multistage(3, 32, 2);
  if (!measured) GTEST_SKIP() << "no nvdisasm";
  const double products = 2 * 4096.0 / 32 * 64 * 8;
  EXPECT_GT(static_cast<double>(*measured), products);
  EXPECT_LT(static_cast<double>(*measured), products * 1.35);
}

// Share of the tensor units' peak that a product of 8192 x 8192 x 2048 reaches in f16, by tiles of 128 x 128 x 32 and
// two blocks on an SM. On an A100 such kernels of CUTLASS and others reach 75 to 92%. A warp reads its fragments right
// behind the barrier, so it is less where the unit waits for few warps, and on an H200 the tiles ask for 90% of L2.
TEST(AsynchronousCopies, ALargeProductReachesItsShareOfThePeak) {
  const struct {
    const char* card;
    const char* arch;
    int stages;
    double peak;  // multiply-adds of an SM in a cycle, by mma.sync
  } rows[] = {{"a100", "sm_80", 4, 1024}, {"l40s", "sm_89", 3, 512}, {"h200", "sm_90", 4, 1229}};
  constexpr uint32_t n = 8192, k = 2048;
  for (const auto& row : rows) {
    const auto compiled = compile("multistage.cu", row.arch, {fmt::format("-DSTAGES={}", row.stages), "-DDEPTH=32"});
    if (!compiled) GTEST_SKIP() << "no nvdisasm";
    Launch launch;
    launch.block = {128, 1, 1};
    launch.grid = {n / 128, n / 128, 1};
    launch.dynamic_shared_bytes = static_cast<uint32_t>(2 * 128 * 2 * 32 * row.stages);
    const uint64_t pointers[] = {0x7f0000000000, 0x7f1000000000, 0x7f2000000000};
    const uint32_t extents[] = {n, k};
    launch.parameters.append(reinterpret_cast<const char*>(pointers), sizeof pointers);
    launch.parameters.append(reinterpret_cast<const char*>(extents), sizeof extents);
    Card card = find_card(row.card);
    card.partial_sectors = 1;  // copies and products are judged here, and not the kernel's stores of single floats
    ModelOptions options;
    options.instructions = 200'000;
    const ModelledTime time = model_time(compiled->sass, compiled->facts, launch, card, options);
    const double rate = double{n} * n * k / (time.seconds * card.clock_mhz * 1e6) / card.sms;
    EXPECT_GT(rate, 0.7 * row.peak) << row.card << ": " << time.bound;
    EXPECT_LT(rate, 0.95 * row.peak) << row.card;
  }
}

// Four turns of a producer with one thread and a consumer warp: a copy of 4 KB a turn, into one stage. `upper`
// sets UR11, the upper word of the address it comes from.
Sass handed_over(const std::string& arrival, const std::string& upper = "UMOV UR11, 0x400") {
  Code code(90);
  code.add("S2R R0, SR_TID.X", sets(0))
      .add("UMOV UR4, 0x1ffffe", stall(4))  // one arrival
      .add("SYNCS.EXCH.64 URZ, [URZ+0x400], UR4", stall(4))
      .add("SYNCS.EXCH.64 URZ, [URZ+0x408], UR4", stall(4))
      .add("BAR.SYNC 0x0", stall(5))
      .add("MOV R2, RZ", waits(1, 4))
      .add("UMOV UR8, 0x1000", stall(1))
      .add("UMOV UR9, 0x400", stall(1))
      .add("UMOV UR10, 0x1000", stall(1))
      .add(upper, stall(1))
      .add("UMOV UR6, 0x100", stall(4))
      .add("MOV R3, 0x1000", stall(4))
      .add("ISETP.GE.U32.AND P1, PT, R0, 0x20, PT", stall(13))
      .add("@P1 BRA `(.L_x_3)", stall(5))
      .add("ISETP.NE.AND P1, PT, R0, RZ, PT", stall(13))
      .add("@P1 EXIT", stall(5))
      .add("MOV R4, 0x80000000", stall(4))
      .label(".L_x_1")
      .add("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [URZ+0x408], R4", sets(0))
      .add("@!P0 BRA `(.L_x_1)", waits(1, 5))
      .add(arrival, stall(4))
      .add("UBLKCP.S.G [UR8], [UR10], UR6", stall(4))
      .add("IADD3 R2, R2, 0x1, RZ", stall(4))
      .add("SHF.L.U32 R4, R2, 0x1f, RZ", stall(4))
      .add("LOP3.LUT R4, R4, 0x80000000, RZ, 0x3c, !PT", stall(4))
      .add("ISETP.NE.AND P0, PT, R2, 0x4, PT", stall(13))
      .add("@P0 BRA `(.L_x_1)", stall(5))
      .add("EXIT", stall(1))
      .label(".L_x_3")
      .add("ISETP.NE.AND P2, PT, R0, 0x20, PT", stall(13))
      .label(".L_x_4")
      .add("SHF.L.U32 R4, R2, 0x1f, RZ", stall(4))
      .label(".L_x_5")
      .add("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [URZ+0x400], R4", sets(0))
      .add("@!P0 BRA `(.L_x_5)", waits(1, 5))
      .add("@!P2 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [URZ+0x408], RZ", stall(4))
      .add("IADD3 R2, R2, 0x1, RZ", stall(4))
      .add("ISETP.NE.AND P0, PT, R2, 0x4, PT", stall(13))
      .add("@P0 BRA `(.L_x_4)", stall(5))
      .add("EXIT", stall(1));
  return code.sass();
}

BlockPath path_of(const Sass& sass) {
  Launch launch;
  launch.block = {64, 1, 1};
  KernelFacts facts = plain_facts(90);
  facts.shared_bytes = 16384;
  return Interpreter(sass, facts, launch).run(0);
}

TEST(TransactionBarriers, HandStagesOver) {
  const Sass sass = Code(90).add("EXIT").sass();
  EXPECT_THAT(path_of(sass).warps[0].transactions, testing::IsEmpty());
  const Sass code = handed_over("SYNCS.ARRIVE.TRANS64 RZ, [URZ+0x400], R3");
  const BlockPath path = path_of(code);
  uint64_t phases = 0, loads = 0;
  for (const Transaction& asked : path.warps[1].transactions) {
    if (asked.kind == Transaction::Kind::wait) {
      EXPECT_EQ(asked.phase, ++phases);
    }
  }
  for (const Transaction& asked : path.warps[0].transactions) {
    if (asked.kind == Transaction::Kind::load) {
      EXPECT_EQ(asked.bytes, 4096U) << ++loads;
    }
  }
  EXPECT_EQ(phases, 4U);
  ReplaySetup setup;
  setup.bulk_dram = 0;
  setup.path = [&](uint32_t) { return std::make_shared<const BlockPath>(path); };
  const Card card = find_card("h100");
  const ReplayResult result = replay(code, card, setup);
  EXPECT_EQ(result.bulk_bytes, 4U * 4096);
  // Each copy waits for the one before: its latency, and 4096 bytes of L2's rate.
  const uint64_t turn = card.l2_latency + card.bulk_latency + 4096 / card.l2_bytes_per_clock;
  EXPECT_GT(result.cycles, 4 * turn);
  EXPECT_LT(result.cycles, 4 * (turn + 250));
  EXPECT_GT(result.stalled[static_cast<size_t>(Stall::phase)], 3 * turn);
}

// All four copies are of the same 4 KB.
TEST(BulkCopies, NeedNoDramForWhatTheLaunchBeforeStored) {
  const Sass code = handed_over("SYNCS.ARRIVE.TRANS64 RZ, [URZ+0x400], R3");
  KernelFacts facts = plain_facts(90);
  facts.shared_bytes = 16384;
  Launch launch;
  launch.block = {64, 1, 1};
  const auto replayed = [&] { return model_time(code, facts, launch, find_card("h100")).replayed; };
  EXPECT_EQ(replayed().dram_bytes_read, 4096U);
  launch.in_l2 = {{0x400'0000'1000, 0x400'0000'2000}};
  EXPECT_EQ(replayed().bulk_bytes, 4U * 4096);
  EXPECT_EQ(replayed().dram_bytes_read, 0U);
}

// Half of four blocks' 4 KB were stored by the launch before: a block brings half as much as if none had been.
TEST(BulkCopies, NeedDramForWhatTheLaunchBeforeDidNotStore) {
  Launch launch;
  launch.block = {64, 1, 1};
  launch.grid = {4, 1, 1};
  KernelFacts facts = plain_facts(90);
  facts.shared_bytes = 16384;
  const auto read = [&] {
    const Sass code = handed_over("SYNCS.ARRIVE.TRANS64 RZ, [URZ+0x400], R3", "S2UR UR11, SR_CTAID.X");
    return model_time(code, facts, launch, find_card("h100")).replayed.dram_bytes_read;
  };
  EXPECT_EQ(read(), 4096U);
  launch.in_l2 = {{0x1000, 0x2000}, {0x2'0000'0000, 0x2'0000'4000}};
  EXPECT_EQ(read(), 2048U);
}

TEST(BulkCopies, AreAmongWhatIsStored) {
  const Sass code = Code(90)
                        .add("UMOV UR4, 0x400", stall(1))
                        .add("UMOV UR5, URZ", stall(1))
                        .add("UMOV UR8, 0x1000", stall(1))
                        .add("UMOV UR9, 0x400", stall(1))
                        .add("UMOV UR6, 0x100", stall(4))
                        .add("UBLKCP.G.S [UR8], [UR4], UR6", stall(4))
                        .add("EXIT", stall(1))
                        .sass();
  const KernelFacts facts = plain_facts(90);
  const Launch launch;
  Interpreter interpreter(code, facts, launch);
  (void)interpreter.run(0);
  EXPECT_THAT(interpreter.stored(), testing::ElementsAre(AddressRange{0x400'0000'1000, 0x400'0000'2000}));
}

// The map says where it goes, and maps are not read.
TEST(TensorStores, AreNotAmongWhatIsStored) {
  Code code(90);
  for (const int i : {4, 5, 6, 8, 9}) code.add(fmt::format("UMOV UR{}, 0x1000", i), stall(4));
  code.add("UTMASTG.2D [UR4], [UR8]", stall(4)).add("EXIT", stall(1));
  Launch launch;
  launch.box_bytes = [](uint64_t, uint32_t& bytes) {
    bytes = 4096;
    return true;
  };
  const Sass sass = code.sass();
  const KernelFacts facts = plain_facts(90);
  Interpreter interpreter(sass, facts, launch);
  const BlockPath path = interpreter.run(0);
  ASSERT_EQ(path.warps[0].transactions.size(), 1U);
  EXPECT_EQ(path.warps[0].transactions[0].kind, Transaction::Kind::store);
  EXPECT_EQ(path.warps[0].transactions[0].bytes, 4096U);
  EXPECT_THAT(interpreter.stored(), testing::IsEmpty());
}

TEST(TransactionBarriers, ThatNobodyCompletesAreAnError) {
  EXPECT_THROW(path_of(handed_over("SYNCS.ARRIVE.TRANS64.A1T0 RZ, [URZ+0x408], RZ")), Error);
}

// The ladder's kernel compiles without spills, and what is known to make it faster does so here.
TEST(Ladder, StepsAreFaster) {
  const auto cycles = [](int tokens, int cluster, int stages) -> std::optional<uint64_t> {
    const auto compiled = compile("../../../bench/time_model/ladder/gemm_sm90.cu", "sm_90a",
                                  {"-DBLOCK_M=128", "-DBLOCK_N=256", fmt::format("-DSTAGES={}", stages),
                                   "-DCONSUMERS=2", fmt::format("-DTOKENS={}", tokens), "-DPERSISTENT=1", "-DORDER=1",
                                   fmt::format("-DCLUSTER={}", cluster), "-DBULK_STORE=0"});
    if (!compiled) return {};
    EXPECT_EQ(compiled->facts.local_bytes, 0U) << "it spills";
    Launch launch;
    launch.block = {384, 1, 1};
    launch.grid = {132, 1, 1};
    launch.cluster = {static_cast<uint32_t>(cluster), 1, 1};
    launch.dynamic_shared_bytes = static_cast<uint32_t>(stages) * 384 * 128;
    launch.parameters.assign(0x30 + 3 * 128 + 8, '\0');
    const uint32_t extents[] = {4096, 4096, 1024};
    launch.parameters.append(reinterpret_cast<const char*>(extents), sizeof extents);
    const ModelledTime time = model_time(compiled->sass, compiled->facts, launch, find_card("h100"));
    EXPECT_THAT(time.report.unknown_opcodes, testing::IsEmpty());
    EXPECT_THAT(time.unclassified, testing::IsEmpty());
    return time.replayed.cycles;
  };
  const auto tokens = cycles(1, 1, 3), one = cycles(0, 1, 3), shared = cycles(0, 2, 3), two_stages = cycles(0, 2, 2);
  if (!tokens || !one || !shared || !two_stages) GTEST_SKIP() << "no nvdisasm";
  EXPECT_GT(*tokens, *one);
  EXPECT_GT(*one, *shared);
  EXPECT_GT(*two_stages, *shared);
}

}  // namespace
}  // namespace kiln::timing::tensor_test
