#include "kiln/base/checked.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kiln::checked_test {
namespace {

constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();

TEST(Checked, ResultsThatDoNotFitAreNothing) {
  EXPECT_EQ(checked_add(most, 0), most);
  EXPECT_EQ(checked_add(most, 1), std::nullopt);
  EXPECT_EQ(checked_add(least, -1), std::nullopt);
  EXPECT_EQ(checked_subtract(-1, least), most);
  EXPECT_EQ(checked_subtract(0, least), std::nullopt);
  EXPECT_EQ(checked_multiply(int64_t{1} << 31, int64_t{1} << 31), int64_t{1} << 62);
  EXPECT_EQ(checked_multiply(int64_t{1} << 32, int64_t{1} << 31), std::nullopt);
  EXPECT_EQ(checked_multiply(least, -1), std::nullopt);
}

TEST(Checked, QuotientsAreTowardsZero) {
  EXPECT_EQ(checked_divide(-7, 2), -3);
  EXPECT_EQ(checked_divide(7, -1), -7);
  EXPECT_EQ(checked_divide(least, 1), least);
  EXPECT_EQ(checked_divide(least, -1), std::nullopt);
  EXPECT_EQ(checked_divide(7, 0), std::nullopt);
}

TEST(Checked, NumbersAreTruncatedWhereTheyFit) {
  EXPECT_EQ(checked_truncate(-2.9), -2);
  EXPECT_EQ(checked_truncate(std::ldexp(-1, 63)), least);
  EXPECT_EQ(checked_truncate(std::nextafter(std::ldexp(1, 63), 0)), most - 1023);
  EXPECT_EQ(checked_truncate(std::ldexp(1, 63)), std::nullopt);
  EXPECT_EQ(checked_truncate(std::nextafter(std::ldexp(-1, 63), -INFINITY)), std::nullopt);
  EXPECT_EQ(checked_truncate(NAN), std::nullopt);
  EXPECT_EQ(checked_truncate(-INFINITY), std::nullopt);
}

TEST(Checked, ElementsOfATensorCountZerosToo) {
  const auto elements = [](const std::vector<int64_t>& extents) { return checked_elements(extents, most); };
  EXPECT_EQ(elements({}), 1);
  EXPECT_EQ(elements({3, 4}), 12);
  EXPECT_EQ(elements({0, 4}), 0);
  EXPECT_EQ(elements({0, -7}), std::nullopt);
  EXPECT_EQ(elements({-1}), std::nullopt);
  EXPECT_EQ(elements({int64_t{1} << 32, int64_t{1} << 32}), std::nullopt);
  EXPECT_EQ(elements({0, int64_t{1} << 32, int64_t{1} << 32}), std::nullopt);
  EXPECT_EQ(checked_elements(std::vector<int64_t>{3, 4}, 11), std::nullopt);
  EXPECT_EQ(checked_elements(std::vector<int64_t>{3, 4}, 12), 12);
  EXPECT_EQ(checked_elements(std::vector<int64_t>{most}), most) << "as many as 64 bits count, unless less is asked for";
}

}  // namespace
}  // namespace kiln::checked_test
