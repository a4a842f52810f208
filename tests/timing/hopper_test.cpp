// Products of warpgroups, mbarriers and clusters in paths that are written here: cycles that can be counted by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/timing/interpret.h"
#include "kiln/timing/replay.h"
#include "machine_code_texts.h"

namespace kiln::timing::hopper_test {
namespace {

Card round_card() {
  return card_with_code_at_hand("h100");
}

// One warp that goes straight through `code`; the i-th transaction or barrier is that of the i-th instruction that is
// no EXIT and no product.
uint64_t cycles(const Sass& code, const std::vector<Transaction>& transactions = {}, const Card& card = round_card(),
                const std::vector<Barrier>& barriers = {}) {
  WarpPath warp;
  warp.transactions = transactions;
  warp.barriers = barriers;
  uint32_t access = 0;
  for (uint32_t i = 0; i < code.instructions.size(); ++i) {
    const std::string& opcode = code.instructions[i].opcode;
    const bool has_one = opcode == "SYNCS" || opcode == "UCGABAR_WAIT" || opcode == "UTMALDG" || opcode == "UTMASTG";
    warp.executed.push_back({i, ~uint32_t{0}, has_one ? access++ : no_access});
  }
  const BlockPath block{{warp}};
  ReplaySetup setup;
  setup.bulk_dram = 0;
  setup.path = [&](uint32_t) { return std::make_shared<const BlockPath>(block); };
  return replay(code, card, setup).cycles;
}

// So many products in a group of their own each, then a wait until `left` groups are left.
uint64_t cycles_of_products(const std::string& product, int count, int left) {
  Code code(90);
  for (int i = 0; i < count; ++i) code.add(product, stall(1));
  code.add("WARPGROUP.DEPBAR.LE gsb0, 0x" + std::to_string(left), stall(1));
  return cycles(code.add("EXIT", stall(1)).sass());
}

TEST(WarpgroupProducts, WaitForTheTensorUnitInOrder) {
  const std::string product = "HGMMA.64x256x16.F32 R24, gdesc[UR4], R24, gsb0";
  const uint64_t one = cycles_of_products(product, 1, 0);
  EXPECT_GE(one, 128U);
  EXPECT_LT(one, 140U);
  EXPECT_EQ(cycles_of_products(product, 4, 0), one + 3 * 128U);
}

TEST(WarpgroupProducts, AreWaitedForByGroups) {
  const std::string product = "HGMMA.64x256x16.F32 R24, gdesc[UR4], R24, gsb0";
  const uint64_t all = cycles_of_products(product, 4, 0);
  for (int left = 1; left < 4; ++left) {
    EXPECT_EQ(cycles_of_products(product, 4, left), all - static_cast<uint64_t>(left) * 128) << left;
  }
  EXPECT_LT(cycles_of_products(product, 4, 4), 20U) << "there are no more";
}

// Luo et al.: n8, n16, n32 and n64 of shared operands take 18, 20, 24 and 32 cycles.
TEST(WarpgroupProducts, OfFewColumnsWaitForSharedMemory) {
  const auto of_one = [](const std::string& product) {
    return cycles_of_products(product, 11, 0) - cycles_of_products(product, 1, 0);
  };
  const std::pair<const char*, uint64_t> measured[] = {{"8", 18}, {"16", 20}, {"32", 24}, {"64", 32}, {"128", 64}};
  for (const auto& [columns, each] : measured) {
    EXPECT_EQ(of_one(std::string("HGMMA.64x") + columns + "x16.F32 R24, gdesc[UR4], R24, gsb0"), 10 * each) << columns;
  }
  EXPECT_EQ(of_one("HGMMA.64x8x16.F32 R24, R4, gdesc[UR4], R24, gsb0"), 10U * 4) << "one operand is in registers";
}

// An mbarrier of so many arrivals, which come at once and are waited for.
uint64_t cycles_of_phase(uint32_t arrivals, bool remote = false, const Card& card = round_card()) {
  const Sass code = Code(90)
                        .add("SYNCS.EXCH.64 URZ, [URZ+0x400], UR4", stall(4))
                        .add("SYNCS.ARRIVE.TRANS64.A1T0 RZ, [URZ+0x400], RZ", stall(4))
                        .add("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [URZ+0x400], R4", sets(0))
                        .add("NOP", waits(1, 1))
                        .add("EXIT", stall(1))
                        .sass();
  Transaction init, arrive, wait;
  init.arrivals = arrive.arrivals = arrivals;
  arrive.kind = Transaction::Kind::arrive;
  arrive.remote = remote;
  wait.kind = Transaction::Kind::wait;
  wait.phase = 1;
  return cycles(code, {init, arrive, wait}, card);
}

TEST(PhaseBarriers, CountLanesOneByOne) {
  EXPECT_EQ(cycles_of_phase(32), cycles_of_phase(8) + 24);
}

TEST(PhaseBarriers, HearOfOtherBlocksLater) {
  EXPECT_EQ(cycles_of_phase(32, true), cycles_of_phase(32) + round_card().cluster_latency);
}

TEST(PhaseBarriers, TellThoseThatWaitAfterTheirLatency) {
  Card late = round_card();
  late.phase_latency += 50;
  EXPECT_EQ(cycles_of_phase(32, true, late), cycles_of_phase(32, true) + 50);
}

TEST(PhaseBarriers, WaitForTheBytesThatAllBlocksOfAClusterBring) {
  const auto with = [](uint8_t receivers, uint64_t bytes, const Card& card = round_card()) {
    const Sass code = Code(90)
                          .add("SYNCS.EXCH.64 URZ, [URZ+0x400], UR4", stall(4))
                          .add("SYNCS.ARRIVE.TRANS64 RZ, [URZ+0x400], R3", stall(4))
                          .add("UTMALDG.2D [UR8], [UR4]", stall(4))
                          .add("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [URZ+0x400], R4", sets(0))
                          .add("NOP", waits(1, 1))
                          .add("EXIT", stall(1))
                          .sass();
    Transaction init, arrive, load, wait;
    init.arrivals = arrive.arrivals = 1;
    arrive.kind = Transaction::Kind::arrive;
    arrive.bytes = bytes * receivers;
    load.kind = Transaction::Kind::load;
    load.bytes = bytes;
    load.receivers = receivers;
    wait.kind = Transaction::Kind::wait;
    wait.phase = 1;
    return cycles(code, {init, arrive, load, wait}, card);
  };
  EXPECT_EQ(with(2, 4096), with(1, 4096)) << "the other block asks for its half itself";
  EXPECT_GT(with(1, 8192), with(1, 4096));
  Card late = round_card();
  late.bulk_latency += 50;
  EXPECT_EQ(with(1, 4096, late), with(1, 4096) + 50);
}

TEST(BulkStores, AreWaitedForUntilSharedMemoryIsRead) {
  const auto of_bytes = [](uint64_t bytes) {
    Control reads = stall(1);
    reads.read_barrier = 0;
    const Sass code = Code(90)
                          .add("UTMASTG.2D [UR8], [UR4]", stall(4))
                          .add("UTMACMDFLUSH", reads)
                          .add("NOP", waits(1, 1))
                          .add("EXIT", stall(1))
                          .sass();
    Transaction store;
    store.kind = Transaction::Kind::store;
    store.bytes = bytes;
    return cycles(code, {store});
  };
  const uint64_t rate = round_card().l2_bytes_per_clock;
  EXPECT_EQ(of_bytes(300 * rate), of_bytes(100 * rate) + 200);
}

TEST(ClusterBarriers, TakeTheWayBetweenSms) {
  const Sass code = Code(90).add("UCGABAR_WAIT", stall(4)).add("EXIT", stall(1)).sass();
  const Card card = round_card();
  Barrier of_cluster, of_block;
  of_cluster.id = cluster_barrier;
  EXPECT_EQ(cycles(code, {}, card, {of_cluster}), cycles(code, {}, card, {of_block}) + card.cluster_latency);
}

// A thread may arrive for several at once.
TEST(PhaseBarriers, CountArrivalsThatAreGiven) {
  const Sass code = Code(90)
                        .add("S2R R0, SR_TID.X", sets(0))
                        .add("UMOV UR4, 0x1ffffa", stall(4))  // three arrivals
                        .add("SYNCS.EXCH.64 URZ, [URZ+0x400], UR4", stall(4))
                        .add("MOV R3, 0x3", stall(4))
                        .add("MOV R4, RZ", stall(4))
                        .add("ISETP.EQ.AND P1, PT, R0, RZ, PT", waits(1, 13))
                        .add("@P1 SYNCS.ARRIVE.TRANS64.ART0 RZ, [URZ+0x400], R3", stall(4))
                        .add("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [URZ+0x400], R4", sets(0))
                        .add("EXIT", waits(1, 1))
                        .sass();
  Launch launch;
  launch.block = {32, 1, 1};
  KernelFacts facts = plain_facts(90);
  facts.shared_bytes = 16384;
  const std::vector<Transaction> asked = Interpreter(code, facts, launch).run(0).warps[0].transactions;
  ASSERT_EQ(asked.size(), 3U);
  EXPECT_EQ(asked[0].arrivals, 3U);
  EXPECT_EQ(asked[1].arrivals, 3U);
  EXPECT_EQ(asked[2].phase, 1U);
}

// Two blocks of a cluster get a box of 4 KB each, and each asks for one for both.
TEST(PhaseBarriers, ExpectWhatAllBlocksOfAClusterBring) {
  const auto transactions = [](const std::string& expected) {
    const Sass code = Code(90)
                          .add("S2R R0, SR_TID.X", sets(0))
                          .add("UMOV UR4, 0x1ffffe", stall(4))  // one arrival
                          .add("SYNCS.EXCH.64 URZ, [URZ+0x400], UR4", stall(4))
                          .add("MOV R3, " + expected, stall(4))
                          .add("MOV R4, RZ", stall(4))
                          .add("UMOV UR8, 0x1000", stall(1))
                          .add("UMOV UR9, 0x400", stall(1))
                          .add("UMOV UR10, URZ", stall(1))
                          .add("UMOV UR11, URZ", stall(1))
                          .add("UMOV UR6, 0x30000", stall(4))  // both
                          .add("ISETP.EQ.AND P1, PT, R0, RZ, PT", waits(1, 13))
                          .add("@P1 SYNCS.ARRIVE.TRANS64 RZ, [URZ+0x400], R3", stall(4))
                          .add("UTMALDG.2D.MULTICAST [UR8], [UR8], UR6", stall(4))
                          .add("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [URZ+0x400], R4", sets(0))
                          .add("EXIT", waits(1, 1))
                          .sass();
    Launch launch;
    launch.block = {32, 1, 1};
    launch.box_bytes = [](uint64_t, uint32_t& bytes) {
      bytes = 0x1000;
      return true;
    };
    KernelFacts facts = plain_facts(90);
    facts.shared_bytes = 16384;
    return Interpreter(code, facts, launch).run(0).warps[0].transactions;
  };
  const std::vector<Transaction> asked = transactions("0x2000");
  ASSERT_EQ(asked.size(), 4U);
  EXPECT_EQ(asked[2].receivers, 2);
  EXPECT_EQ(asked[2].bytes, 0x1000U);
  EXPECT_THROW(transactions("0x1000"), Error);
}

}  // namespace
}  // namespace kiln::timing::hopper_test
