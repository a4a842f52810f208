// The check of user code: what its kernels say of each element, and what the check makes of that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "algorithm_cases.h"
#include "kiln/base/error.h"
#include "kiln/checking/check.h"
#include "kiln/checking/trusted_program.h"
#include "kiln/device/memory.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/reference.h"
#include "trusted_run.h"
#include "user_oracle.h"
#include "variant_check.h"

namespace kiln::checking::user_check_test {
namespace {

using testing_support::built_in_catalogue;
using testing_support::TestDevice;
using Floats = std::vector<float>;

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
constexpr float units = 0x1p-22F;  // by which the check moves what the code is given

Memory bytes_of(const Floats& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// A convolution of one image of 2x3 with a 1x1 filter that makes `channels` channels of it.
Request request_with(const Expression& code, int channels, const std::string& operands = "",
                     const std::string& type = "f32") {
  const std::string line =
      "conv_forward x=" + type + ":1x1x2x3 w=" + type + ":" + std::to_string(channels) + "x1x1x1 epilogue=user:code";
  return Request::parse(line + operands, {{"code", code}});
}

// The trusted program of a request on the test device; every operand holds what `contents` say, else ones.
struct Trusted {
  Trusted(const Request& request, const std::vector<std::pair<std::string, Floats>>& contents)
      : executable(TestDevice::get().load(trusted_program(built_in_catalogue(), request, TestDevice::get().target),
                                          TestDevice::get().target, trusted_operand_names(request))),
        run(TestDevice::get().context, executable, trusted_operand_names(request), memories(request, contents),
            request.batch()) {}

  Floats get(const std::string& name) const { return floats_of(run.get(name)); }

  static std::vector<Memory> memories(const Request& request,
                                      const std::vector<std::pair<std::string, Floats>>& contents) {
    std::vector<Memory> memories;
    for (const std::string& name : trusted_operand_names(request)) {
      const auto given =
          std::find_if(contents.begin(), contents.end(), [&](const auto& one) { return one.first == name; });
      const bool of_input = name == "x" || name == "input" || name == "perturbation";
      const auto elements = static_cast<size_t>(request.at(of_input ? "x" : name == "w" ? "w" : "y").elements());
      memories.push_back(bytes_of(given == contents.end() ? Floats(elements, 1) : given->second));
    }
    return memories;
  }

  execution::Executable executable;
  TrustedRun run;
};

struct Bounds {
  float low, high;
};

// Bounds of what the epilogue makes of `acc`, which is off by `margin` at most.
Bounds bounds_of(const std::string& code, float acc, float margin, float gate = 0) {
  const bool is_gated = code.find("gate") != std::string::npos;
  const Request request =
      request_with(Expression(code, is_gated ? std::vector<std::string>{"gate"} : std::vector<std::string>{}), 1,
                   is_gated ? " epilogue.gate=f32:1x1x2x3" : "");
  Trusted trusted(request, {{"y", Floats(6, acc)}, {"margin", Floats(6, margin)}, {"epilogue.gate", Floats(6, gate)}});
  trusted.run.run_bounds({});
  const Floats low = trusted.get("low"), high = trusted.get("high");
  for (size_t i = 1; i < 6; ++i) {
    EXPECT_TRUE(low[i] == low[0] || (std::isnan(low[i]) && std::isnan(low[0]))) << i;
    EXPECT_TRUE(high[i] == high[0] || (std::isnan(high[i]) && std::isnan(high[0]))) << i;
  }
  return {low[0], high[0]};
}

void expect_bounds(const std::string& code, const Bounds& found, float low, float high, float tolerance) {
  EXPECT_NEAR(found.low, low, tolerance) << code;
  EXPECT_NEAR(found.high, high, tolerance) << code;
}

// Three times as far as the code moves the result itself, and its roundings besides.
TEST(UserBounds, AreTheExtremesWidenedByTheirDistance) {
  for (const float acc : {0.0F, 1.0F, -2.0F, 1000.0F}) {
    for (const float margin : {0.0F, 0.125F, 1e-2F}) {
      const float step = margin + std::fabs(acc) * units, room = 3 * step + std::fabs(acc) * units;
      expect_bounds("acc", bounds_of("acc", acc, margin), acc - room, acc + room, 0.1F * room);
    }
  }
  expect_bounds("2.0f", bounds_of("2.0f", 1, 0.5F), 2 - 2 * units, 2 + 2 * units, units);
}

TEST(UserBounds, AreFeltForAtBothEndsHalfwayAndBetween) {
  // The square of -1 to 1 has its least value in the middle. Spikes stand at one of the five places each.
  expect_bounds("square", bounds_of("acc * acc", 0, 1), -1, 2, 0.01F);
  for (const char* place : {"-1.0f", "-0.5f", "0.0f", "0.5f", "1.0f"}) {
    const std::string code = std::string("fabsf(acc - ") + place + ") < 0.1f ? 5.0f : 0.0f";
    expect_bounds(code, bounds_of(code, 0, 1), -5, 10, 0.01F);
  }
  const std::string beyond = "fabsf(acc) > 1.1f ? 5.0f : 0.0f";
  expect_bounds(beyond, bounds_of(beyond, 0, 1), 0, 0, 1e-30F);
}

TEST(UserBounds, MoveTheTensorsOfTheCodeByTheirRoundings) {
  const float room = 4000 * units;
  expect_bounds("acc + gate", bounds_of("acc + gate", 0, 0, 1000), 1000 - room, 1000 + room, 0.2F * room);
  // On one side of a threshold alone.
  expect_bounds("above", bounds_of("gate > 1.0f ? 3.0f : 0.0f", 0, 0, 1), -3, 6, 0.01F);
  expect_bounds("below", bounds_of("gate < 1.0f ? 3.0f : 0.0f", 0, 0, 1), -3, 6, 0.01F);
}

TEST(UserBounds, AreInfiniteOrNaNWhereTheCodeIs) {
  for (const float value : {infinity, -infinity}) {
    const Bounds bounds = bounds_of("acc", value, 0);
    EXPECT_EQ(bounds.low, value);
    EXPECT_EQ(bounds.high, value);
  }
  for (const Bounds& bounds : {bounds_of("acc", nan, 0), bounds_of("sqrtf(acc)", -4, 1)}) {
    EXPECT_TRUE(std::isnan(bounds.low));
    EXPECT_TRUE(std::isnan(bounds.high));
  }
}

// Low above high: anything is right.
TEST(UserBounds, AreOpenWhereNobodyKnows) {
  for (const Bounds& bounds :
       {bounds_of("sqrtf(acc)", 0, 1), bounds_of("acc", 1, infinity), bounds_of("acc", 1, nan)}) {
    EXPECT_EQ(bounds.low, infinity);
    EXPECT_EQ(bounds.high, -infinity);
  }
  EXPECT_LE(bounds_of("sqrtf(acc)", 4, 1).low, 1.8F);
}

// One NaN among numbers is enough, and one number among NaN.
TEST(UserBounds, AreOpenWhereTheCodeGivesANumberAtOnePlaceOrNaNAtOne) {
  for (const char* code : {"acc < -0.75f ? nanf(\"\") : acc", "acc > 0.75f ? acc : nanf(\"\")",
                           "gate > 1.0f ? nanf(\"\") : acc", "gate > 1.0f ? acc : nanf(\"\")"}) {
    const Bounds bounds = bounds_of(code, 0, 1, 1);
    EXPECT_EQ(bounds.low, infinity) << code;
    EXPECT_EQ(bounds.high, -infinity) << code;
  }
}

TEST(UserBounds, AreOfTheElementsOwnChannel) {
  Trusted trusted(request_with(Expression("static_cast<float>(1 << k)"), 30), {});
  trusted.run.run_bounds({});
  const Floats low = trusted.get("low"), high = trusted.get("high");
  ASSERT_EQ(low.size(), 180U);
  for (size_t i = 0; i < low.size(); ++i) {
    const float value = std::ldexp(1.0F, static_cast<int>(i / 6));
    EXPECT_NEAR(low[i], value * (1 - units), value * units / 4) << i;
    EXPECT_NEAR(high[i], value * (1 + units), value * units / 4) << i;
  }
}

TEST(TrustedPrograms, HaveAThreadForEachElementAndNoBlockMore) {
  for (const auto& [channels, blocks] : {std::pair(1, 1), std::pair(21, 1), std::pair(22, 2), std::pair(64, 3)}) {
    const Request request = request_with(Expression("acc + 1.0f"), channels);  // six elements a channel
    const Program program = trusted_program(built_in_catalogue(), request, TestDevice::get().target);
    const auto& bounds = std::get<Launch>(program.steps.back());
    EXPECT_EQ(bounds.block, (std::array<unsigned, 3>{128, 1, 1})) << channels;
    EXPECT_EQ(bounds.grid[0], (Count{blocks, 0, 1})) << channels;
  }
}

// How far the prologue moves each of six numbers.
struct Entered {
  Floats x, perturbation;
};

Entered entered(const std::string& code, const Floats& input, const Floats& shift = {}) {
  const bool is_shifted = !shift.empty();
  const Request request = request_with(
      Expression("--- prologue\n" + code, is_shifted ? std::vector<std::string>{"shift"} : std::vector<std::string>{}),
      1, is_shifted ? " prologue.shift=f32:1" : "");
  Trusted trusted(request, {{"input", input}, {"prologue.shift", shift}});
  trusted.run.run_to_result({});
  return {trusted.get("x"), trusted.get("perturbation")};
}

TEST(UserPrologues, AreAppliedAndMovedByTheirRoundings) {
  const Floats input = {0, 1, -3, 1000, 1e-3F, -1e6F};
  const Entered doubled = entered("2.0f * x", input);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(doubled.x[i], 2 * input[i]);
    EXPECT_NEAR(doubled.perturbation[i], std::fabs(doubled.x[i]) * units, 0.3F * std::fabs(doubled.x[i]) * units) << i;
  }
  const Entered shifted = entered("x + shift[c]", {0, 0, 0, 0, 0, 0}, {1000});
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(shifted.x[i], 1000);
    EXPECT_NEAR(shifted.perturbation[i], 1000 * units, 300 * units);
  }
}

// x moves, or the tensors do: the bound that follows is that of one at a time.
TEST(UserPrologues, MoveOneOfTheirFactorsAtATime) {
  const Entered scaled = entered("x * shift[c]", Floats(6, 1000), {3});
  EXPECT_EQ(scaled.x, Floats(6, 3000));
  for (const float distance : scaled.perturbation) EXPECT_NEAR(distance, 3000 * units, 900 * units);
}

// Results are those of the type. They move by a unit of it where a rounding may turn, and elsewhere stay.
TEST(UserPrologues, AreRoundedAndMoveWhereTheRoundingMayTurn) {
  const float unit = std::ldexp(1.0F, -10);  // of f16 from 1 to 2
  const Request request =
      request_with(Expression("--- rounded prologue\nx + shift", {"shift"}), 1, " prologue.shift=f32:1", "f16");
  Trusted trusted(
      request, {{"input", {1, 1 + 2 * unit, 1 + 4 * unit, 1.5F, 2000, 65504}}, {"prologue.shift", Floats{unit / 2}}});
  trusted.run.run_to_result({});
  EXPECT_EQ(trusted.get("x"), (Floats{1, 1 + 2 * unit, 1 + 4 * unit, 1.5F, 2000, 65504}));
  EXPECT_EQ(trusted.get("perturbation"), (Floats{unit, unit, unit, unit, 0, 0}));
}

TEST(UserPrologues, MoveToEitherSide) {
  for (const char* code : {"x > 1.0f ? 5.0f : 0.0f", "x < 1.0f ? 5.0f : 0.0f"}) {
    EXPECT_EQ(entered(code, Floats(6, 1)).perturbation, Floats(6, 5)) << code;
  }
  for (const char* code : {"shift[c] > 1.0f ? 5.0f : x", "shift[c] < 1.0f ? 5.0f : x"}) {
    EXPECT_EQ(entered(code, Floats(6, 0), {1}).perturbation, Floats(6, 5)) << code;
  }
}

TEST(UserPrologues, MoveAnyDistanceWhereANumberMeetsNone) {
  EXPECT_EQ(entered("x > 1.0f ? nanf(\"\") : x * 0.0f", Floats(6, 1)).perturbation, Floats(6, infinity));
  EXPECT_EQ(entered("x > 1.0f ? x * 0.0f : nanf(\"\")", Floats(6, 1)).perturbation, Floats(6, infinity));
  EXPECT_EQ(entered("sqrtf(x)", Floats(6, -1)).perturbation, Floats(6, 0)) << "NaN on both sides";
  EXPECT_EQ(entered("1.0f / x", Floats(6, 0)).perturbation, Floats(6, 0)) << "the same infinity on both sides";
  EXPECT_EQ(entered("x > 1.0f ? 1.0f / 0.0f : 0.0f", Floats(6, 1)).perturbation, Floats(6, infinity));
}

execution::Executable trusted_of(const Request& request) {
  const TestDevice& device = TestDevice::get();
  return device.load(trusted_program(built_in_catalogue(), request, device.target), device.target,
                     trusted_operand_names(request));
}

// The default variant of `request`, with the operands of a check.
execution::Executable default_of(const Request& request, const Checker& checker) {
  const TestDevice& device = TestDevice::get();
  const Choice choice = built_in_catalogue().heuristic(request, device.target, device.figures);
  return device.load(built_in_catalogue().program(request, device.target, choice), device.target,
                     checker.operand_names());
}

TEST(CheckOfUserCode, SaysHowCloseARightVariantIsAndWhatAWrongOneGot) {
  const Request request = request_with(Expression("acc * 3.0f + 1.0f"), 4);
  Checker checker(TestDevice::get().context, request, {});
  const Verdict trusted = checker.trust(trusted_of(request));
  ASSERT_TRUE(trusted.passed) << trusted.text;
  EXPECT_THAT(trusted.text, testing::StartsWith("before the user's code: largest error "));

  const Verdict right = checker.check(default_of(request, checker));
  EXPECT_TRUE(right.passed) << right.text;
  EXPECT_GT(right.bound, 0);
  EXPECT_LT(right.max_error, right.bound);
  const Verdict wrong = checker.check(default_of(request_with(Expression("acc * 3.0f + 1.00001f"), 4), checker));
  EXPECT_FALSE(wrong.passed);
  EXPECT_THAT(wrong.text, testing::AllOf(testing::StartsWith("wrong at (0,0,0,0): got "),
                                         testing::HasSubstr("the user's code makes ")));
}

// How far a prologue moves the result is said by the operation's own kernel, run on the trusted one's numbers.
TEST(CheckOfUserCode, GrantsAResultWhatItsPrologueMoves) {
  const auto of = [](const char* code) { return request_with(Expression(std::string("--- prologue\n") + code), 4); };
  const Request request = of("x * 3.0f + 1.0f");
  Checker checker(TestDevice::get().context, request, {});
  const Verdict trusted = checker.trust(trusted_of(request));
  ASSERT_TRUE(trusted.passed) << trusted.text;
  EXPECT_TRUE(checker.check(default_of(request, checker)).passed);
  EXPECT_FALSE(checker.check(default_of(of("x * 3.0f + 1.00001f"), checker)).passed);
}

// All tensors of other types and layouts than the trusted program's: f32 in logical order.
TEST(CheckOfUserCode, ReadsTensorsInTheirOwnTypesAndLayouts) {
  const std::string line =
      "conv_forward x=f16:2x3x4x5:nhwc w=f16:4x3x3x3 y=f16:2x4x2x3:60,1,24,5 alpha=any beta=any epilogue=user:code "
      "epilogue.gate=f16:2x1x2x3:nhwc epilogue.bias=bf16:4:3 prologue.shift=f16:3:2";
  const auto request_of = [&](const std::string& gated) {
    return Request::parse(
        line,
        {{"code", Expression("--- prologue\nx + shift\n---\n" + gated + " + bias[k]", {"gate", "bias", "shift"})}});
  };
  const Request request = request_of("acc * gate");
  Checker checker(TestDevice::get().context, request, {});
  const Verdict trusted = checker.trust(trusted_of(request));
  EXPECT_TRUE(trusted.passed) << trusted.text;
  const Verdict verdict = checker.check(default_of(request, checker));
  EXPECT_TRUE(verdict.passed) << verdict.text;
  EXPECT_FALSE(checker.check(default_of(request_of("acc * gate * 1.01f"), checker)).passed);
}

TEST(CheckOfUserCode, HasNothingToCompareInAnEmptyBatch) {
  const Request request = Request::parse("conv_forward x=f32:0x4x5x5 w=f32:3x4x3x3 epilogue=user:code",
                                         {{"code", Expression("acc * 2.0f")}});
  Checker checker(TestDevice::get().context, request, {});
  EXPECT_TRUE(checker.trust(trusted_of(request)).passed);
  EXPECT_TRUE(checker.check(default_of(request, checker)).passed);
}

// Runs `variant`, and then adds `by` to one element of the operand `name`.
Checkable spoiled(const execution::Executable& variant, const Checker& checker, const std::string& name, size_t element,
                  float by) {
  const std::vector<std::string> names = checker.operand_names();
  const auto place = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  return {[&variant, place, element, by](cuda_abi::CUstream stream, Checkable::Operands operands,
                                         const RunValues& values, int64_t n, cuda_abi::CUdeviceptr workspace) {
            variant.run(stream, operands, values, n, workspace);
            const device::ContextHandle& context = *TestDevice::get().context;
            const cuda_abi::CUdeviceptr address = operands[place] + element * sizeof(float);
            float changed = 0;
            device::copy_to_host(context, &changed, address, sizeof(changed), stream);
            changed += by;
            device::copy_to_device(context, address, &changed, sizeof(changed), stream);
          },
          variant.workspace_bytes()};
}

// The statistics are those of what the prologue gives, before the epilogue.
Request norm_with_statistics(const std::string& rows) {
  return Request::parse("norm_forward x=f32:" + rows + "x24 axes=1 mean=f32:" + rows + "x1 inv_deviation=f32:" + rows +
                            "x1 epilogue=user:code",
                        {{"code", Expression("--- prologue\nx * 0.5f + 1.0f\n---\nacc * 3.0f")}});
}

TEST(CheckOfUserCode, ComparesFurtherOutputsWithTheReference) {
  const Request request = norm_with_statistics("3");
  Checker checker(TestDevice::get().context, request, {});
  const Verdict trusted = checker.trust(trusted_of(request));
  ASSERT_TRUE(trusted.passed) << trusted.text;
  const execution::Executable right = default_of(request, checker);
  EXPECT_TRUE(checker.check(spoiled(right, checker, "mean", 2, 0)).passed);
  EXPECT_THAT(checker.check(spoiled(right, checker, "mean", 2, 1e-3F)).text,
              testing::StartsWith("mean is wrong at (2,0): got "));
  EXPECT_THAT(
      checker.check(spoiled(right, checker, "inv_deviation", 0, 1e-3F)).text,
      testing::AllOf(testing::StartsWith("inv_deviation is wrong at (0,0)"), testing::HasSubstr("the reference")));
  EXPECT_THAT(checker.check(spoiled(right, checker, "y", 30, 1e-3F)).text, testing::StartsWith("wrong at (1,6): got "));
}

// A large request has the reference at samples alone, and the trusted program's outputs at all elements.
TEST(CheckOfUserCode, ComparesFurtherOutputsOfLargeRequestsWithTheTrustedOnes) {
  const Request request = norm_with_statistics("300");
  Checker checker(TestDevice::get().context, request, {.samples = 8, .full_elements = 100});
  const Verdict trusted = checker.trust(trusted_of(request));
  ASSERT_TRUE(trusted.passed) << trusted.text;
  const execution::Executable right = default_of(request, checker);
  const Verdict verdict = checker.check(right);
  EXPECT_TRUE(verdict.passed) << verdict.text;
  EXPECT_THAT(
      checker.check(spoiled(right, checker, "mean", 143, 1e-3F)).text,
      testing::AllOf(testing::StartsWith("mean is wrong at (143,0)"), testing::HasSubstr("the trusted variant")));
}

// Statistics that stand in each other's place: the result is right, and the check would rest on them.
TEST(CheckOfUserCode, RefusesATrustedProgramWhoseFurtherOutputsAreWrong) {
  const Request request = norm_with_statistics("3");
  const TestDevice& device = TestDevice::get();
  Program program = trusted_program(built_in_catalogue(), request, device.target);
  for_each_launch(program.steps, [](Launch& launch) {
    for (Argument& argument : launch.arguments) {
      auto* const operand = std::get_if<OperandArgument>(&argument);
      if (operand == nullptr || !(operand->name == "mean" || operand->name == "inv_deviation")) continue;
      operand->name = operand->name == "mean" ? "inv_deviation" : "mean";
    }
  });
  Checker checker(device.context, request, {});
  const Verdict verdict = checker.trust(device.load(program, device.target, trusted_operand_names(request)));
  EXPECT_FALSE(verdict.passed);
  EXPECT_THAT(verdict.text, testing::HasSubstr("is wrong at (0,0)"));
}

TEST(CheckOfUserCode, NeedsTheTrustedProgram) {
  const Request request = request_with(Expression("acc * 3.0f + 1.0f"), 4);
  Checker checker(TestDevice::get().context, request, {});
  const execution::Executable variant = default_of(request, checker);
  EXPECT_THROW(checker.check(variant), Error);
  EXPECT_THROW(checker.check_with_reference(variant), Error);
}

// Two images of three pixels, of which the code makes `acc`: the sums of one product, -3 to 2.
TEST(CheckOfUserCode, SaysWhichElementIsNearestToItsBound) {
  const Request request =
      Request::parse("conv_forward x=f32:2x1x1x3 w=f32:1x1x1x1 epilogue=user:code", {{"code", Expression("acc")}});
  const Floats x = {-3, -2, -1, 0, 1, 2};
  UserOracle oracle(request, {bytes_of(x), bytes_of({1}), bytes_of(Floats(6, nan))}, {}, {});
  EXPECT_FALSE(oracle.evaluated());
  EXPECT_EQ(oracle.evaluate(TestDevice::get().context, trusted_of(request)).wrong, "");
  EXPECT_TRUE(oracle.evaluated());
  const auto found = [&](Floats y, int64_t n = 2) { return oracle.compare(std::as_bytes(std::span(y)), n); };
  const Finding exact = found(x);
  EXPECT_EQ(exact.wrong, "");
  EXPECT_EQ(exact.checked, 6);
  EXPECT_LT(exact.max_error, 0.1 * exact.bound);

  const Finding off = found({-3, -2, -1 + 2 * units, 0, 1 + units, 2});
  EXPECT_EQ(off.wrong, "");
  EXPECT_NEAR(off.max_error, 2 * units, 0.1 * units) << "the third is nearer to its bound than the fifth";
  EXPECT_GT(off.bound, off.max_error);
  EXPECT_LT(off.bound, 5 * units);

  const Finding wrong = found({-3, -2, -1, 0, 1.001F, 2.001F});
  EXPECT_THAT(wrong.wrong, testing::StartsWith("wrong at (1,0,0,1): got 1.00")) << "the first of both";
  EXPECT_GT(wrong.max_error, wrong.bound);
  EXPECT_EQ(found({-3, -2, -1, 0, 1.001F, 2}, 1).wrong, "") << "of one image";
  EXPECT_EQ(found({-3, -2, -1, 0, 1, 2}, 1).checked, 3);
  EXPECT_NE(found({-3, -2, nan, 0, 1, 2}).wrong, "");
  EXPECT_NE(found({-3, -2, -1, 0, 1, infinity}).wrong, "");
}

// Whether the check takes a result that is off by nine times n u M, of factors of a type.
bool is_taken(const std::string& type) {
  const std::string line = "conv_forward x=" + type + ":1x1024x1x1 w=" + type + ":1x1024x1x1 y=f32:1x1x1x1";
  const Request plain = Request::parse(line);
  const Request request = Request::parse(line + " epilogue=user:code", {{"code", Expression("acc")}});
  std::vector<Memory> contents;
  for (const Operand& operand : request.operands) {
    contents.push_back(reference::filled(operand.spec, reference::Values::uniform, contents.size()));
  }
  UserOracle oracle(request, contents, {}, {});
  EXPECT_EQ(oracle.evaluate(TestDevice::get().context, trusted_of(request)).wrong, "");
  const reference::Expected expected =
      reference::at(plain, {.operands = {{"x", contents[0]}, {"w", contents[1]}}}, reference::Coordinate{0, 0, 0, 0});
  const auto off = static_cast<float>(expected.value + 9 * 1024 * 0x1p-24 * expected.magnitude);
  return oracle.compare(std::as_bytes(std::span(&off, 1)), 1).wrong.empty();
}

TEST(CheckOfUserCode, GrantsWhatTensorCoresMayLose) {
  EXPECT_TRUE(is_taken("f16"));
  EXPECT_TRUE(is_taken("bf16"));
  EXPECT_FALSE(is_taken("f32"));
}

}  // namespace
}  // namespace kiln::checking::user_check_test
