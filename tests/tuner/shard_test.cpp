#include <gtest/gtest.h>

#include <string>

#include "kiln/base/error.h"
#include "kiln/tuner/session.h"

namespace kiln::tuner {
namespace {

TEST(Shards, CoverEveryKeyExactlyOnce) {
  for (int i = 0; i < 200; ++i) {
    int owners = 0;
    for (uint64_t shard = 0; shard < 5; ++shard) owners += Shard{shard, 5}.contains("request " + std::to_string(i));
    EXPECT_EQ(owners, 1);
  }
}

TEST(Shards, AreOfSimilarSize) {
  int mine = 0;
  for (int i = 0; i < 1000; ++i) mine += Shard{1, 4}.contains(std::to_string(i)) ? 1 : 0;
  EXPECT_NEAR(mine, 250, 60);
}

TEST(Shards, NeverMove) {
  // Shards run on different machines and days; this must not change.
  EXPECT_TRUE((Shard{0, 1}).contains("anything"));
  EXPECT_EQ(Shard::parse("2/7").index, 2U);
  EXPECT_EQ(Shard::parse("2/7").count, 7U);
}

TEST(Shards, RefuseWhatIsNoShard) {
  for (const char* text : {"", "1", "1/", "/2", "2/2", "-1/2", "1/0", "a/b", "0/1 "}) {
    EXPECT_THROW(Shard::parse(text), Error) << text;
  }
}

}  // namespace
}  // namespace kiln::tuner
