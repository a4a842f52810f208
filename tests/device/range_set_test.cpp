#include "kiln/device/range_set.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace kiln::device::range_set_test {
namespace {

TEST(RangeSet, HoldsTheRangesThatWereAdded) {
  const auto ranges = std::make_unique<RangeSet>();
  EXPECT_FALSE(ranges->has(0, 0));
  EXPECT_FALSE(ranges->has(0x5120, 64));
  ranges->add(0x5120, 64);
  EXPECT_TRUE(ranges->has(0x5120, 64));
  EXPECT_FALSE(ranges->has(0x5120, 68)) << "it may end beyond its memory";
  EXPECT_FALSE(ranges->has(0x5120, 60));
  EXPECT_FALSE(ranges->has(0x5124, 60));
  ranges->add(0, 0);
  EXPECT_TRUE(ranges->has(0, 0));
}

TEST(RangeSet, KeepsThousandsOfRangesAndForgetsOldOnesForNewOnes) {
  const auto ranges = std::make_unique<RangeSet>();
  constexpr uint64_t base = uint64_t{0x7f} << 40, step = 512;
  const auto bytes = [](uint64_t i) { return 4 * (i % 7 + 1); };
  for (uint64_t i = 0; i < 4000; ++i) ranges->add(base + i * step, bytes(i));
  for (uint64_t i = 0; i < 4000; ++i) EXPECT_TRUE(ranges->has(base + i * step, bytes(i))) << i;
  for (uint64_t i = 0; i < 200000; ++i) {
    ranges->add(base + i * step, bytes(i));
    EXPECT_TRUE(ranges->has(base + i * step, bytes(i))) << i;
  }
}

// Each context has one: 16,384 marks of 8 bytes, and two counters on lines of their own.
TEST(RangeSet, TakesNoMoreMemoryThanItsMarks) {
  EXPECT_LE(sizeof(RangeSet), 8U * 16384 + 2 * 64);
}

TEST(RangeSet, ForgetsAllAtOnce) {
  const auto ranges = std::make_unique<RangeSet>();
  for (uint64_t i = 0; i < 100; ++i) ranges->add(i << 8, 64);
  ranges->clear();
  for (uint64_t i = 0; i < 100; ++i) EXPECT_FALSE(ranges->has(i << 8, 64)) << i;
  ranges->add(0, 64);
  EXPECT_TRUE(ranges->has(0, 64));
}

TEST(RangeSet, IsSharedByThreads) {
  const auto ranges = std::make_unique<RangeSet>();
  std::vector<std::jthread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 100; ++i) {
        ranges->add((t * 100 + i) << 8, i);
        EXPECT_TRUE(ranges->has((t * 100 + i) << 8, i));
      }
    });
  }
}

}  // namespace
}  // namespace kiln::device::range_set_test
