#include "kiln/timing/address_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::timing::address_ranges_test {
namespace {

using Range = AddressRange;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AddressRanges, AreUnited) {
  EXPECT_THAT(united({{30, 40}, {10, 20}, {20, 25}, {50, 50}, {12, 14}}), ElementsAre(Range{10, 25}, Range{30, 40}));
  EXPECT_EQ(bytes_of(united({{30, 40}, {10, 20}, {15, 25}})), 25U);
}

TEST(AddressRanges, AreTakenFromEachOther) {
  const AddressRanges ranges = {{10, 20}, {30, 40}, {50, 60}};
  EXPECT_EQ(without(ranges, {}), ranges);
  EXPECT_THAT(without(ranges, {{0, 100}}), IsEmpty());
  EXPECT_THAT(without(ranges, {{10, 15}, {35, 40}}), ElementsAre(Range{15, 20}, Range{30, 35}, Range{50, 60}));
  EXPECT_THAT(without(ranges, {{12, 14}, {16, 35}, {55, 70}}),
              ElementsAre(Range{10, 12}, Range{14, 16}, Range{35, 40}, Range{50, 55}));
}

TEST(AddressRanges, MeetWhatHoldsAByteOfThem) {
  const AddressRanges ranges = {{10, 20}, {30, 40}};
  EXPECT_TRUE(meets(ranges, 19, 25));
  EXPECT_TRUE(meets(ranges, 0, 11));
  EXPECT_TRUE(meets(ranges, 0, 100));
  EXPECT_FALSE(meets(ranges, 20, 30));
  EXPECT_FALSE(meets(ranges, 0, 10));
  EXPECT_FALSE(meets(ranges, 40, 50));
  EXPECT_FALSE(meets({}, 0, 100));
}

}  // namespace
}  // namespace kiln::timing::address_ranges_test
