// Weights of the positions between elements, where Resize becomes a product with a matrix.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "listing.h"

namespace kiln::test::onnx_resize_test {
namespace {

/// The first row of that matrix: what the first element of the result is made of, for `extent` elements along the last
/// of two dimensions, scaled by `scale`.
std::vector<float> first_weights(int64_t extent, float scale, const Attributes& attributes) {
  OnnxModel model(18);
  model.input("x", {1, extent});
  model.weights("scales", {2}, {1, scale});
  model.node("Resize", {"x", "", "scales"}, {"y"}, attributes);
  const models::Lowered made = lowered(model);
  const graph::Graph& graph = made.model.graph;
  for (graph::ValueId id = 0; id < graph.count(); ++id) {
    if (!graph.is_constant(id) || graph.value(id).extents.size() != 2 || graph.value(id).extents[1] != extent) continue;
    std::vector<float> row(static_cast<size_t>(extent));
    std::memcpy(row.data(), graph.bytes(id)->data(), row.size() * sizeof(float));
    return row;
  }
  ADD_FAILURE() << "no matrix";
  return {};
}

testing::Matcher<std::vector<float>> are(const std::vector<float>& expected) {
  return testing::Pointwise(testing::FloatNear(1e-6F), expected);
}

// By Keys' cubic of -0.75 at distances 1.75, 0.75, 0.25 and 1.25 of position -0.25; the first two elements are outside.
TEST(OnnxResize, ElementsOutsideAreThoseOfTheEdgeOrDoNotCount) {
  constexpr float far = -0.03515625F, left = 0.26171875F, here = 0.87890625F, right = -0.10546875F;
  EXPECT_THAT(first_weights(4, 2, {{"mode", "cubic"}}), are({far + left + here, right, 0, 0}));
  EXPECT_THAT(first_weights(4, 2, {{"mode", "cubic"}, {"exclude_outside", 1}}),
              are({here / (here + right), right / (here + right), 0, 0}));
}

TEST(OnnxResize, ScalesThatAreNoneAreNamed) {
  const auto scaled_by = [](float scale) {
    OnnxModel model(18);
    model.input("x", {1, 4}).weights("scales", {2}, {1, scale});
    model.node("Resize", {"x", "", "scales"}, {"y"});
    return model;
  };
  constexpr float infinite = std::numeric_limits<float>::infinity();
  const std::string expected = ", expected a positive number";
  expect_error(scaled_by(std::numeric_limits<float>::quiet_NaN()),
               "node 'y' (Resize): the scale of dimension 1 is nan" + expected);
  expect_error(scaled_by(infinite), "the scale of dimension 1 is inf" + expected);
  expect_error(scaled_by(-1), "the scale of dimension 1 is -1" + expected);
  EXPECT_THAT(reasons_of(scaled_by(1e30F)),
              testing::ElementsAre(testing::HasSubstr(
                  "the scale of dimension 1 is 1.0000000150474662e+30, and up to 16777216 are covered")));
}

// A result of half the size weighs four elements round position 0.5, the first of which is outside: 1, 3, 3, 1.
TEST(OnnxResize, SoItIsWhereItAntialiases) {
  EXPECT_THAT(first_weights(4, 0.5F, {{"mode", "linear"}, {"antialias", 1}}), are({4 / 8.F, 3 / 8.F, 1 / 8.F, 0}));
  EXPECT_THAT(first_weights(4, 0.5F, {{"mode", "linear"}, {"antialias", 1}, {"exclude_outside", 1}}),
              are({3 / 7.F, 3 / 7.F, 1 / 7.F, 0}));
}

}  // namespace
}  // namespace kiln::test::onnx_resize_test
