// The references of normalisations: mean squares by hand, gradients by central differences of the forward, special
// rows.
#include "kiln/generator/operations/norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "call.h"
#include "differences.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/tolerance.h"

namespace kiln::reference::norm_test {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::IsNan;

constexpr float epsilon = 0.0625F;

// The usual numbers of a call, but epsilon and momentum.
Bindings bindings_of(const Call& call) {
  Bindings bindings = call.bindings();
  const std::vector<ScalarDefinition>& scalars = operation(call.request.operation).scalars();
  for (size_t i = 0; i < scalars.size(); ++i) {
    const std::string& name = scalars[i].name;
    bindings.values.operation_scalars[i] = name == "epsilon"    ? epsilon
                                           : name == "momentum" ? 0.25F
                                                                : scalars[i].in_checks;
  }
  return bindings;
}

std::vector<double> results(const Call& call, std::string_view output = {}) {
  return evaluate(call.request, bindings_of(call), output);
}

TEST(NormReference, DividesByTheRootOfTheMeanSquare) {
  Call call("norm_forward x=f32:1x2 w=f32:1x2 b=f32:1x2 inv_deviation=f32:1x1 mode=rms");
  call.set("x", {3, 4}).set("w", {2, 0.5}).set("b", {0, 1});
  const double inverse = 1 / std::sqrt(12.5 + epsilon);
  EXPECT_THAT(results(call), testing::ElementsAre(DoubleNear(6 * inverse, 1e-14), DoubleNear(2 * inverse + 1, 1e-14)));
  EXPECT_THAT(results(call, "inv_deviation"), testing::ElementsAre(DoubleNear(inverse, 1e-14)));
}

TEST(NormReference, TakesTheVarianceOfOneElementForZero) {
  Call call("norm_forward x=f32:1x2 running_mean=f32:1x2 running_variance=f32:1x2 axes=0");
  call.set("x", {3, 4}).set("running_mean", {1, 1}).set("running_variance", {8, 8});
  EXPECT_THAT(results(call), testing::ElementsAre(0, 0));
  EXPECT_THAT(results(call, "running_mean"), testing::ElementsAre(1.5, 1.75));
  EXPECT_THAT(results(call, "running_variance"), testing::ElementsAre(6, 6));
}

constexpr double infinity = std::numeric_limits<double>::infinity();

// Nothing but NaN is right.
void expect_nan(const Call& call, std::string_view output, const Coordinate& coordinate) {
  Bindings bindings = call.bindings();
  bindings.values.operation_scalars = {epsilon, 0.25F};
  const Expected expected = Oracle(call.request, bindings, output).at(coordinate);
  EXPECT_THAT(expected.value, IsNan()) << output;
  EXPECT_FALSE(expected.unspecified) << output;
}

TEST(NormReference, MakesARowThatIsNotFiniteNanThroughoutAndNoOther) {
  Call call("norm_forward x=f32:2x3 mean=f32:2x1 running_mean=f32:2x1 running_variance=f32:2x1");
  call.set("x", {1, infinity, 2, -1, 0, 1}).set("running_mean", {1, std::nan("")}).set("running_variance", {1, 1});
  const std::vector<double> y = results(call);
  EXPECT_THAT(std::vector(y.begin(), y.begin() + 3), Each(IsNan()));
  EXPECT_DOUBLE_EQ(y[4], 0);
  EXPECT_THAT(results(call, "mean"), testing::ElementsAre(IsNan(), 0));
  expect_nan(call, "y", {0, 0});
  for (const char* output : {"mean", "running_mean", "running_variance"}) expect_nan(call, output, {0, 0});
  expect_nan(call, "running_mean", {1, 0});
}

TEST(NormReference, MakesNanOfNanAndOfInfinitiesThatCancel) {
  Call call("norm_inference x=f32:1x4 running_mean=f32:1x1 running_variance=f32:1x1 w=f32:1x4 b=f32:1x4 axes=1");
  call.set("x", {infinity, 2, 3, 1}).set("running_mean", {1}).set("running_variance", {1});
  call.set("w", {0, std::nan(""), infinity, infinity}).set("b", {0, 0, -infinity, 0});
  for (int64_t i = 0; i < 4; ++i) expect_nan(call, "y", {0, i});
}

// The mean of three numbers may be rounded, so that 0 times an infinity becomes an infinity.
TEST(NormReference, LeavesAnInfiniteFactorOfNothingButRoundingOpen) {
  Call call("norm_forward x=f32:1x3 w=f32:1x3");
  call.set("x", {0.1F, 0.1F, 0.1F}).set("w", {infinity, std::nan(""), 1});
  Bindings bindings = call.bindings();
  bindings.values.operation_scalars = {epsilon};
  EXPECT_TRUE(at(call.request, bindings, Coordinate{0, 0}).unspecified);
  EXPECT_FALSE(at(call.request, bindings, Coordinate{0, 1}).unspecified);
}

// Overflow of f32 on the way leaves everything open; one misplaced element does not.
TEST(NormReference, GrantsOverflowAndNothingElse) {
  Call call("norm_forward x=f32:2x3");
  call.set("x", {1e30, 2, 3, 1, 2, 6});
  Bindings bindings = call.bindings();
  bindings.values.operation_scalars = {epsilon};
  EXPECT_TRUE(is_right(call.request, at(call.request, bindings, Coordinate{0, 1}), -7));
  const Expected expected = at(call.request, bindings, Coordinate{1, 1});
  EXPECT_TRUE(is_right(call.request, expected, static_cast<float>(expected.value)));
  EXPECT_FALSE(is_right(call.request, expected, expected.value + 1e-4));
}

class NormAffineIdentity : public testing::TestWithParam<const char*> {};

TEST_P(NormAffineIdentity, IsTheForwardAsOneMultiplicationAndOneAddition) {
  const Call forward(std::string("norm_forward ") + GetParam()), affine(std::string("norm_affine ") + GetParam());
  const Oracle y(forward.request, bindings_of(forward));
  const Oracle scale(affine.request, bindings_of(affine), "scale"), shift(affine.request, bindings_of(affine), "shift");
  const TensorSpec& x = forward.request.at("x");
  for_each_coordinate(y.output(), [&](std::span<const int64_t> at) {
    Coordinate pair(at.begin(), at.end());
    for (size_t d = 0; d < pair.size(); ++d) pair[d] = scale.output().extents[d] == 1 ? 0 : pair[d];
    EXPECT_NEAR(read(x, forward.memory.at("x"), at) * scale.at(pair).value + shift.at(pair).value, y.at(at).value,
                1e-12)
        << GetParam();
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, NormAffineIdentity,
                         testing::Values("x=f32:2x3x4x5 w=f32:1x3x1x1 b=f32:1x3x1x1 axes=2,3",
                                         "x=f16:2x3x4x5:nhwc w=f16:1x3x4x1 axes=1,2,3 mode=rms",
                                         "x=f32:2x3x4 b=f32:2x1x4 axes=0,1", "x=bf16:5x7"));

TEST(NormAffineReference, MakesScaleAndShiftOfARowThatIsNotFiniteNanAndNoOthers) {
  for (const char* mode : {"standard", "rms"}) {
    Call call(std::string("norm_affine x=f32:2x3 w=f32:1x3 b=f32:1x3 mode=") + mode);
    call.set("x", {1, infinity, 2, -1, 0, 1}).set("w", {2, 2, 2}).set("b", {1, 1, 1});
    for (const char* output : {"scale", "shift"}) {
      expect_nan(call, output, {0, 1});
      EXPECT_TRUE(std::isfinite(results(call, output)[3])) << output;
    }
    EXPECT_DOUBLE_EQ(results(call, "shift")[3], 1);
  }
}

TEST(NormAffineReference, TakesMeanAndVarianceOfAnEmptyRowForZero) {
  Call call("norm_affine x=f32:2x0 w=f32:1x1 b=f32:2x1");
  call.set("w", {3}).set("b", {5, 6});
  EXPECT_THAT(results(call, "scale"), Each(DoubleNear(3 / std::sqrt(epsilon), 1e-12)));
  EXPECT_THAT(results(call, "shift"), testing::ElementsAre(5, 6));
}

// The mean of three numbers may be rounded, so that it is 0 for some kernels: 0 times an infinity is NaN.
TEST(NormAffineReference, LeavesAnInfiniteFactorOfNothingButRoundingOpen) {
  Call call("norm_affine x=f32:2x3 w=f32:1x3");
  call.set("x", {0.1F, -0.3F, 0.2F, 1, 1, 4}).set("w", {infinity, 1, std::nan("")});
  const Oracle shift(call.request, bindings_of(call), "shift");
  EXPECT_TRUE(shift.at(Coordinate{0, 0}).unspecified);
  EXPECT_FALSE(shift.at(Coordinate{0, 1}).unspecified);
  EXPECT_FALSE(shift.at(Coordinate{0, 2}).unspecified);
  EXPECT_EQ(shift.at(Coordinate{1, 0}).value, -infinity);
}

TEST(NormAffineReference, GrantsOverflow) {
  Call call("norm_affine x=f32:2x2 w=f32:1x2");
  call.set("x", {1, -1, 1e30, 1e30}).set("w", {3e38, 1});
  Bindings bindings = call.bindings();
  bindings.values.operation_scalars = {0x1p-10F};
  EXPECT_FALSE(at(call.request, bindings, Coordinate{0, 0}).unspecified);
  EXPECT_TRUE(at(call.request, bindings, Coordinate{1, 1}).unspecified);
}

struct Shape {
  const char* forward;   ///< With mean and inv_deviation, if its mode has them.
  const char* backward;  ///< With dw and db.
};

class NormDifferences : public testing::TestWithParam<Shape> {};

// d(sum of dy y) / d(x, w or b) by moving one element after the other, in double.
void expect_differences(const std::string& of_forward_line, const std::string& of_backward_line) {
  Call forward(of_forward_line), backward(of_backward_line);
  for (const char* name : {"mean", "inv_deviation"}) {
    if (forward.request.find(name) != nullptr) backward.set(name, results(forward, name));
  }
  for (const char* name : {"x", "w", "b", "residual"}) {
    if (backward.request.find(name) != nullptr) backward.memory[name] = forward.memory[name];
  }
  if (backward.request.find("y") != nullptr) backward.set("y", results(forward));
  const std::vector<double> dy = read_all(backward.request.at("dy"), backward.memory["dy"]);
  const auto of_forward = [](const Call& call) { return results(call); };
  for (const auto& [operand, gradient] :
       {std::pair{"x", "dx"}, std::pair{"w", "dw"}, std::pair{"b", "db"}, std::pair{"residual", "dresidual"}}) {
    if (backward.request.find(gradient) == nullptr) continue;
    const std::vector<double> got = results(backward, gradient);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], central_difference(forward, operand, i, dy, of_forward), 1e-4) << gradient << " " << i;
    }
  }
}

TEST_P(NormDifferences, AgreeWithTheReference) {
  expect_differences(GetParam().forward, GetParam().backward);
}

// Behind every activation. The values are not those at kinks.
TEST(NormReference, TakesGradientsBackThroughEveryActivation) {
  for (const ActivationMode mode : activation_modes()) {
    SCOPED_TRACE(to_string(mode));
    const std::string activation = " activation=" + std::string(to_string(mode));
    expect_differences(
        "norm_forward x=f32:3x2x2 w=f32:1x2x1 b=f32:1x2x1 residual=f32:3x2x2 mean=f32:1x2x1 "
        "inv_deviation=f32:1x2x1 axes=0,2 epilogue=add" +
            activation,
        mode == ActivationMode::identity
            ? "norm_backward dy=f32:3x2x2 w=f32:1x2x1 dw=f32:1x2x1 axes=0,2"
            : "norm_backward dy=f32:3x2x2 w=f32:1x2x1 b=f32:1x2x1 residual=f32:3x2x2 dw=f32:1x2x1 "
              "db=f32:1x2x1 dresidual=f32:3x2x2 axes=0,2" +
                  activation);
  }
}

// One side of a kink that is within rounding, or the other; beside it that side alone.
TEST(NormReference, LeavesTheSideOfAKinkOpen) {
  Call call("norm_backward dy=f32:1x2 residual=f32:1x2 dresidual=f32:1x2 activation=relu mode=rms");
  call.set("dy", {4, 4}).set("x", {0.1, 0.1}).set("inv_deviation", {3}).set("residual", {-0.3, -0.299});
  const Oracle oracle(call.request, bindings_of(call), "dresidual");
  EXPECT_TRUE(is_right(call.request, oracle.at(Coordinate{0, 0}), 0));
  EXPECT_TRUE(is_right(call.request, oracle.at(Coordinate{0, 0}), 4));
  EXPECT_FALSE(is_right(call.request, oracle.at(Coordinate{0, 1}), 0));
  EXPECT_TRUE(is_right(call.request, oracle.at(Coordinate{0, 1}), 4));
  EXPECT_FALSE(is_right(call.request, oracle.at(Coordinate{0, 1}), 4.0001F));
}

// Behind an activation, a step that f32 cannot hold leaves what sums over it open, and no other row or column.
TEST(NormReference, LeavesGradientsThroughAnOverflowOpen) {
  Call call(
      "norm_backward dy=f32:2x2 w=f32:1x2 b=f32:1x2 dw=f32:1x2 db=f32:1x2 residual=f32:2x2 dresidual=f32:2x2 "
      "activation=tanh mode=rms");
  call.set("dy", {1, 1, 1, 1}).set("x", {1e30, 0.5, 0.5, 0.25}).set("inv_deviation", {1e10, 1});
  call.set("w", {1, 1}).set("b", {0, 0}).set("residual", {0, 0, 0, 0});
  const auto is_open = [&](const char* output, Coordinate at) {
    return is_right(call.request, Oracle(call.request, bindings_of(call), output).at(at), 12345);
  };
  for (const int64_t column : {0, 1}) {
    EXPECT_TRUE(is_open("dx", {0, column}));
    EXPECT_FALSE(is_open("dx", {1, column}));
  }
  for (const char* parameter : {"dw", "db"}) EXPECT_TRUE(is_open(parameter, {0, 0})) << parameter;
  EXPECT_FALSE(is_open("db", {0, 1}));
  EXPECT_TRUE(is_open("dresidual", {0, 0}));
  EXPECT_FALSE(is_open("dresidual", {1, 0}));

  // A product of an infinity and what may have become 0.
  call.set("x", {1e-30, 0.5, 0.5, 0.25}).set("inv_deviation", {1e-10, 1}).set("w", {infinity, 1});
  EXPECT_TRUE(is_open("dresidual", {0, 0}));
  call.set("x", {1e-20, 0.5, 0.5, 0.25});
  EXPECT_FALSE(is_open("dresidual", {0, 0}));
}

// The function of what is in the row's error is right, and nothing much beyond.
TEST(NormReference, GrantsAnActivationTheErrorOfItsArgument) {
  for (const char* mode : {"sigmoid", "swish", "leaky_relu", "hard_swish"}) {
    Call call(std::string("norm_inference x=f32:1x4 axes=1 activation=") + mode);
    call.set("x", {-2, -0.75, 0.5, 4}).set("running_mean", {0}).set("running_variance", {1});
    Call alone(std::string("activation_forward x=f32:1x4 mode=") + mode);
    const Bindings bindings = bindings_of(call);
    for (const double moved : {0.0, 1e-7, -1e-7, 1e-5}) {
      const double inverse = 1 / std::sqrt(1 + double{epsilon});
      alone.set("x", {-2 * inverse * (1 + moved), -0.75 * inverse * (1 + moved), 0.5 * inverse * (1 + moved), 4});
      const std::vector<double> y = evaluate(alone.request, bindings_of(alone));
      for (int64_t i = 0; i < 3; ++i) {
        const Expected expected = at(call.request, bindings, Coordinate{0, i});
        EXPECT_EQ(is_right(call.request, expected, static_cast<float>(y[static_cast<size_t>(i)])), moved < 1e-6)
            << mode << " " << i << " " << moved;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Axes, NormDifferences,
    testing::Values(Shape{"norm_forward x=f32:3x5 w=f32:1x5 b=f32:1x5 inv_deviation=f32:3x1 mode=rms",
                          "norm_backward dy=f32:3x5 w=f32:1x5 dw=f32:1x5 db=f32:1x5 mode=rms"},
                    Shape{"norm_forward x=f32:3x5 w=f32:1x5 b=f32:1x5 mean=f32:3x1 inv_deviation=f32:3x1",
                          "norm_backward dy=f32:3x5 w=f32:1x5 dw=f32:1x5 db=f32:1x5"},
                    Shape{"norm_forward x=f32:2x3x2x2 w=f32:1x3x1x1 b=f32:1x3x1x1 mean=f32:1x3x1x1 "
                          "inv_deviation=f32:1x3x1x1 axes=0,2,3",
                          "norm_backward dy=f32:2x3x2x2 w=f32:1x3x1x1 dw=f32:1x3x1x1 db=f32:1x3x1x1 axes=0,2,3"},
                    Shape{"norm_forward x=f32:2x2x3x2 w=f32:1x2x3x1 b=f32:1x2x3x1 mean=f32:2x2x1x1 "
                          "inv_deviation=f32:2x2x1x1 axes=2,3",
                          "norm_backward dy=f32:2x2x3x2 w=f32:1x2x3x1 dw=f32:1x2x3x1 db=f32:1x2x3x1 axes=2,3"},
                    Shape{"norm_forward x=f32:4x3x2 w=f32:1x3x2 b=f32:1x3x2 mean=f32:1x3x2 inv_deviation=f32:1x3x2 "
                          "axes=0",
                          "norm_backward dy=f32:4x3x2 w=f32:1x3x2 dw=f32:1x3x2 db=f32:1x3x2 axes=0"},
                    Shape{"norm_forward x=f32:2x2x2x3x2 w=f32:1x2x1x1x1 b=f32:1x2x1x1x1 mean=f32:1x2x1x1x1 "
                          "inv_deviation=f32:1x2x1x1x1 axes=0,2,3,4 epilogue=add+relu",
                          "norm_backward dy=f32:2x2x2x3x2 y=f32:2x2x2x3x2 w=f32:1x2x1x1x1 dw=f32:1x2x1x1x1 "
                          "db=f32:1x2x1x1x1 dresidual=f32:2x2x2x3x2 axes=0,2,3,4"}));

}  // namespace
}  // namespace kiln::reference::norm_test
