// Extents of inputs: what a file fixes, what it leaves open, and what a caller makes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/frontends/onnx.h"
#include "onnx_model.h"

namespace kiln::onnx_inputs_test {
namespace {

using graph::Extents;
using test::OnnxModel;
using testing::ElementsAre;
using testing::HasSubstr;

using Shapes = std::map<std::string, Extents>;

OnnxInputs inputs_of(OnnxModel& model) {
  model.node("Identity", {"x"}, {"y"});
  model.output("y");
  const test::TemporaryFile file(model.bytes());
  return OnnxFile(file.path()).inputs();
}

TEST(OnnxInputs, AreDeclaredByTheFile) {
  OnnxModel model;
  model.weights("w", {3})
      .input("w", {3})
      .input("x", {"N", 3, "height", ""})
      .input("mask", {"N"}, onnx::TensorProto::BOOL);
  const OnnxInputs inputs = inputs_of(model);
  ASSERT_EQ(inputs.all().size(), 2U) << "w has an initial value";
  EXPECT_TRUE(inputs.has_open_batch());
  EXPECT_TRUE(inputs.has_open_extents());
  EXPECT_EQ(inputs.batch(), std::nullopt);
  const OnnxInput& x = inputs.all()[0];
  EXPECT_EQ(OnnxInputs::text_of(x), "'x' [N, 3, height, ?]");
  EXPECT_EQ(x.extents[1].fixed, 3);
  EXPECT_TRUE(x.extents[0].is_batch && !x.extents[1].is_batch && !x.extents[2].is_batch);
  EXPECT_EQ(inputs.all()[1].type, "bool");
  EXPECT_EQ(inputs.all()[1].dtype, DType::u8);
}

TEST(OnnxInputs, TakeOpenExtentsFromOthersOfTheSameName) {
  OnnxModel model;
  model.input("x", {"N", "length"}).input("mask", {"N", 1, "length", "length"}).input("z", {"N", "width"});
  const OnnxInputs inputs = inputs_of(model);
  const ResolvedInputs both = inputs.resolve({}, {{"x", {2, 7}}, {"z", {2, 5}}});
  EXPECT_THAT(both.extents, ElementsAre(Extents{2, 7}, Extents{2, 1, 7, 7}, Extents{2, 5}));
  EXPECT_EQ(both.batch, 2);
  EXPECT_EQ(both.symbols, (std::map<std::string, int64_t>{{"N", 2}, {"length", 7}, {"width", 5}}));
  EXPECT_THAT(inputs.resolve(3, {{"mask", {3, 1, 9, 9}}, {"z", {3, 4}}}).extents[0], (Extents{3, 9}));
  EXPECT_THAT(inputs.with_batch(both.extents, 4), (Shapes{{"x", {4, 7}}, {"mask", {4, 1, 7, 7}}, {"z", {4, 5}}}));
}

// Some exporters name all open extents alike.
TEST(OnnxInputs, TakeNothingFromANameWithSeveralExtents) {
  OnnxModel model;
  model.input("x", {1, "unknown", "unknown"}).input("z", {1, "unknown"});
  const OnnxInputs inputs = inputs_of(model);
  EXPECT_THAT(inputs.resolve({}, {{"x", {1, 7, 7}}}).extents[1], (Extents{1, 7}));
  const ResolvedInputs given = inputs.resolve({}, {{"x", {1, 7, 5}}, {"z", {1, 3}}});
  EXPECT_THAT(given.extents, ElementsAre(Extents{1, 7, 5}, Extents{1, 3}));
  EXPECT_TRUE(given.symbols.empty());
  EXPECT_THROW(inputs.resolve({}, {{"x", {1, 7, 5}}}), Error) << "z stays open";
}

TEST(OnnxInputs, TakeNothingFromTheNameOfTheBatchEither) {
  OnnxModel model;
  model.input("x", {"unk", 3, "unk", "unk"}).input("z", {"unk", 5});
  const OnnxInputs inputs = inputs_of(model);
  EXPECT_TRUE(inputs.has_open_batch());
  EXPECT_TRUE(inputs.has_open_extents());
  const ResolvedInputs given = inputs.resolve({}, {{"x", {2, 3, 7, 9}}});
  EXPECT_THAT(given.extents, ElementsAre(Extents{2, 3, 7, 9}, Extents{2, 5}));
  EXPECT_EQ(given.batch, 2);
}

TEST(OnnxInputs, HaveTheBatchOfShapesOptionsOrFile) {
  OnnxModel open, fixed;
  open.input("x", {"", 3}).input("z", {"", 3});
  fixed.input("x", {2, 3}).input("z", {2, 3}).input("k", {1, 3});
  const OnnxInputs of_open = inputs_of(open), of_fixed = inputs_of(fixed);
  EXPECT_EQ(of_open.resolve({}, {}).batch, 1);
  EXPECT_THAT(of_open.resolve(4, {}).extents, ElementsAre(Extents{4, 3}, Extents{4, 3}));
  EXPECT_THAT(of_open.resolve({}, {{"z", {5, 3}}}).extents, ElementsAre(Extents{5, 3}, Extents{5, 3}));
  EXPECT_EQ(of_fixed.batch(), 2);
  EXPECT_FALSE(of_fixed.has_open_batch());
  EXPECT_THAT(of_fixed.resolve(6, {}).extents, ElementsAre(Extents{6, 3}, Extents{6, 3}, Extents{1, 3}));
  EXPECT_THAT(of_fixed.resolve({}, {{"x", {6, 3}}}).extents, ElementsAre(Extents{6, 3}, Extents{6, 3}, Extents{1, 3}));
}

TEST(OnnxInputs, RefuseWhatTheFileDoesNotPermit) {
  OnnxModel model;
  model.input("x", {2, "length"}).input("z", {2, 3});
  const OnnxInputs inputs = inputs_of(model);
  struct Row {
    std::optional<int64_t> batch;
    Shapes shapes;
    const char *message, *hint;
  };
  for (const Row& row : std::vector<Row>{
           {{}, {{"q", {1}}}, "the model has no input 'q'", "it has x, z"},
           {{},
            {{"x", {2, 3, 4}}},
            "'x' is given as 2x3x4: it has 3 dimensions, expected 2",
            "declares 'x' [2, length]"},
           {{}, {{"x", {2, -1}}}, "extent 1 is below 0", "declares"},
           {{}, {{"z", {2, 4}}, {"x", {2, 4}}}, "'z' is given as 2x4: extent 1 is 4, expected 3", "declares"},
           {{}, {{"z", {3, 3}}, {"x", {2, 4}}}, "'z' is given as 3x3: the batch is 2", "declares"},
           {0, {{"x", {0, 4}}}, "the batch is 0, expected 1 or more", ""},
           {3, {{"x", {2, 4}}}, "the batch is 3, and the given shapes have 2", "one of both"},
           {{}, {}, "leaves extents of inputs open: 'x' [2, length]", "--shape"}}) {
    try {
      (void)inputs.resolve(row.batch, row.shapes);
      ADD_FAILURE() << row.message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.message(), HasSubstr(row.message));
      EXPECT_THAT(error.hint(), HasSubstr(row.hint));
    }
  }
}

TEST(OnnxInputs, FirstExtentsOfSeveralNamesMayDiffer) {
  OnnxModel model;
  model.input("x", {"N", 3}).input("boxes", {"count", 4}).input("z", {1, "count"});
  const OnnxInputs inputs = inputs_of(model);
  const ResolvedInputs given = inputs.resolve({}, {{"x", {2, 3}}, {"boxes", {5, 4}}});
  EXPECT_THAT(given.extents, ElementsAre(Extents{2, 3}, Extents{5, 4}, Extents{1, 5}));
  EXPECT_EQ(given.batch, 2);
}

TEST(OnnxInputs, TheNameOfTheBatchIsTheBatchElsewhereToo) {
  OnnxModel model;
  model.input("x", {"N", 3}).input("z", {4, "N"});
  const OnnxInputs inputs = inputs_of(model);
  EXPECT_FALSE(inputs.has_open_extents());
  EXPECT_THAT(inputs.with_batch({{1, 3}, {4, 1}}, 7), (Shapes{{"x", {7, 3}}, {"z", {4, 7}}}));
}

TEST(OnnxInputs, ANameOfTheBatchWithSeveralExtentsHasNone) {
  OnnxModel model;
  model.input("x", {"N", 3}).input("z", {"N", 3});
  EXPECT_TRUE(inputs_of(model).resolve({}, {{"x", {2, 3}}, {"z", {5, 3}}}).symbols.empty());
}

}  // namespace
}  // namespace kiln::onnx_inputs_test
