#include "kiln/base/digest.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(Digest, IsStable) {
  // Digests are stored in caches: a change here makes every stored record stale.
  EXPECT_EQ(digest_of("kiln"), digest_of("kiln"));
  EXPECT_EQ(digest_of("").size(), 32u);
}

TEST(Digest, TellsFieldBoundariesApart) {
  EXPECT_NE(Digest().add("ab").add("c").hex(), Digest().add("a").add("bc").hex());
  EXPECT_NE(Digest().add("a").hex(), Digest().add("a").add("").hex());
}

}  // namespace
}  // namespace kiln
