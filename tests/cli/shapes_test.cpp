// --shape: lists and ranges of extents.
#include "shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"

namespace kiln::cli::shapes_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

OnnxInputs inputs() {
  std::vector<OnnxInput> all(2);
  all[0].name = "x";
  all[1].name = "size=x";  // names may hold anything
  return {all, std::nullopt};
}

TEST(Shapes, AreOfNamedInputsOrOfTheNext) {
  EXPECT_THAT(parse_shapes({}, inputs()), ElementsAre(InputShapes{}));
  EXPECT_THAT(parse_shapes({"1x3x7"}, inputs()), ElementsAre(InputShapes{{"x", {1, 3, 7}}}));
  EXPECT_THAT(parse_shapes({"size=x=4", "2x0"}, inputs()), ElementsAre(InputShapes{{"x", {2, 0}}, {"size=x", {4}}}));
  EXPECT_THAT(parse_shapes({"2", "4"}, inputs()), ElementsAre(InputShapes{{"x", {2}}, {"size=x", {4}}}));
}

TEST(Shapes, MayBeListsAndRanges) {
  EXPECT_THAT(parse_shapes({"x=1x2,1x3", "size=x=9"}, inputs()),
              ElementsAre(InputShapes{{"x", {1, 2}}, {"size=x", {9}}}, InputShapes{{"x", {1, 3}}, {"size=x", {9}}}));
  EXPECT_THAT(parse_shapes({"x=1,2", "size=x=8,9"}, inputs()),
              ElementsAre(InputShapes{{"x", {1}}, {"size=x", {8}}}, InputShapes{{"x", {2}}, {"size=x", {9}}}));
  EXPECT_THAT(parse_shapes({"4..6"}, inputs()),
              ElementsAre(InputShapes{{"x", {4}}}, InputShapes{{"x", {5}}}, InputShapes{{"x", {6}}}));
  EXPECT_THAT(parse_shapes({"1x4..9/3x2..3"}, inputs()),
              ElementsAre(InputShapes{{"x", {1, 4, 2}}}, InputShapes{{"x", {1, 4, 3}}}, InputShapes{{"x", {1, 7, 2}}},
                          InputShapes{{"x", {1, 7, 3}}}));
  EXPECT_THAT(parse_shapes({"5..5,9"}, inputs()), ElementsAre(InputShapes{{"x", {5}}}, InputShapes{{"x", {9}}}));
  EXPECT_EQ(parse_shapes({"1..64x1..64"}, inputs()).size(), 4096U);
}

TEST(Shapes, HaveTheBatchWithinThatOfADynamicOne) {
  std::vector<OnnxInput> all(1);
  all[0].name = "x";
  all[0].extents = {{std::nullopt, "n", true}, {3, "", false}};
  const OnnxInputs open(all, std::nullopt);
  const auto used = [&](std::optional<int64_t> batch, bool dynamic, const InputShapes& shapes) {
    ModelOptions options{.batch = batch, .dynamic_batch = dynamic};
    use_shapes(options, shapes, open);
    EXPECT_EQ(options.batch, std::nullopt);
    return options.shapes.at("x");
  };
  EXPECT_EQ(used({}, false, {}), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(used(5, false, {}), (std::vector<int64_t>{5, 3}));
  EXPECT_EQ(used(8, true, {}), (std::vector<int64_t>{8, 3}));
  EXPECT_EQ(used(8, true, {{"x", {5, 3}}}), (std::vector<int64_t>{5, 3}));
  EXPECT_EQ(used({}, false, {{"x", {0, 3}}}), (std::vector<int64_t>{0, 3}));
  EXPECT_THROW(used(4, true, {{"x", {5, 3}}}), Error);
  EXPECT_THROW(used(4, false, {{"x", {5, 3}}}), Error);
}

TEST(Shapes, RefuseWhatIsNone) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> rows = {
      {{""}, "'' is no extent"},
      {{"x="}, "'' is no extent"},
      {{"1x"}, "'' is no extent"},
      {{"1x-3"}, "'-3' is no extent"},
      {{"1X3"}, "'1X3' is no extent"},
      {{"3.5"}, "'3.5' is no extent"},
      {{"1,"}, "'' is no extent"},
      {{"9..4"}, "'9..4' is no extent"},
      {{"4.."}, "'4..' is no extent"},
      {{"4..9/0"}, "'4..9/0' is no extent"},
      {{"9/2"}, "'9/2' is no extent"},
      {{"4x1..2/"}, "'1..2/' is no extent"},
      {{"9223372036854775808"}, "is no extent"},
      {{"0..9223372036854775807"}, "has more than 4096 numbers"},
      {{"1..4096,1"}, "gives more than 4096 sizes"},
      {{"1..65x1..64"}, "gives more than 4096 sizes"},
      {{"z=1"}, "fits no input of the model"},
      {{"1", "2", "3"}, "fits no input of the model"},
      {{"x=1", "x=2"}, "'x' is given twice"},
      {{"x=1,2", "size=x=1,2,3"}, "3 shapes, and an input before has 2"},
  };
  for (const auto& [given, message] : rows) {
    try {
      (void)parse_shapes(given, inputs());
      ADD_FAILURE() << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  }
}

}  // namespace
}  // namespace kiln::cli::shapes_test
