// The references of the tensor functions, against values worked out by hand.
#include "kiln/generator/operations/tensor_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "call.h"
#include "kiln/reference/tolerance.h"

namespace kiln::reference::tensor_ops_test {
namespace {

using testing::ElementsAre;
using testing::IsNan;

constexpr double infinity = std::numeric_limits<double>::infinity();

double op_of(std::string_view mode, double a, double b = 0) {
  const bool is_binary =
      mode != "sqrt" && mode != "exp" && mode != "log" && mode != "abs" && mode != "neg" && mode != "not";
  Call call("tensor_op a=f32:1 " + std::string(is_binary ? "b=f32:1 " : "") + "mode=" + std::string(mode));
  call.set("a", {a});
  if (is_binary) call.set("b", {b});
  return call.results().front();
}

TEST(TensorOpReference, ComputesWhatItsNameSays) {
  EXPECT_EQ(op_of("add", 3, 0.5), 3.5);
  EXPECT_EQ(op_of("sub", 3, 0.5), 2.5);
  EXPECT_EQ(op_of("mul", 3, 0.5), 1.5);
  EXPECT_EQ(op_of("div", 3, 0.5), 6);
  EXPECT_EQ(op_of("min", 3, 0.5), 0.5);
  EXPECT_EQ(op_of("max", 3, 0.5), 3);
  EXPECT_EQ(op_of("pow", 4, 0.5), 2);
  EXPECT_EQ(op_of("sqrt", 9), 3);
  EXPECT_EQ(op_of("exp", 0), 1);
  EXPECT_EQ(op_of("log", 1), 0);
  EXPECT_EQ(op_of("abs", -9), 9);
  EXPECT_EQ(op_of("neg", -9), 9);
}

TEST(TensorOpReference, ComparesAsIeeeSays) {
  const double nan = std::nan("");
  struct Row {
    const char* mode;
    double less, equal, greater, unordered;
  };
  for (const Row& row : {Row{"eq", 0, 1, 0, 0}, Row{"ne", 1, 0, 1, 1}, Row{"lt", 1, 0, 0, 0}, Row{"le", 1, 1, 0, 0},
                         Row{"gt", 0, 0, 1, 0}, Row{"ge", 0, 1, 1, 0}}) {
    EXPECT_EQ(op_of(row.mode, 1, 2), row.less) << row.mode;
    EXPECT_EQ(op_of(row.mode, 2, 2), row.equal) << row.mode;
    EXPECT_EQ(op_of(row.mode, -0.0, 0), row.equal) << row.mode;
    EXPECT_EQ(op_of(row.mode, 3, 2), row.greater) << row.mode;
    EXPECT_EQ(op_of(row.mode, nan, 2), row.unordered) << row.mode;
  }
  EXPECT_EQ(op_of("not", 0), 1);
  EXPECT_EQ(op_of("not", 2), 0);
  EXPECT_EQ(op_of("not", nan), 0);
}

TEST(TensorOpReference, HasTheSpecialValuesOfIeeeArithmetic) {
  const double nan = std::nan("");
  EXPECT_THAT(op_of("min", nan, 1), IsNan());
  EXPECT_THAT(op_of("max", 1, nan), IsNan());
  EXPECT_THAT(op_of("div", 0, 0), IsNan());
  EXPECT_EQ(op_of("div", 1, 0), infinity);
  EXPECT_THAT(op_of("sqrt", -1), IsNan());
  EXPECT_EQ(op_of("log", 0), -infinity);
  EXPECT_EQ(op_of("pow", nan, 0), 1);
  EXPECT_THAT(op_of("pow", -2, 0.5), IsNan());
  EXPECT_THAT(op_of("sub", infinity, infinity), IsNan());
}

TEST(TensorOpReference, RepeatsInputsOfExtentOne) {
  Call call("tensor_op a=u8:2x1 b=f32:1x3 c=f32:2x3 mode=select");
  call.set("a", {1, 0}).set("b", {10, 20, 30}).set("c", {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(call.results(), ElementsAre(10, 20, 30, 4, 5, 6));
}

TEST(TensorTransformReference, PadsAndRepeats) {
  Call call("tensor_transform x=f32:2x1 y=f32:3x3 pad=1,0,0,0");
  call.set("x", {5, 6});
  Bindings bindings = call.bindings();
  bindings.values.operation_scalars = {-1};
  EXPECT_THAT(evaluate(call.request, bindings), ElementsAre(-1, -1, -1, 5, 5, 5, 6, 6, 6));
}

TEST(TensorTransformReference, CopiesIntegersThatArithmeticRounds) {
  for (const char* line : {"tensor_transform x=i32:1", "tensor_transform x=i32:1 alpha=any"}) {
    Call call(line);
    call.set("x", {16777217});
    EXPECT_EQ(call.results().front(), std::string(line).ends_with("any") ? 16777216 : 16777217) << line;
  }
}

TEST(TensorTransformReference, StoresIntegersToTheNearestSaturated) {
  Call call("tensor_transform x=f32:6 y=i8:6 alpha=any");
  call.set("x", {1.25, 0.75, -1.25, 300, -1000, std::nan("")});
  call.alpha = 2;
  const std::vector<double> expected = {2, 2, -2, 127, -128, 0};
  const std::vector<Expected> results = Oracle(call.request, call.bindings()).all();
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(is_right(call.request, results[i], expected[i])) << i;
    EXPECT_FALSE(is_right(call.request, results[i], expected[i] - (expected[i] > 0 ? 1 : -1))) << i;
  }
}

TEST(TensorSetReference, RoundsToTheStoredType) {
  Call call("tensor_set y=f16:2");
  Bindings bindings = call.bindings();
  bindings.values.operation_scalars = {0.1F};
  EXPECT_THAT(evaluate(call.request, bindings), ElementsAre(0.1F, 0.1F));
}

}  // namespace
}  // namespace kiln::reference::tensor_ops_test
