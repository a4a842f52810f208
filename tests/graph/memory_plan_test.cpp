#include "kiln/graph/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <random>

#include "kiln/base/error.h"

namespace kiln::graph::memory_plan_test {
namespace {

int64_t rounded(int64_t bytes) {
  return (bytes + memory_alignment - 1) / memory_alignment * memory_alignment;
}

void expect_apart(const std::vector<Lifetime>& lives, const MemoryPlan& plan) {
  for (size_t i = 0; i < lives.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % memory_alignment, 0);
    EXPECT_LE(plan.offsets[i] + lives[i].bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool at_once = lives[i].first <= lives[j].last && lives[j].first <= lives[i].last;
      const bool apart =
          plan.offsets[i] + lives[i].bytes <= plan.offsets[j] || plan.offsets[j] + lives[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(!at_once || apart) << i << " and " << j;
    }
  }
}

TEST(MemoryPlan, ChainNeedsTwoNeighboursAtATime) {
  const std::vector<Lifetime> chain = {{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}, {1000, 3, 4}};
  const MemoryPlan plan = plan_memory(chain);
  expect_apart(chain, plan);
  EXPECT_EQ(plan.bytes, 2 * 1024);
  EXPECT_EQ(plan.least, 2 * 1024);
}

TEST(MemoryPlan, SizesWhoseSumDoesNotFit64BitsAreRefused) {
  const int64_t large = int64_t{1} << 60;
  EXPECT_THROW((void)plan_memory(std::vector<Lifetime>(17, {large, 0, 1})), Error);
  EXPECT_THROW((void)plan_memory(std::vector<Lifetime>{{std::numeric_limits<int64_t>::max(), 0, 1}}), Error);
  EXPECT_THROW((void)plan_memory(std::vector<Lifetime>{{-1, 0, 1}}), Error);
  EXPECT_EQ(plan_memory(std::vector<Lifetime>(7, {large, 0, 1})).bytes, 7 * large);
}

TEST(MemoryPlan, WhatLivesAllTheTimeSharesWithNothing) {
  const std::vector<Lifetime> lives = {{512, 0, 9}, {256, 0, 3}, {256, 4, 9}};
  const MemoryPlan plan = plan_memory(lives);
  expect_apart(lives, plan);
  EXPECT_EQ(plan.bytes, 768);
}

// 2^33 pairs. Memory of those that end is used again, also where nobody looks for gaps any more.
TEST(MemoryPlan, ManyValuesTakeNoSquareOfTime) {
  constexpr size_t count = 130'000;
  std::vector<Lifetime> at_once(count, {256, 0, count}), chain;
  // In the second half the memory of each neighbour would be large enough.
  for (size_t i = 0; i < count; ++i)
    chain.push_back({i < count / 2 ? static_cast<int64_t>(256 + i % 7 * 256) : 256, i, i + 1});
  const std::clock_t before = std::clock();
  const MemoryPlan together = plan_memory(at_once), behind = plan_memory(chain);
  EXPECT_LT(std::clock() - before, 30 * CLOCKS_PER_SEC);
  EXPECT_EQ(together.bytes, static_cast<int64_t>(count) * 256);
  std::vector<int64_t> offsets = together.offsets;
  std::sort(offsets.begin(), offsets.end());
  for (size_t i = 0; i < count; ++i) ASSERT_EQ(offsets[i], static_cast<int64_t>(i) * 256);
  EXPECT_LE(behind.bytes, 4 * behind.least);
  for (size_t i = 1; i < count; ++i) {
    const int64_t a = behind.offsets[i - 1], b = behind.offsets[i];
    ASSERT_TRUE(a + chain[i - 1].bytes <= b || b + chain[i].bytes <= a) << i;
    ASSERT_LE(b + chain[i].bytes, behind.bytes);
  }
}

// Behind so many values that nobody looks for gaps: of two that begin together the larger one has the choice.
TEST(MemoryPlan, LargerOfTwoThatBeginTogetherTakesTheMemoryOfOneThatEnded) {
  constexpr size_t count = 24'000;  // 2^28.1 pairs
  std::vector<Lifetime> lives(count, {4096, 0, 2});
  lives.push_back({2048, 0, 0});
  lives.push_back({1024, 1, 1});
  lives.push_back({2048, 1, 1});
  EXPECT_EQ(plan_memory(lives).bytes, static_cast<int64_t>(count) * 4096 + 2048 + 1024);
}

TEST(MemoryPlan, NothingNeedsNoMemory) {
  EXPECT_EQ(plan_memory({}).bytes, 0);
  const std::vector<Lifetime> empty = {{0, 0, 3}, {0, 0, 3}};
  EXPECT_EQ(plan_memory(empty).bytes, 0);
}

TEST(MemoryPlan, RandomLivesNeverOverlapAndStayNearTheLeast) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> lives;
    int64_t all = 0;
    for (int i = 0; i < 60; ++i) {
      const auto first = static_cast<size_t>(random() % 40);
      lives.push_back({static_cast<int64_t>(random() % 5000), first, first + random() % 8});
      all += rounded(lives.back().bytes);
    }
    const MemoryPlan plan = plan_memory(lives);
    expect_apart(lives, plan);
    EXPECT_GE(plan.bytes, plan.least);
    EXPECT_LE(plan.bytes, plan.least * 3 / 2) << "of " << all;
  }
}

}  // namespace
}  // namespace kiln::graph::memory_plan_test
