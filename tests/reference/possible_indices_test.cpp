// Positions of extremes where elements may move: held against what the reference names for every sign of the
// perturbations.
#include "kiln/reference/possible_indices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "kiln/generator/operation.h"
#include "kiln/reference/reference.h"

namespace kiln::reference::possible_indices_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAreArray;
using Floats = std::vector<float>;

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

std::map<std::string, std::span<const std::byte>> operands_of(const Floats& x) {
  return {{"x", std::as_bytes(std::span(x))}};
}

std::map<size_t, std::vector<double>> possible(const std::string& line, const Floats& x, const Floats& perturbations) {
  return possible_indices(Request::parse(line), operands_of(x), perturbations);
}

void expect_those_that_are_named(const std::string& line, const Floats& x, const Floats& perturbations) {
  SCOPED_TRACE(line);
  const Request request = Request::parse(line);
  std::vector<std::set<double>> named(static_cast<size_t>(request.at("indices").elements()));
  for (unsigned signs = 0; signs < 1U << x.size(); ++signs) {
    Floats moved = x;
    for (size_t i = 0; i < moved.size(); ++i) moved[i] += (signs >> i & 1U) != 0 ? perturbations[i] : -perturbations[i];
    const std::vector<double> there = reference::evaluate(request, {.operands = operands_of(moved)}, "indices");
    for (size_t i = 0; i < there.size(); ++i) named[i].insert(there[i]);
  }
  const std::map<size_t, std::vector<double>> all = possible(line, x, perturbations);
  size_t several = 0;
  for (size_t i = 0; i < named.size(); ++i) {
    if (named[i].size() == 1) {
      EXPECT_EQ(all.count(i), 0) << "element " << i;
    } else {
      ++several;
      ASSERT_EQ(all.count(i), 1) << "element " << i;
      EXPECT_THAT(all.at(i), UnorderedElementsAreArray(named[i])) << "element " << i;
    }
  }
  EXPECT_GT(several, 0) << "nothing was shown";
}

TEST(PossibleIndices, AreThoseThatSomeMovesLeadTo) {
  for (const char* mode : {"min", "max", "amax"}) {
    for (const char* axes : {"1", "0"}) {
      const std::string indices = axes == std::string("1") ? "3x1" : "1x4";
      expect_those_that_are_named("reduce x=f32:3x4 indices=i32:" + indices + " axes=" + axes + " mode=" + mode,
                                  {1, 1.25F, 1, -2, 3, 3, -3, 1, -1, 2, -2, 2},
                                  {0.25F, 0, 0, 0.5F, 0, 0.5F, 0.125F, 0, 0.5F, 1, 0.5F, 0.5F});
    }
  }
  expect_those_that_are_named("pool_forward x=f32:1x1x3x4 indices=i32:1x1x2x4 mode=max window=2,3 pad=0,1",
                              {1, 1.25F, 1, -2, 3, 3, -3, 1, -1, 2, -2, 2},
                              {0.25F, 0, 0, 0.5F, 0, 0.5F, 0.125F, 0, 0.5F, 1, 0.5F, 0.5F});
}

TEST(PossibleIndices, AreOneWhereNothingMoves) {
  const std::string rows = "reduce x=f32:2x3 indices=i32:2x1 axes=1 mode=max";
  EXPECT_THAT(possible(rows, {1, 1, 1, 2, infinity, infinity}, Floats(6, 0)), IsEmpty());
  EXPECT_THAT(possible(rows, {1, 1, 1, 2, infinity, infinity}, {0, 0, 0, 0.5F, 0, 0}), IsEmpty());
  EXPECT_THAT(possible(rows, {-infinity, -infinity, -infinity, 1, 3, 2}, {0, 0, 0, 0.5F, 0.5F, 0.25F}), IsEmpty());
}

// The first NaN of a reduction and the last of a window; whatever may be NaN, or anything else, comes before it or not.
TEST(PossibleIndices, MayBeThoseOfNaNs) {
  const std::string rows = "reduce x=f32:2x4 indices=i32:2x1 axes=1 mode=max";
  EXPECT_THAT(possible(rows, {1, nan, 5, nan, 4, 5, 1, 2}, {infinity, 0, 0, 0, 0, 0, 0, infinity}),
              ElementsAre(Pair(0, ElementsAre(0, 1)), Pair(1, ElementsAre(1, 3))));
  EXPECT_THAT(possible("pool_forward x=f32:1x1x4 indices=i32:1x1x1 mode=max window=4", {5, nan, 5, nan}, {0, 0, 0, 1}),
              IsEmpty());
  EXPECT_THAT(possible("pool_forward x=f32:1x1x4 indices=i32:1x1x1 mode=max window=4", {5, nan, 1, 2},
                       {infinity, 0, 0, infinity}),
              ElementsAre(Pair(0, ElementsAre(3, 1))));
}

}  // namespace
}  // namespace kiln::reference::possible_indices_test
