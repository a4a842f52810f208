#include "kiln/base/tie.h"

#include <gtest/gtest.h>

namespace kiln::tie_test {
namespace {

TEST(Tie, IsWithinTwoPercentOfTheFastest) {
  EXPECT_DOUBLE_EQ(tie_limit(1), 1.01);
  EXPECT_DOUBLE_EQ(tie_limit(1e-5), 1.01e-5);
  EXPECT_EQ(tie_limit(0), 0);
}

TEST(Tie, IsSettledByWorkspaceThenDeterminismThenNames) {
  const TieRank best{10, false, "b", "b"};
  EXPECT_LT((TieRank{9, true, "z", "z"}), best);
  EXPECT_LT(best, (TieRank{10, true, "a", "a"}));
  EXPECT_LT((TieRank{10, false, "a", "z"}), best);
  EXPECT_LT((TieRank{10, false, "b", "a"}), best);
  EXPECT_EQ((TieRank{10, false, "b", "b"}), best);
}

}  // namespace
}  // namespace kiln::tie_test
