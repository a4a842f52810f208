#include "memory_system.h"

#include <gtest/gtest.h>

#include "support.h"

namespace kiln::timing::memory_system_test {
namespace {

// Bytes that two loads of one line bring from DRAM, where L1 keeps nothing and L2 lacks all.
uint64_t bytes_from_dram(Access::Space space) {
  ReplaySetup setup;
  setup.dram_sectors = setup.local_dram = 256;
  const Card card = card_with_code_at_hand("a100");
  MemorySystem memory(card, setup);
  const Access access{.space = space, .lines = 1};
  const Line line{.address = 0, .sectors = 0xF};
  for (const uint64_t now : {0, 1000}) memory.load(now, access, &line, 0, true);
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

}  // namespace
}  // namespace kiln::timing::memory_system_test
