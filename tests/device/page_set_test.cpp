#include "kiln/device/page_set.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace kiln::device::page_set_test {
namespace {

TEST(PageSet, HoldsThePagesOfWhatWasAdded) {
  const auto pages = std::make_unique<PageSet>();
  EXPECT_FALSE(pages->has(0));
  EXPECT_FALSE(pages->has(0x5000));
  pages->add(0x5123);
  EXPECT_TRUE(pages->has(0x5000));
  EXPECT_TRUE(pages->has(0x5fff));
  EXPECT_FALSE(pages->has(0x4fff));
  EXPECT_FALSE(pages->has(0x6000));
  pages->add(0);
  EXPECT_TRUE(pages->has(4095));
}

TEST(PageSet, KeepsAThousandPagesAndForgetsOldOnesForNewOnes) {
  const auto pages = std::make_unique<PageSet>();
  constexpr uint64_t base = uint64_t{0x7f} << 40, page = 4096;
  for (uint64_t i = 0; i < 1000; ++i) pages->add(base + i * page);
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_TRUE(pages->has(base + i * page)) << i;
  for (uint64_t i = 0; i < 100000; ++i) {
    pages->add(base + i * page);
    EXPECT_TRUE(pages->has(base + i * page)) << i;
  }
}

TEST(PageSet, IsSharedByThreads) {
  const auto pages = std::make_unique<PageSet>();
  std::vector<std::jthread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 100; ++i) {
        pages->add((t * 100 + i) << 12);
        EXPECT_TRUE(pages->has((t * 100 + i) << 12));
      }
    });
  }
}

}  // namespace
}  // namespace kiln::device::page_set_test
