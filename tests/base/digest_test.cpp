#include "kiln/base/digest.h"

#include <gtest/gtest.h>

namespace kiln::digest_test {
namespace {

TEST(Digest, IsStable) {
  // Digests are stored in caches: a change here makes every stored record stale.
  EXPECT_EQ(digest_of("kiln"), "d7554ff2c94048926eb5bc6c868856ce");
  EXPECT_EQ(Digest().add("a").add("").hex(), "16f82f671635b049584621410478c6c1");
  EXPECT_EQ(digest_of("").size(), 32u);
}

TEST(Digest, TellsFieldBoundariesApart) {
  EXPECT_NE(Digest().add("ab").add("c").hex(), Digest().add("a").add("bc").hex());
  EXPECT_NE(Digest().add("a").hex(), Digest().add("a").add("").hex());
}

}  // namespace
}  // namespace kiln::digest_test
