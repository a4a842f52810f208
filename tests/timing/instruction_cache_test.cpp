#include "instruction_cache.h"

#include <gtest/gtest.h>

#include <vector>

#include "machine_code_texts.h"

namespace kiln::timing::instruction_cache_test {
namespace {

// Caches of schedulers with eight lines in two sets, behind them 16 in four.
Card round_card() {
  Card card = card_with_code_at_hand("a100");
  card.l0_bytes = 8 * 128;
  card.l1i_bytes = 16 * 128;
  card.prefetch_lines = 0;
  card.l1i_cycles = 3;
  card.l1i_latency = 10;
  card.l2i_cycles = 7;
  card.l2i_latency = 100;
  return card;
}

TEST(InstructionCaches, ALineComesThroughBothCachesOnce) {
  const Card card = round_card();
  InstructionCaches caches(card, 100);
  EXPECT_EQ(caches.ready(0, 5, 1000), 1000U + 7 + 100 + 10);
  EXPECT_EQ(caches.busy(), 3U);
  EXPECT_EQ(caches.ready(0, 5, 1001), 1117U) << "it is on its way";
  EXPECT_EQ(caches.ready(0, 5, 2000), 1117U) << "it is there";
  EXPECT_EQ(caches.ready(1, 5, 1050), 1107U + 10) << "it is on its way to the common cache";
  EXPECT_EQ(caches.ready(2, 5, 5000), 5000U + 3 + 10) << "the common cache has it";
  EXPECT_EQ(caches.busy(), 9U);
}

TEST(InstructionCaches, LinesPassOneAfterTheOther) {
  const Card card = round_card();
  InstructionCaches caches(card, 100);
  EXPECT_EQ(caches.ready(0, 5, 1000), 1000U + 7 + 100 + 10);
  EXPECT_EQ(caches.ready(0, 6, 1000), 1000U + 2 * 7 + 100 + 10);
  EXPECT_EQ(caches.ready(3, 7, 1010), 1000U + 3 * 7 + 100 + 10);
  EXPECT_EQ(caches.ready(1, 5, 5000), 5000U + 3 + 10);
  EXPECT_EQ(caches.ready(1, 6, 5000), 5000U + 2 * 3 + 10);
  EXPECT_EQ(caches.ready(2, 6, 5001), 5000U + 3 * 3 + 10);
  EXPECT_EQ(caches.ready(2, 7, 6000), 6000U + 3 + 10) << "the way is free";
  EXPECT_EQ(caches.ready(2, 8, 7000), 7000U + 7 + 100 + 10);
}

// A line that is there at once was fetched before.
bool has(InstructionCaches& caches, uint32_t line, uint64_t now) {
  return caches.ready(0, line, now) <= now;
}

TEST(InstructionCaches, LinesThatFollowAreFetchedAhead) {
  Card card = round_card();
  card.prefetch_lines = 2;
  InstructionCaches caches(card, 8);
  caches.ready(0, 0, 1000);
  EXPECT_EQ(caches.busy(), 3U * 3);
  EXPECT_TRUE(has(caches, 1, 2000));
  EXPECT_TRUE(has(caches, 2, 3000));
  EXPECT_TRUE(has(caches, 3, 4000)) << "ahead of line 1 and 2";
  EXPECT_FALSE(has(caches, 6, 5000));
  EXPECT_EQ(caches.busy(), (6U + 2) * 3) << "lines 0 to 5, and 6 and 7: there are no others";
}

// Adds lines to a cache in this order, and says which of them are there afterwards.
std::vector<uint32_t> left_of(uint32_t lines, const std::vector<uint32_t>& added) {
  LineCache cache(lines);
  uint64_t now = 0;
  for (const uint32_t line : added) {
    ++now;
    if (cache.find(line, now) == nullptr) cache.add(line, now, 100 + line);
  }
  std::vector<uint32_t> left;
  for (uint32_t line = 0; line < 20; ++line) {
    const uint64_t* const ready = cache.find(line, now);
    if (ready == nullptr) continue;
    EXPECT_EQ(*ready, 100 + line);
    left.push_back(line);
  }
  return left;
}

TEST(LineCache, KeepsLinesThatWereUsedLast) {
  using Lines = std::vector<uint32_t>;
  EXPECT_EQ(left_of(8, {0, 1, 2, 3, 4, 5, 6, 7}), (Lines{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(left_of(8, {0, 2, 4, 6, 8}), (Lines{2, 4, 6, 8})) << "even lines share a set of four";
  EXPECT_EQ(left_of(8, {0, 2, 4, 6, 0, 8}), (Lines{0, 4, 6, 8})) << "line 0 was used again";
  EXPECT_EQ(left_of(8, {0, 2, 4, 6, 0, 2, 4, 8, 1}), (Lines{0, 1, 2, 4, 8}));
  EXPECT_EQ(left_of(2, {0, 1, 2, 3, 4}), (Lines{1, 2, 3, 4})) << "one set at the least";
  EXPECT_EQ(left_of(16, {0, 4, 8, 12, 16, 3, 7, 11, 15, 19}), (Lines{4, 7, 8, 11, 12, 15, 16, 19})) << "four sets";
}

}  // namespace
}  // namespace kiln::timing::instruction_cache_test
