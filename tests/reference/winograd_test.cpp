// The bound of what Winograd's transforms may make of a 3x3 convolution: docs/numerics.md, "Winograd".
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "call.h"
#include "kiln/reference/tolerance.h"

namespace kiln::reference::winograd_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// One tile of F(4x4), four of F(2x2).
const char* const one_tile = "conv_forward x=f32:1x1x6x6 w=f32:1x1x3x3 fast";

Call ones(const char* line, const char* input) {
  Call call(line);
  return call.set(input, std::vector<double>(36, 1)).set("w", std::vector<double>(9, 1));
}

// Zeros, but for `value` at (row, column) of x.
Call spike(const std::string& line, double value, size_t row, size_t column) {
  Call call(line);
  std::vector<double> x(36, 0);
  x[row * 6 + column] = value;
  return call.set("x", x).set("w", std::vector<double>(9, 1));
}

TEST(WinogradBound, HasTheMagnitudesOfTheTransforms) {
  constexpr double of_row[] = {16, 17, 24, 48};  // |A^T| ((|G| 1) . (|B^T| 1)) of F(4x4)
  const Call forward = ones(one_tile, "x");
  // With that padding the gradient is the same convolution.
  const Call backward = ones("conv_backward_data dy=f32:1x1x6x6 w=f32:1x1x3x3 pad=2 fast", "dy");
  for (const Call& call : {forward, backward}) {
    for (int64_t p = 0; p < 4; ++p) {
      for (int64_t q = 0; q < 4; ++q) {
        const Expected expected = at(call.request, call.bindings(), Coordinate{0, 0, p, q});
        EXPECT_NEAR(expected.magnitude, of_row[p] * of_row[q], 1e-9);
        EXPECT_EQ(expected.roundings, 1 + 15 + 1 + 1);
        EXPECT_EQ(expected.value, 9);
        EXPECT_EQ(arithmetic_error(call.request, expected), 0) << "sums of integers are exact";
      }
    }
  }
}

TEST(WinogradBound, IsOnlyForRequestsThatPermitIt) {
  for (const auto& [line, roundings] : {std::pair{"conv_forward x=f32:1x1x6x6 w=f32:1x1x3x3", 9},
                                        {"conv_forward x=f32:1x1x6x6 w=f32:1x1x3x3 tf32", 18}}) {
    const Call call = ones(line, "x");
    const Expected expected = at(call.request, call.bindings(), Coordinate{0, 0, 3, 3});
    EXPECT_EQ(expected.magnitude, 9);
    EXPECT_EQ(expected.roundings, roundings);
  }
}

TEST(WinogradBound, KnowsTheWholeTile) {
  const Call call = spike(one_tile, 0.1, 4, 4);
  const Expected expected = at(call.request, call.bindings(), Coordinate{0, 0, 0, 0});
  EXPECT_EQ(expected.value, 0);
  EXPECT_GT(arithmetic_error(call.request, expected), 0);
  EXPECT_LT(arithmetic_error(call.request, expected), 1e-6);
}

TEST(WinogradBound, LeavesOpenWhatASpecialValueInTheTileMakes) {
  const double nan = std::nan("");
  for (const double special : {infinity, -infinity, nan}) {
    const Call call = spike(one_tile, special, 4, 4);
    const Expected beside = at(call.request, call.bindings(), Coordinate{0, 0, 0, 0});
    for (const double got : {0.0, nan, infinity}) EXPECT_TRUE(is_right(call.request, beside, got));
    const Expected under = at(call.request, call.bindings(), Coordinate{0, 0, 3, 2});
    for (const double got : {nan, infinity, -infinity}) EXPECT_TRUE(is_right(call.request, under, got));
    EXPECT_FALSE(is_right(call.request, under, 0));

    const Call clipped = spike(std::string(one_tile) + " epilogue=relu", special, 4, 4);
    EXPECT_TRUE(at(clipped.request, clipped.bindings(), Coordinate{0, 0, 3, 2}).unspecified);
  }
}

TEST(WinogradBound, IsOpenWhereTheTransformsMayOverflow) {
  const Call large = spike(one_tile, 1e38, 4, 4), small = spike(one_tile, 1e30, 4, 4);
  EXPECT_EQ(arithmetic_error(large.request, at(large.request, large.bindings(), Coordinate{0, 0, 3, 3})), infinity);
  EXPECT_LT(arithmetic_error(small.request, at(small.request, small.bindings(), Coordinate{0, 0, 3, 3})), 1e30);
}

}  // namespace
}  // namespace kiln::reference::winograd_test
