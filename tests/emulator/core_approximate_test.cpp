// Approximate functions against the error bounds that the PTX ISA documents, on every unit set.
#include <random>

#include "core_evaluate.h"

namespace kiln::emulator::test::core_approximate_test {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

/// Promise of the ISA for one instruction.
struct Promise {
  const char* instruction;
  double (*function)(double);
  double relative, absolute;
  float lowest, highest;  ///< magnitudes of arguments drawn
  bool negative;          ///< arguments of both signs
};

std::vector<float> arguments(const Promise& p) {
  std::mt19937 engine(7);
  std::uniform_real_distribution<double> exponent(std::log2(p.lowest), std::log2(p.highest));
  std::bernoulli_distribution minus(0.5);
  std::vector<float> values;
  for (int k = 0; k < 4000; ++k) {
    const auto value = static_cast<float>(std::exp2(exponent(engine)));
    values.push_back(p.negative && minus(engine) ? -value : value);
  }
  return values;
}

double reciprocal(double x) {
  return 1 / x;
}
double reciprocal_root(double x) {
  return 1 / std::sqrt(x);
}
double power_of_two(double x) {
  return std::exp2(x);
}
double logarithm(double x) {
  return std::log2(x);
}
double root(double x) {
  return std::sqrt(x);
}
double sine(double x) {
  return std::sin(x);
}
double cosine(double x) {
  return std::cos(x);
}
double tangent(double x) {
  return std::tanh(x);
}

constexpr float two_pi = 6.2831853f;
const Promise promises[] = {
    {"ex2.approx.f32 d, a;", power_of_two, 0x1p-22, 0, 1e-6f, 126, true},
    {"ex2.approx.ftz.f32 d, a;", power_of_two, 0x1p-22, 0, 1e-6f, 126, true},
    // Outside of (0.5, 2) the bound is relative, inside absolute.
    {"lg2.approx.f32 d, a;", logarithm, 0x1p-22, 0, 1e-44f, 0.5f, false},
    {"lg2.approx.f32 d, a;", logarithm, 0x1p-22, 0, 2, 3e38f, false},
    {"lg2.approx.ftz.f32 d, a;", logarithm, 0, 0x1p-22, 0.5f, 2, false},
    {"rcp.approx.f32 d, a;", reciprocal, 0x1p-23, 0, 0x1p-126f, 0x1p126f, true},
    {"rcp.approx.ftz.f32 d, a;", reciprocal, 0x1p-23, 0, 0x1p-125f, 0x1p125f, true},
    {"sqrt.approx.f32 d, a;", root, 0x1p-23, 0, 1e-44f, 3e38f, false},
    {"rsqrt.approx.f32 d, a;", reciprocal_root, 1.28e-7, 0, 1e-44f, 3e38f, false},  // 2^-22.9
    {"rsqrt.approx.ftz.f32 d, a;", reciprocal_root, 1.28e-7, 0, 0x1p-126f, 3e38f, false},
    {"sin.approx.f32 d, a;", sine, 0, 6.7e-7, 1e-6f, two_pi, true},  // 2^-20.5
    {"cos.approx.ftz.f32 d, a;", cosine, 0, 6.7e-7, 1e-6f, two_pi, true},
    {"sin.approx.ftz.f32 d, a;", sine, 0, 3.7e-5, two_pi, 50 * two_pi, true},  // 2^-14.7
    {"tanh.approx.f32 d, a;", tangent, 0x1p-11, 0, 1e-6f, 20, true},
};

TEST(Approximations, StayWithinTheErrorsThatTheIsaPromises) {
  for (const Promise& p : promises) {
    expect_instruction<float, float>(
        p.instruction, [&](float a) { return static_cast<float>(p.function(a)); },
        // The expected value is rounded to f32 itself: half a unit on top.
        [&](float got, float wanted) {
          if (got == wanted) return true;
          const double size = std::abs(double{wanted}), rounding = std::max(size * 0x1p-24, 0x1p-150);
          return std::abs(double{got} - wanted) <= std::max(p.absolute, p.relative * size) + rounding;
        },
        combinations(arguments(p)));
  }
}

/// Exact results at special arguments; NaN for NaN.
void expect_special(const std::string& instruction, const std::vector<std::pair<float, float>>& table) {
  std::vector<float> values;
  for (const auto& [argument, result] : table) values.push_back(argument);
  const auto oracle = [&](float a) {
    for (const auto& [argument, result] : table) {
      if (to_bits(argument) == to_bits(a)) return result;
    }
    return nan;
  };
  expect_instruction<float, float>(
      instruction, oracle, [](float x, float y) { return to_bits(x) == to_bits(y) || (x != x && y != y); },
      combinations(values));
}

TEST(Approximations, SpecialArgumentsGiveWhatTheIsaTabulates) {
  const float tiny = 0x1p-130f;
  expect_special("ex2.approx.f32 d, a;", {{-inf, 0.0f},
                                          {-0.0f, 1.0f},
                                          {0.0f, 1.0f},
                                          {inf, inf},
                                          {nan, nan},
                                          {tiny, 1.0f},
                                          {-149, 0x1p-149f},
                                          {128, inf},
                                          {-200, 0.0f},
                                          {10, 1024.0f}});
  expect_special("ex2.approx.ftz.f32 d, a;", {{-130, 0.0f}, {-126, 0x1p-126f}, {-tiny, 1.0f}, {nan, nan}});
  expect_special("lg2.approx.f32 d, a;", {{-inf, nan},
                                          {-1, nan},
                                          {-0.0f, -inf},
                                          {0.0f, -inf},
                                          {inf, inf},
                                          {nan, nan},
                                          {1, 0.0f},
                                          {0x1p-149f, -149},
                                          {1024, 10}});
  expect_special("lg2.approx.ftz.f32 d, a;", {{tiny, -inf}, {-tiny, -inf}, {2, 1}});
  expect_special("rcp.approx.f32 d, a;",
                 {{-inf, -0.0f}, {-0.0f, -inf}, {0.0f, inf}, {inf, 0.0f}, {nan, nan}, {4, 0.25f}});
  expect_special("rcp.approx.ftz.f32 d, a;", {{tiny, inf}, {-tiny, -inf}, {0x1p127f, 0.0f}, {-0x1p127f, -0.0f}});
  expect_special("sqrt.approx.f32 d, a;",
                 {{-inf, nan}, {-1, nan}, {-0.0f, -0.0f}, {0.0f, 0.0f}, {inf, inf}, {nan, nan}});
  expect_special("rsqrt.approx.f32 d, a;",
                 {{-inf, nan}, {-1, nan}, {-0.0f, -inf}, {0.0f, inf}, {inf, 0.0f}, {nan, nan}, {0x1p-148f, 0x1p74f}});
  expect_special("rsqrt.approx.ftz.f32 d, a;", {{tiny, inf}, {-tiny, -inf}});
  expect_special("sin.approx.f32 d, a;", {{-inf, nan}, {-0.0f, -0.0f}, {0.0f, 0.0f}, {inf, nan}, {nan, nan}});
  expect_special("cos.approx.f32 d, a;",
                 {{-inf, nan}, {-0.0f, 1.0f}, {0.0f, 1.0f}, {inf, nan}, {nan, nan}, {tiny, 1.0f}});
  expect_special("tanh.approx.f32 d, a;", {{-inf, -1}, {-0.0f, -0.0f}, {0.0f, 0.0f}, {inf, 1}, {nan, nan}});
}

TEST(Approximations, QuotientsAreWithinTwoUnitsOfTheLastPlace) {
  std::mt19937 engine(9);
  std::uniform_real_distribution<double> exponent(-60, 60);
  std::vector<float> values;
  for (int k = 0; k < 30; ++k)
    values.push_back(static_cast<float>((k % 2 == 0 ? 1 : -1) * std::exp2(exponent(engine))));
  for (const std::string word : {"approx", "approx.ftz", "full", "full.ftz"}) {
    expect_instruction<float, float, float>(
        "div." + word + ".f32 d, a, b;", [](float a, float b) { return a / b; },
        [](float x, float y) { return std::abs(int64_t(to_bits(x)) - int64_t(to_bits(y))) <= 2; },
        combinations(values, values));
  }
}

TEST(Approximations, ExactFormsAreExact) {
  expect_float<float, float>("rcp.rn.f32 d, a;", [](float a) { return 1 / a; });
  expect_float<float, float>("sqrt.rn.f32 d, a;", [](float a) { return std::sqrt(a); });
  expect_float<double, double>("rcp.rn.f64 d, a;", [](double a) { return 1 / a; });
  expect_float<double, double>("sqrt.rn.f64 d, a;", [](double a) { return std::sqrt(a); });
  expect_float<double, double, double>("div.rn.f64 d, a, b;", [](double a, double b) { return a / b; });
  expect_float<float, float, float>("div.rn.f32 d, a, b;", [](float a, float b) { return a / b; });
}

}  // namespace
}  // namespace kiln::emulator::test::core_approximate_test
