// The reference of activations: against PyTorch, against central differences, and where arguments are extreme.
#include "kiln/generator/operations/activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "call.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/tolerance.h"

namespace kiln::reference::activation_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The operation's result for one value of each operand.
double result_of_one(const std::string& line, const std::vector<std::pair<std::string, double>>& operands) {
  Call call(line);
  for (const auto& [name, value] : operands) call.set(name, {value});
  Bindings bindings = call.bindings();
  const std::vector<ScalarDefinition>& scalars = operation(call.request.operation).scalars();
  for (size_t i = 0; i < scalars.size(); ++i) bindings.values.operation_scalars[i] = scalars[i].in_checks;
  return evaluate(call.request, bindings).front();
}

double activated(std::string_view mode, double x) {
  return result_of_one("activation_forward x=f32:1 mode=" + std::string(mode), {{"x", x}});
}

double gradient(std::string_view mode, double x, double dy = 1) {
  return result_of_one("activation_backward x=f32:1 dy=f32:1 mode=" + std::string(mode), {{"x", x}, {"dy", dy}});
}

double gradient_from_y(std::string_view mode, double y, double dy = 1) {
  return result_of_one("activation_backward y=f32:1 dy=f32:1 mode=" + std::string(mode), {{"y", y}, {"dy", dy}});
}

// activation_torch.py made the table.
TEST(ActivationReference, IsPyTorchs) {
  std::ifstream table(KILN_ACTIVATION_TABLE);
  std::string line, mode;
  int lines = 0;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    double x = 0, y = 0, slope = 0;
    ASSERT_TRUE(words >> mode >> x >> y >> slope) << line;
    EXPECT_NEAR(activated(mode, x), y, 1e-13 + 1e-13 * std::fabs(y)) << line;
    EXPECT_NEAR(gradient(mode, x), slope, 1e-12) << line;
    ++lines;
  }
  EXPECT_EQ(lines, 16 * 37);
}

TEST(ActivationReference, HasTheDerivativesThatCentralDifferencesShow) {
  constexpr double h = 0x1p-12;
  for (const ActivationMode mode : activation_modes()) {
    const std::string_view name = to_string(mode);
    for (const double x : {-6.03125, -2.53125, -1.40625, -0.84375, -0.28125, 0.34375, 0.65625, 1.15625, 2.71875, 7.5}) {
      const double difference = (activated(name, x + h) - activated(name, x - h)) / (2 * h);
      EXPECT_NEAR(gradient(name, x, 1.5), 1.5 * difference, 1e-6) << name << " at " << x;
    }
  }
}

// The bound is no less than any slope, and no more than a hundredth above the steepest.
TEST(ActivationReference, IsNowhereSteeperThanItsSteepestSlope) {
  for (const ActivationMode mode : activation_modes()) {
    const std::string_view name = to_string(mode);
    double steepest = 0;
    for (double x = -16; x <= 16; x += 1.0 / 64) steepest = std::max(steepest, std::fabs(gradient(name, x)));
    const auto slope = static_cast<float>(operation("activation_forward").scalars().front().in_checks);
    EXPECT_GE(steepest_slope(mode, slope), steepest) << name;
    EXPECT_LE(steepest_slope(mode, slope), steepest * 1.01) << name;
  }
}

TEST(ActivationReference, TellsTheDerivativeFromTheResultAsFromTheArgument) {
  for (const ActivationMode mode : activation_modes()) {
    if (!has_derivative_from_y(mode)) continue;
    const std::string_view name = to_string(mode);
    for (const double x : {-5.5, -1.25, -0.375, 0.0, 0.25, 0.625, 1.5, 6.0}) {
      const double y = static_cast<float>(activated(name, x));
      EXPECT_NEAR(gradient_from_y(name, y, 2), gradient(name, x, 2), 1e-6) << name << " at " << x;
    }
  }
}

TEST(ActivationReference, GivesLimitsAtInfinitiesAndKeepsNaN) {
  struct Limits {
    ActivationMode mode;
    double below, above, slope_below, slope_above;
  };
  using enum ActivationMode;
  // With the usual scalars: slope 0.375, low -1, high 1.
  for (const Limits& limits :
       {Limits{identity, -infinity, infinity, 1, 1}, Limits{relu, 0, infinity, 0, 1}, Limits{clipped_relu, 0, 1, 0, 0},
        Limits{clip, -1, 1, 0, 0}, Limits{leaky_relu, -infinity, infinity, 0.375, 1}, Limits{sigmoid, 0, 1, 0, 0},
        Limits{tanh, -1, 1, 0, 0}, Limits{elu, -0.375, infinity, 0, 1}, Limits{softplus, 0, infinity, 0, 1},
        Limits{swish, 0, infinity, 0, 1}, Limits{gelu, 0, infinity, 0, 1}, Limits{gelu_tanh, 0, infinity, 0, 1},
        Limits{hard_swish, 0, infinity, 0, 1}, Limits{hard_sigmoid, 0, 1, 0, 0}, Limits{mish, 0, infinity, 0, 1}}) {
    const std::string_view name = to_string(limits.mode);
    EXPECT_EQ(activated(name, -infinity), limits.below) << name;
    EXPECT_EQ(activated(name, infinity), limits.above) << name;
    EXPECT_EQ(gradient(name, -infinity), limits.slope_below) << name;
    EXPECT_EQ(gradient(name, infinity), limits.slope_above) << name;
    EXPECT_TRUE(std::isnan(activated(name, std::nan("")))) << name;
    EXPECT_TRUE(std::isnan(gradient(name, std::nan("")))) << name;
    if (!has_derivative_from_y(limits.mode)) continue;
    EXPECT_TRUE(std::isnan(gradient_from_y(name, std::nan("")))) << name;
  }
}

TEST(ActivationReference, LetsNothingThroughWhereTheFunctionIsConstant) {
  for (const double dy : {1.0, infinity, std::nan("")}) {
    for (const char* mode : {"relu", "clipped_relu", "clip", "hard_swish", "hard_sigmoid"}) {
      EXPECT_EQ(gradient(mode, -9, dy), 0) << mode;
    }
    EXPECT_EQ(gradient_from_y("relu", 0, dy), 0);
    EXPECT_FALSE(std::isfinite(gradient("leaky_relu", -9, dy)) && !std::isfinite(dy));
  }
}

// Purpose of the bounds: f32 arithmetic passes, and a form that cancels does not.
TEST(ActivationReference, ToleratesRoundingAndNoCancellation) {
  const auto is_accepted = [](const std::string& mode, double x, double got) {
    Call call("activation_forward x=f32:1 mode=" + mode);
    call.set("x", {x});
    Bindings bindings = call.bindings();
    bindings.values.operation_scalars = {1};
    const int64_t origin[] = {0};
    return is_right(call.request, at(call.request, bindings, origin), got);
  };
  const float x = -5.5F;
  const auto exact = static_cast<float>(-5.5 * 0.5 * std::erfc(5.5 / std::sqrt(2.0)));
  EXPECT_TRUE(is_accepted("gelu", x, exact));
  EXPECT_TRUE(is_accepted("gelu", x, exact * (1 + 0x1p-22F)));
  EXPECT_FALSE(is_accepted("gelu", x, 0.5F * x * (1.0F + std::erf(x * 0.70710678F))));
  EXPECT_FALSE(is_accepted("softplus", -20, std::log(1.0F + std::exp(-20.0F))));
  EXPECT_FALSE(is_accepted("sigmoid", -95, 1.0F - 1.0F / (1.0F + std::exp(-95.0F)) + 1e-30F));
  EXPECT_FALSE(is_accepted("relu", 0.5, 0.5F + 0x1p-24F));
}

}  // namespace
}  // namespace kiln::reference::activation_test
