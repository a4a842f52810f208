// How far a prologue's rounding moves results, where the operation's own kernel says it on the device.
#include "kiln/reference/prologue_slack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "algorithm_cases.h"
#include "kiln/checking/check.h"
#include "kiln/checking/trusted_program.h"
#include "kiln/generator/check_values.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/reference.h"
#include "trusted_run.h"
#include "variant_check.h"

namespace kiln::prologue_slack_test {
namespace {

using testing_support::built_in_catalogue;
using testing_support::TestDevice;

// Perturbations of all sizes, some 0, and one that is not known.
std::vector<float> some_perturbations(const TensorSpec& spec) {
  std::vector<float> perturbations;
  for (int64_t i = 0; i < spec.elements(); ++i) {
    const auto bits = reference::random_bits(7, static_cast<uint64_t>(i));
    perturbations.push_back(bits % 5 == 0 ? 0 : static_cast<float>(bits % 1000 + 1) * 0x1p-30F);
  }
  if (perturbations.size() > 3) perturbations[3] = std::numeric_limits<float>::infinity();
  return perturbations;
}

// At least what plain loops in double say, and more by roundings alone.
void expect_as_in_double(const std::string& line) {
  SCOPED_TRACE(line);
  const Request plain = without_user_code(Request::parse(line));
  const std::string input(operation(plain.operation).prologue_operand()), result = result_of(plain).name;
  std::vector<std::string> names;
  std::vector<checking::Memory> contents;
  std::map<std::string, std::span<const std::byte>> operands;
  for (const Operand& operand : plain.operands) {
    names.push_back(operand.name);
    contents.push_back(is_read(plain, operand.name)
                           ? reference::filled(plain, operand, reference::Values::uniform, names.size())
                           : reference::poisoned(operand.spec));
  }
  for (size_t i = 0; i < names.size(); ++i) operands[names[i]] = contents[i];
  RunValues values = check_values(plain);
  values.alpha = -0.75F;
  values.beta = 0.5F;
  const auto call = reference::slack_call(plain, operands, some_perturbations(plain.at(input)), values);
  ASSERT_TRUE(call.has_value());
  EXPECT_LT(call->error, 1e-3);

  // The operation stands between two steps, here without effect: the prologue and the bounds.
  const TestDevice& device = TestDevice::get();
  Program program = checking::trusted_program(built_in_catalogue(), plain, device.target);
  program.steps.insert(program.steps.begin(), ClearWorkspace{});
  program.steps.emplace_back(ClearWorkspace{});
  const execution::Executable trusted = device.load(program, device.target, names);
  checking::TrustedRun run(device.context, trusted, names, contents, plain.batch());
  const std::vector<float> slack = run.slack(*call, result);

  reference::Bindings bindings{.operands = {}, .values = call->values};
  for (const auto& [name, memory] : call->operands) bindings.operands[name] = memory;
  const std::vector<double> expected = reference::evaluate(plain, bindings);
  ASSERT_EQ(slack.size(), expected.size());
  bool moves = false;
  for (size_t i = 0; i < slack.size(); ++i) {
    const double least =
        std::isnan(expected[i]) ? std::numeric_limits<double>::infinity() : std::fabs(expected[i]) * (1 - 0x1p-23);
    EXPECT_GE(slack[i], least) << i;
    EXPECT_LE(slack[i], least * (1 + 2 * call->error + 0x1p-20)) << i;
    moves = moves || (std::isfinite(slack[i]) && slack[i] > 0);
  }
  EXPECT_TRUE(moves);
}

TEST(PrologueSlackOnDevice, OfConvolutionsAndProducts) {
  expect_as_in_double(
      "conv_forward x=f32:2x6x7x9 w=f16:12x3x3x2:nhwc groups=2 pad=1,2,0,1 stride=2,1 dilation=1,2 alpha=any beta=any");
  expect_as_in_double("conv_backward_data dy=f16:1x6x5x7:nhwc w=f32:6x4x3x3 pad=1 stride=2 beta=1");
  expect_as_in_double("conv_backward_filter x=f32:3x4x6x7 dy=bf16:3x8x4x5:nhwc dw=f32:8x4x3x3 alpha=any");
  expect_as_in_double("conv_backward_bias dy=f32:3x5x7x2");
  expect_as_in_double("local_conv_forward x=f32:3x8x17 w=f32:48x8x5 pad=2 stride=2 grid=4");
  expect_as_in_double("local_conv_backward_data dy=f32:3x12x9 w=f32:48x8x5 dx=f32:3x8x17 pad=2 stride=2 grid=4");
  expect_as_in_double("local_conv_backward_filter x=f32:3x8x17 dy=f32:3x12x9 dw=f32:48x8x5 pad=2 stride=2 grid=4");
  expect_as_in_double("gemm a=f32:5x67 b=f8e4m3:67x6 c=f32:5x6 alpha=any beta=1");
}

TEST(PrologueSlackOnDevice, OfPooling) {
  expect_as_in_double("pool_forward x=f32:2x3x9x8 window=3,2 stride=2 pad=1,0 indices=i32:2x3x5x4");
  expect_as_in_double("pool_forward x=f32:2x3x9x8 window=3,2 stride=2 pad=1,0 mode=avg_padded alpha=any");
  expect_as_in_double("pool_backward dy=f32:1x3x5x4 x=f16:1x3x9x8:nhwc window=3,2 stride=2 pad=1,0");
  expect_as_in_double("pool_backward dy=f32:1x3x5x4 indices=i32:1x3x5x4 dx=f32:1x3x9x8 window=3,2 stride=2 pad=1,0");
  expect_as_in_double("unpool_backward dy=f32:1x4x6x6 indices=i32:1x4x3x3 window=2 stride=2 alpha=any");
}

TEST(PrologueSlackOnDevice, OfReductionsAndCopies) {
  for (const char* mode : {"add", "mean", "min", "max", "amax", "norm1", "norm2"}) {
    expect_as_in_double(std::string("reduce x=f32:5x7x3 axes=1 alpha=any mode=") + mode);
  }
  expect_as_in_double("norm_inference x=f32:3x8x5 w=f16:1x8x1 b=f32:1x8x1 axes=0,2 alpha=any beta=any");
  expect_as_in_double("tensor_transform x=f32:3x1x5 y=f32:6x4x6 pad=1,0,1,2,0,0 alpha=any");
  expect_as_in_double("dropout x=f32:67x3");
}

// Where the prologue jumps, anything is right for the elements that read it, and for no others.
TEST(PrologueSlackOnDevice, AnUnknownElementHidesNoWrongOnes) {
  const Expressions known = {{"jumps", Expression("--- prologue\nx > 3.0f && x < 3.5f ? nanf(\"\") : x")}};
  const Request averages =
      Request::parse("pool_forward x=f32:2x3x12x12 mode=avg window=2 stride=2 epilogue=user:jumps", known);
  const Request maxima =
      Request::parse("pool_forward x=f32:2x3x12x12 mode=max window=2 stride=2 epilogue=user:jumps", known);
  const TestDevice& device = TestDevice::get();
  checking::CheckOptions sampled;
  sampled.fills = {reference::Values::integers};  // of which some are 3
  sampled.full_elements = 0;
  checking::Checker checker(device.context, averages, sampled);
  const execution::Executable trusted =
      device.load(checking::trusted_program(built_in_catalogue(), averages, device.target), device.target,
                  checking::trusted_operand_names(averages));
  const checking::Verdict verdict = checker.trust(trusted);
  ASSERT_TRUE(verdict.passed) << verdict.text;
  const auto passes = [&](const Request& made) {
    const Choice choice = built_in_catalogue().heuristic(made, device.target, device.figures);
    return checker
        .check(device.load(built_in_catalogue().program(made, device.target, choice), device.target,
                           checker.operand_names()))
        .passed;
  };
  EXPECT_TRUE(passes(averages));
  EXPECT_FALSE(passes(maxima));
}

}  // namespace
}  // namespace kiln::prologue_slack_test
