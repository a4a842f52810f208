#include "memory_system.h"

#include <gtest/gtest.h>

#include <string>

#include "machine_code_texts.h"

namespace kiln::timing::memory_system_test {
namespace {

// Bytes that two loads of one line bring from DRAM, where L1 keeps nothing and L2 lacks all.
uint64_t bytes_from_dram(Access::Space space) {
  ReplaySetup setup;
  setup.local_dram = 256;
  const Card card = card_with_code_at_hand("a100");
  MemorySystem memory(card, setup);
  const Access access{.space = space, .lines = 1};
  const Line line{.address = 0, .sectors = 0xF};
  for (const uint64_t now : {0, 1000}) memory.load(now, 0, access, &line, 0, true);
  ReplayResult result;
  memory.count(result);
  return result.dram_bytes_read;
}

TEST(MemorySystem, WhatWasBroughtFromDramIsInL2) {
  EXPECT_EQ(bytes_from_dram(Access::Space::global), 128U);
}

// Other blocks' spills drive it out, which the share of sectors stands for.
TEST(MemorySystem, SpillsAreBroughtAgain) {
  EXPECT_EQ(bytes_from_dram(Access::Space::local), 2 * 128U);
}

// A sector passes L2 in one cycle and DRAM in two.
Card round_card() {
  Card card = card_with_code_at_hand("a100");
  card.sms = 1;
  card.clock_mhz = 1000;
  card.l2_bytes_per_clock = 32;
  card.dram_gbs = 16;
  card.l2_latency = 100;
  card.dram_latency = 300;
  card.bulk_latency = 50;
  return card;
}

constexpr Access one_line{.space = Access::Space::global, .lines = 1};

ReplayResult counted(const MemorySystem& memory) {
  ReplayResult result;
  memory.count(result);
  return result;
}

TEST(MemorySystem, SectorsThatBypassL1AreNotAskedOfIt) {
  const Card card = round_card();
  ReplaySetup setup;
  setup.l1_bytes = 1 << 17;
  MemorySystem memory(card, setup);
  const Line line{.address = 128, .sectors = 0xF}, other{.address = 256, .sectors = 0x3};
  for (const uint64_t now : {0, 1000, 2000}) memory.load(now, 0, one_line, &line, 0, false);
  memory.load(3000, 0, one_line, &other, 0, true);
  const ReplayResult result = counted(memory);
  EXPECT_EQ(result.l1_sectors, 12U);
  EXPECT_EQ(result.bypassing_sectors, 2U);
  EXPECT_EQ(result.l2_sectors, 4U + 2U);
}

TEST(MemorySystem, ALoadIsThereWithItsLastSector) {
  const Card card = round_card();
  ReplaySetup setup;
  setup.l1_bytes = 1 << 17;
  setup.dram = {{0, 0}};
  MemorySystem warm(card, setup);
  const Line line{.address = 128, .sectors = 0xF};
  EXPECT_EQ(warm.load(10, 0, one_line, &line, 0, false), 14U + 100) << "four sectors, one after the other";
  EXPECT_EQ(warm.load(20, 0, one_line, &line, 0, false), 14U + 100) << "they are on their way";
  EXPECT_EQ(warm.load(200, 0, one_line, &line, 0, false), 200U) << "L1 has them";
  EXPECT_EQ(warm.load(300, 0, one_line, &line, 0, true), 304U + 100) << "past L1";
  EXPECT_EQ(warm.load(400, 0, one_line, &line, 128, false), 404U + 100) << "the next line";
  EXPECT_EQ(counted(warm).l1_sectors, 16U);
  EXPECT_EQ(counted(warm).l2_sectors, 12U);
  EXPECT_EQ(counted(warm).l2_busy, 12U);
  EXPECT_EQ(counted(warm).dram_bytes_read, 0U);
  setup.dram = {DramShare{}};
  MemorySystem cold(card, setup);
  EXPECT_EQ(cold.load(10, 0, one_line, &line, 0, false), 11U + 4 * 2 + 300) << "each waits for the one before in DRAM";
  EXPECT_EQ(counted(cold).dram_bytes_read, 128U);
  EXPECT_EQ(counted(cold).dram_busy, 8U);
}

// The cycle in which four sectors have passed DRAM, the first a cycle behind its request.
uint64_t passed_by(uint32_t busy_sms, uint32_t dram_gbs) {
  Card card = round_card();
  card.sms = 4;
  card.dram_gbs = dram_gbs;
  ReplaySetup setup;
  setup.busy_sms = busy_sms;
  MemorySystem memory(card, setup);
  const Line line{.address = 128, .sectors = 0xF};
  return memory.load(0, 0, one_line, &line, 0, true) - card.dram_latency;
}

TEST(MemorySystem, SmsWithBlocksShareDram) {
  EXPECT_EQ(passed_by(4, 16), 1U + 4 * 8);
  EXPECT_EQ(passed_by(0, 16), passed_by(4, 16)) << "all of the card's";
  EXPECT_EQ(passed_by(2, 16), 1U + 4 * 4);
  EXPECT_EQ(passed_by(1, 16), 1U + 4 * 2);
  EXPECT_EQ(passed_by(1, 64), 1U + 4 * 1) << "L2 gives it 32 bytes a cycle";
}

// L2 has nothing of its own to bring: other SMs ask for the same data at the same time.
TEST(MemorySystem, TheFirstWaveWaitsForDramWhoeverAskedFirst) {
  const Card card = round_card();
  ReplaySetup setup;
  setup.dram = {{0, 0}};
  setup.first_wave = 2;
  setup.in_l2 = {{1024, 1152}};
  MemorySystem memory(card, setup);
  const Line line{.address = 128, .sectors = 0x1}, neighbour{.address = 128, .sectors = 0x2},
      left{.address = 1024, .sectors = 0x1}, other{.address = 2048, .sectors = 0x1};
  EXPECT_EQ(memory.load(0, 1, one_line, &line, 0, true), 1U + 300);
  EXPECT_EQ(memory.load(100, 2, one_line, &line, 0, true), 1U + 300) << "it is on its way";
  EXPECT_EQ(memory.load(100, 2, one_line, &neighbour, 0, true), 1U + 300) << "DRAM brings 64 bytes";
  EXPECT_EQ(memory.load(500, 1, one_line, &line, 0, true), 501U + 100) << "it is there";
  EXPECT_EQ(memory.load(600, 1, one_line, &left, 0, true), 601U + 100) << "the previous launch stored it";
  EXPECT_EQ(memory.load(700, 3, one_line, &other, 0, true), 701U + 100) << "blocks that begin later find it in L2";
  EXPECT_EQ(counted(memory).dram_bytes_read, 0U) << "another SM's share";
}

TEST(MemorySystem, TheFirstWaveWaitsForWhatDramHasToPass) {
  const Card card = round_card();
  ReplaySetup setup;
  setup.dram = {{0, DramShare::all}, {1 << 20, 0}};
  setup.first_wave = 1;
  MemorySystem memory(card, setup);
  for (uint64_t i = 0; i < 100; ++i) {
    const Line line{.address = 128 * i, .sectors = 0xF};
    memory.load(0, 1, one_line, &line, 0, true);
  }
  const Line line{.address = 1 << 20, .sectors = 0x1};
  EXPECT_NEAR(static_cast<double>(memory.load(0, 1, one_line, &line, 0, true)), 400 * 2 + 300, 4);
}

TEST(MemorySystem, L2TakesLongerForPartsOfSectors) {
  Card card = round_card();
  card.partial_sectors = 3;
  MemorySystem memory(card, {});
  const Line whole{.address = 128, .sectors = 0xF}, parts{.address = 256, .sectors = 0xF, .partial = 0x3};
  memory.store(0, one_line, &whole, 0, false);
  EXPECT_EQ(counted(memory).l2_busy, 4U);
  memory.store(100, one_line, &parts, 0, false);
  EXPECT_EQ(counted(memory).l2_busy, 4U + 2 + 2 * 3);
  EXPECT_EQ(counted(memory).bytes_written, 256U);
}

TEST(MemorySystem, EachOperandHasAShareOfDram) {
  const Card card = round_card();
  ReplaySetup setup;
  setup.l1_bytes = 1 << 17;
  setup.dram = {{0, 0}, {1 << 20, DramShare::all}, {1 << 21, DramShare::all / 4}};
  const auto from_dram = [&](uint64_t begin) {
    MemorySystem memory(card, setup);
    for (uint64_t i = 0; i < 1000; ++i) {
      const Line line{.address = begin + 128 * i, .sectors = 0xF};
      memory.load(i, 0, one_line, &line, 0, false);
    }
    return counted(memory).dram_bytes_read;
  };
  EXPECT_EQ(from_dram(128), 0U);
  EXPECT_EQ(from_dram(1 << 20), 128'000U);
  EXPECT_NEAR(static_cast<double>(from_dram(1 << 21)), 32'000, 2'000);
}

// Sectors of a line that a load of it brings from DRAM, one bit each, of 16 lines in hexadecimal digits.
std::string drawn_sectors(uint32_t block, Access::Space space) {
  const Card card = round_card();
  ReplaySetup setup;
  setup.dram = {{0, DramShare::all / 2}};
  setup.local_dram = 128;
  std::string digits;
  for (uint64_t i = 0; i < 16; ++i) {
    uint32_t brought = 0;
    for (uint32_t sector = 0; sector < 4; ++sector) {
      MemorySystem memory(card, setup);
      const Line line{.address = 128 * i, .sectors = 1U << sector};
      memory.load(0, block, {.space = space, .lines = 1}, &line, 0, true);
      brought |= counted(memory).dram_bytes_read != 0 ? 1U << sector : 0;
    }
    digits += "0123456789abcdef"[brought];
  }
  return digits;
}

// Times of one kernel are the same in all versions of a model: another draw is a change of the model.
TEST(MemorySystem, SectorsAreDrawnByAddressAndBlockAlone) {
  EXPECT_EQ(drawn_sectors(0, Access::Space::global), "9708ca6934b462ca");
  EXPECT_EQ(drawn_sectors(7, Access::Space::global), "ae849c75e302c630");
  EXPECT_EQ(drawn_sectors(0, Access::Space::local), "9708ca6934b462ca");
  EXPECT_EQ(drawn_sectors(7, Access::Space::local), drawn_sectors(0, Access::Space::local));
}

// Lines that L1 lacks of 64 for which it has room: sets are drawn, too.
TEST(MemorySystem, LinesShareSetsByTheirAddressAlone) {
  const Card card = round_card();
  ReplaySetup setup;
  setup.l1_bytes = 64 * 128;  // eight sets of eight
  setup.dram = {{0, 0}};
  MemorySystem memory(card, setup);
  const auto is_there_at = [&](uint64_t now, uint64_t i) {
    const Line line{.address = 128 * i, .sectors = 1};
    return memory.load(now, 0, one_line, &line, 0, false) == now;
  };
  for (uint64_t i = 0; i < 64; ++i) is_there_at(1000 * i, i);
  std::string missing;
  for (uint64_t i = 64; i-- > 0;) {
    if (!is_there_at(1'000'000 - 1000 * i, i)) missing += std::to_string(i) + " ";
  }
  EXPECT_EQ(missing, "12 2 0 ");
}

// A quarter of what 16 blocks load; a block has a line that it loads again from L2.
TEST(MemorySystem, EachBlockHasItsShareOfDram) {
  const Card card = round_card();
  ReplaySetup setup;
  setup.dram = {{0, DramShare::all / 4}};
  MemorySystem memory(card, setup);
  for (const uint64_t turn : {0, 1}) {
    for (uint32_t block = 0; block < 16; ++block) {
      for (uint64_t i = 0; i < 100; ++i) {
        const Line line{.address = 128 * i, .sectors = 0xF};
        memory.load(turn, block, one_line, &line, 0, true);
      }
    }
  }
  EXPECT_NEAR(static_cast<double>(counted(memory).dram_bytes_read), 16 * 100 * 32, 2'000);
}

// Stores wait in L2 meanwhile, and keep DRAM busy afterwards.
TEST(MemorySystem, LoadsDoNotWaitForStores) {
  const Card card = round_card();
  ReplaySetup setup;
  MemorySystem memory(card, setup);
  const Line line{.address = 128, .sectors = 0xF}, other{.address = 256, .sectors = 0x1};
  memory.store(0, one_line, &line, 0, false);
  EXPECT_EQ(memory.load(100, 0, one_line, &other, 0, true), 100U + 1 + 2 + 300);
  memory.store(200, one_line, &line, 4096, false);
  EXPECT_EQ(memory.load(200, 0, one_line, &other, 8192, true), 204U + 1 + 2 + 300) << "four sectors pass L2 before it";
  EXPECT_EQ(memory.passed(), 204U + 8 + 2);
}

TEST(MemorySystem, EndsWhenAllHasPassed) {
  const Card card = round_card();
  ReplaySetup setup;
  MemorySystem memory(card, setup);
  EXPECT_EQ(memory.passed(), 0U);
  const Line line{.address = 128, .sectors = 0xF};
  memory.store(10, one_line, &line, 0, false);
  EXPECT_EQ(memory.passed(), 14U + 8) << "128 bytes, 32 a cycle into L2 and 16 into DRAM";
}

TEST(MemorySystem, TheLineThatWasUnusedForLongestMakesRoom) {
  const Card card = round_card();
  ReplaySetup setup;
  setup.l1_bytes = 8 * 128;  // one set of eight lines
  setup.dram = {{0, 0}};
  MemorySystem memory(card, setup);
  uint64_t now = 0;
  const auto has = [&](uint64_t number) {
    now += 1000;
    const Line line{.address = number * 128, .sectors = 1};
    return memory.load(now, 0, one_line, &line, 0, false) == now;
  };
  for (uint64_t number = 0; number < 8; ++number) EXPECT_FALSE(has(number));
  EXPECT_TRUE(has(0));
  EXPECT_FALSE(has(8));
  EXPECT_TRUE(has(0)) << "it was used since";
  EXPECT_FALSE(has(1));
}

TEST(MemorySystem, CopiesInBulkWaitForTheSlowerOfL2AndDram) {
  const Card card = round_card();
  ReplaySetup setup;
  const auto there = [&](uint32_t share_of_dram) {
    setup.bulk_dram = share_of_dram;
    MemorySystem memory(card, setup);
    const uint64_t cycle = memory.load_in_bulk(10, 3200);
    EXPECT_EQ(counted(memory).bulk_bytes, 3200U);
    EXPECT_EQ(counted(memory).dram_bytes_read, 3200U * share_of_dram / 256);
    return cycle;
  };
  EXPECT_EQ(there(0), 110U + 100 + 50);
  EXPECT_EQ(there(256), 210U + 300 + 50);
  EXPECT_EQ(there(64), 110U + 300 + 50) << "a quarter passes DRAM in half of the time that all takes in L2";
  MemorySystem memory(card, setup);
  EXPECT_EQ(memory.store_in_bulk(10, 3200), 110U);
  EXPECT_EQ(counted(memory).bytes_written, 3200U);
  EXPECT_EQ(counted(memory).dram_bytes_written, 3200U);
}

TEST(MemorySystem, LocalStoresStayInL1) {
  const Card card = round_card();
  ReplaySetup setup;
  setup.l1_bytes = 1 << 17;
  setup.local_dram = 128;  // half of it spills over
  MemorySystem memory(card, setup);
  const Access local{.space = Access::Space::local, .lines = 1};
  const Line line{.address = 0, .sectors = 0xF};
  memory.store(0, local, &line, 0, true);
  EXPECT_EQ(counted(memory).bytes_written, 128U);
  EXPECT_EQ(counted(memory).dram_bytes_written, 64U);
  EXPECT_EQ(memory.load(1000, 0, local, &line, 0, false), 1000U);
  memory.store(2000, one_line, &line, 4096, false);
  memory.store(3000, one_line, &line, 4096, false);
  EXPECT_EQ(counted(memory).bytes_written, 3 * 128U);
  EXPECT_EQ(counted(memory).dram_bytes_written, 64U + 128) << "L2 gathers what is stored twice";
  EXPECT_GT(memory.load(4000, 0, one_line, &line, 4096, false), 4000U) << "a global store leaves nothing in L1";
}

}  // namespace
}  // namespace kiln::timing::memory_system_test
