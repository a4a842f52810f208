// How far results move where those of a prologue do: bounds, held against the results of every sign of the
// perturbations.
#include "kiln/reference/prologue_slack.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/generator/check_values.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/operations/tensor_ops.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/reference.h"

namespace kiln::reference::prologue_slack_test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

struct Problem {
  Request request;
  std::vector<float> input, other;  // what prologues apply to, and the second factor
  std::vector<float> perturbations;
  std::map<std::string, std::vector<float>> others = {};
  std::vector<int32_t> targets = {};
  RunValues values = check_values(request);
  std::string output = result_of(request).name;
  std::vector<int32_t> indices = {};

  std::map<std::string, std::span<const std::byte>> operands(const std::vector<float>& entered) const {
    std::map<std::string, std::span<const std::byte>> all;
    all[std::string(operation(request.operation).prologue_operand())] = std::as_bytes(std::span(entered));
    if (!other.empty()) all[request.operands[1].name] = std::as_bytes(std::span(other));
    for (const auto& [name, content] : others) all[name] = std::as_bytes(std::span(content));
    if (!targets.empty()) all["targets"] = std::as_bytes(std::span(targets));
    if (!indices.empty()) all["indices"] = std::as_bytes(std::span(indices));
    return all;
  }
  std::vector<double> result(const std::vector<float>& entered) const {
    return evaluate(request, {.operands = operands(entered), .values = values}, output);
  }
  // Slack that the check takes: of a call's result by these loops in double, where the check has the device compute it.
  std::vector<float> slack() const {
    const auto call = slack_call(request, operands(input), perturbations, values);
    if (output != result_of(request).name || !call)
      return prologue_slack(request, std::vector{output}, operands(input), perturbations, values).at(output);
    Bindings bindings{.operands = {}, .values = call->values};
    for (const auto& [name, memory] : call->operands) bindings.operands[name] = memory;
    std::vector<float> distances;
    for (const double distance : evaluate(request, bindings)) {
      distances.push_back(std::isnan(distance) ? infinity : static_cast<float>(std::fabs(distance)));
    }
    return distances;
  }

  // The most that each result moves, over all signs of the perturbations.
  std::vector<double> farthest() const {
    const std::vector<double> center = result(input);
    std::vector<double> most(center.size());
    for (unsigned signs = 0; signs < 1U << input.size(); ++signs) {
      std::vector<float> moved = input;
      for (size_t i = 0; i < moved.size(); ++i)
        moved[i] += (signs >> i & 1U) != 0 ? perturbations[i] : -perturbations[i];
      const std::vector<double> there = result(moved);
      for (size_t i = 0; i < there.size(); ++i) most[i] = std::max(most[i], std::fabs(there[i] - center[i]));
    }
    return most;
  }

  // The slack covers what can happen, and is not more than `loose` times as much.
  void expect_covers(double loose) const {
    const std::vector<float> bounds = slack();
    const std::vector<double> most = farthest();
    ASSERT_EQ(bounds.size(), most.size());
    for (size_t i = 0; i < bounds.size(); ++i) {
      EXPECT_GE(bounds[i], most[i] * (1 - 1e-6)) << request.key() << " at " << i;
      EXPECT_LE(bounds[i], most[i] * loose) << request.key() << " at " << i;
    }
  }
};

using Floats = std::vector<float>;

TEST(PrologueSlack, CoversSoftmax) {
  for (const char* mode : {"accurate", "log"}) {
    for (const float step : {0x1p-10F, 0.25F, 2.0F}) {
      Problem problem{Request::parse(std::string("softmax_forward x=f32:2x3x2 axis=1 alpha=any mode=") + mode),
                      {1, -2, 0.5F, 0, 0.25F, 1, 3, 0, 2.5F, 0.5F, 2, -1},
                      {},
                      std::vector<float>(12, step)};
      problem.values.alpha = -1.5F;
      problem.expect_covers(step < 1 ? 10 : 20);
    }
  }
}

TEST(PrologueSlack, OfSoftmaxIsThatOfItsRow) {
  const Problem problem{Request::parse("softmax_forward x=f32:4x2 mode=log"),
                        {1, 2, 3, 4, infinity, 1, -infinity, 2},
                        {},
                        {0, 0, 0.25F, 0.5F, 0, 0.5F, infinity, 0}};
  EXPECT_EQ(problem.slack(), (std::vector<float>{0, 0, 1, 1, 0, 0, infinity, infinity}));  // row 2 is NaN
}

// Looser than what is reached: each sum may see other roundings of dy than what stands beside it.
TEST(PrologueSlack, CoversSoftmaxGradients) {
  for (const char* mode : {"accurate", "log"}) {
    Problem problem{Request::parse(std::string("softmax_backward y=f32:2x3x2 axis=1 alpha=any mode=") + mode),
                    {1, -2, 0.5F, 0, 0.25F, 1, 3, 0, 2.5F, 0.5F, 2, -1},
                    {},
                    {0.5F, 0.25F, 0, 0.125F, 1, 0.5F, 0, 0.25F, 0, 0, 0, 1},
                    {{"y", {0.5F, -2, 0.25F, 0.5F, 0, 1, -0.5F, 0.75F, -1, 0.25F, 0.125F, -3}}}};
    problem.values.alpha = -1.5F;
    problem.expect_covers(10);
  }
  const auto slack_of = [](const char* mode, Floats y, Floats perturbations) {
    return Problem{Request::parse(std::string("softmax_backward y=f32:1x2 mode=") + mode),
                   {1, 2},
                   {},
                   std::move(perturbations),
                   {{"y", std::move(y)}}}
        .slack();
  };
  EXPECT_EQ(slack_of("accurate", {0.5F, 0.25F}, {1, 2}), (Floats{1, 0.75F}));
  EXPECT_EQ(slack_of("log", {0, -infinity}, {1, 2}), (Floats{4, 2}));
  EXPECT_EQ(slack_of("accurate", {0.5F, 0}, {1, infinity}), (Floats{infinity, infinity}));
  EXPECT_EQ(slack_of("accurate", {0.5F, std::nanf("")}, {1, 2}), (Floats{0, 0})) << "NaN in any case";
  EXPECT_EQ(slack_of("log", {0, std::nanf("")}, {1, 2}), (Floats{4, 0})) << "the second is";
}

TEST(PrologueSlack, CoversCrossEntropyAndItsGradients) {
  for (const std::string rest : {"reduction=none", "reduction=mean", "reduction=sum weights=f32:3 smoothing=any",
                                 "reduction=mean weights=f32:3 smoothing=any", "reduction=none smoothing=any"}) {
    const Floats logits{1, -2, 0.5F, 0, 0.25F, 1, 3, 0, 2.5F};
    const Floats perturbations{0.25F, 0.125F, 0.25F, 0.25F, 0.25F, 0.25F, 0.25F, 0.25F, 0.125F};
    const std::map<std::string, Floats> others = {{"weights", {0.5F, 2, -0.25F}}};
    for (const char* operation : {"cross_entropy_forward", "cross_entropy_backward"}) {
      Problem problem{Request::parse(fmt::format("{} x=f32:3x3 ignore=7 alpha=any {}", operation, rest)),
                      logits,
                      {},
                      perturbations,
                      others,
                      {2, 7, 1}};  // the second row does not count
      problem.values.alpha = -1.5F;
      problem.expect_covers(10);
    }
  }
}

// A row whose target is no class gives NaN in any case, and one whose dloss is.
TEST(PrologueSlack, OfCrossEntropyIsThatOfItsRow) {
  const Problem losses{Request::parse("cross_entropy_forward x=f32:4x1x2 reduction=none ignore=-1"),
                       Floats(8, 0),
                       {},
                       {0.5F, 0, 0.5F, 0, 0, infinity, 0, 0},
                       {},
                       {0, 0, 9, 0, -1, 0, 0, 0}};
  EXPECT_EQ(losses.slack(), (Floats{1, 0, 0, 0, 0, infinity, 0, 0}));
  const Problem gradients{Request::parse("cross_entropy_backward x=f32:3x1 reduction=none dlosses=f32:3"),
                          Floats(3, 0),
                          {},
                          Floats(3, infinity),
                          {{"dlosses", {2, std::nanf(""), 0}}},
                          {0, 0, 5}};
  EXPECT_EQ(gradients.slack(), (Floats{infinity, 0, 0}));
}

TEST(PrologueSlack, CoversProducts) {
  const Problem problem{Request::parse("gemm a=f32:2x3 b=f32:3x2"),
                        {1, -2, 3, 0.5F, 0, -1},
                        {2, 1, -1, 4, 0.5F, -3},
                        {0.125F, 0.25F, 0.5F, 0, 1, 0.0625F}};
  problem.expect_covers(1.001);
}

TEST(PrologueSlack, CoversTransposedConvolutions) {
  const Problem problem{Request::parse("conv_backward_data dy=f32:1x2x3 w=f32:2x1x3 stride=2"),
                        {1, -2, 3, 0.5F, 0, -1},
                        {2, 1, -1, 4, 0.5F, -3},
                        {0.125F, 0.25F, 0.5F, 0, 1, 0.0625F}};
  problem.expect_covers(1.001);
}

TEST(PrologueSlack, CoversGradientsByTheFilter) {
  const Problem problem{Request::parse("conv_backward_filter x=f32:2x1x3 dy=f32:2x1x2 dw=f32:1x1x3 pad=1 stride=2"),
                        {1, -2, 3, 0.5F, 0, -1},
                        {2, 1, -1, 4},
                        {0.125F, 0.25F, 0.5F, 0, 1, 0.0625F}};
  problem.expect_covers(1.001);
}

TEST(PrologueSlack, CoversGradientsByTheBias) {
  const Problem problem{Request::parse("conv_backward_bias dy=f32:2x2x2 alpha=any"),
                        {1, -2, 3, 0.5F, 0, -1, 4, 2},
                        {},
                        {0.125F, 0.25F, 0.5F, 0, 1, 0.0625F, 2, 0.5F}};
  problem.expect_covers(1.001);
}

// Averages share a gradient, maxima send it where they are, whatever the sign of x there.
TEST(PrologueSlack, CoversGradientsOfPooling) {
  const std::vector<float> dy = {1, -2, 3}, perturbations = {0.125F, 0.25F, 0.5F};
  const Problem average{
      Request::parse("pool_backward dy=f32:1x1x3 dx=f32:1x1x4 mode=avg window=2"), dy, {}, perturbations};
  average.expect_covers(1.001);
  const std::vector<float> x = {-5, 3, -4, -2};
  const Problem maximum{
      Request::parse("pool_backward dy=f32:1x1x3 x=f32:1x1x4 window=2"), dy, {}, perturbations, {{"x", x}}};
  maximum.expect_covers(1.001);
  EXPECT_EQ(maximum.slack(), (Floats{0, 0.375F, 0, 0.5F}));
}

// An index of -1 is no 1.
TEST(PrologueSlack, CoversTheGradientOfUnpooling) {
  Problem problem{Request::parse("unpool_backward dy=f32:1x1x4 indices=i32:1x1x3 window=2"),
                  {1, -2, 3, 0.5F},
                  {},
                  {0.125F, 0.25F, 0.5F, 1}};
  problem.indices = {-1, 1, 1};
  EXPECT_EQ(problem.slack(), (Floats{0, 0.25F, 0}));
  problem.expect_covers(1.001);
}

TEST(PrologueSlack, CoversNormalisationsByGivenStatistics) {
  Problem problem{Request::parse("norm_inference x=f32:2x3 w=f32:1x3 b=f32:1x3 axes=0 alpha=any"),
                  {1, -2, 3, 0.5F, 0, -1},
                  {2, -3, 0.5F},
                  {0.125F, 0.25F, 0.5F, 0, 1, 0.0625F},
                  {{"b", {100, -1, 4}}, {"running_mean", {7, 0, -1}}, {"running_variance", {0.25F, 4, 1}}}};
  problem.values.alpha = -1.5F;
  problem.expect_covers(1.001);
}

// All outputs of gradients: each goes along other rows.
TEST(PrologueSlack, CoversGradientsOfNormalisations) {
  for (const char* mode : {"mode=standard mean=f32:2x1", "mode=rms", "mode=rms y=f32:2x4",
                           "mode=standard mean=f32:2x1 b=f32:1x4 activation=swish"}) {
    Problem problem{
        Request::parse(fmt::format("norm_backward dy=f32:2x4 w=f32:1x4 dw=f32:1x4 db=f32:1x4 dresidual=f32:2x4 {} "
                                   "alpha=any parameter_alpha=any dresidual_alpha=any",
                                   mode)),
        {1, -2, 0.5F, 0, 3, -1, 0.25F, 2},
        {},
        {0.5F, 0.25F, 0, 0.125F, 1, 0.0625F, 0.25F, 0.5F},
        {{"x", {3, 1, -2, 0.5F, 2, -1, 4, 0}},
         {"w", {2, -0.5F, 1, 3}},
         {"b", {0.5F, 1, -1, 0.25F}},
         {"mean", {0.625F, 1.25F}},
         {"inv_deviation", {0.5F, 0.75F}},
         {"y", {1, 0, 2, 3, 0, 1, 0, 4}}}};
    problem.values.alpha = -1.5F;
    problem.values.operation_scalars[0] = -0.5F;  // of the parameters
    problem.values.operation_scalars[2] = 3;      // of the residual
    for (const char* output : {"dw", "db", "dresidual"}) {
      problem.output = output;
      problem.expect_covers(1.001);
    }
    problem.output = "dx";
    problem.expect_covers(6);
  }
}

TEST(PrologueSlack, OfGradientsOfNormalisationsIsThatOfTheirRow) {
  Problem problem{Request::parse("norm_backward dy=f32:3x2 mode=rms db=f32:3x1"),
                  {1, 2, 3, 4, 5, 6},
                  {},
                  {0, 0, infinity, 0, 0.5F, 0},
                  {{"x", {1, 2, 0, 1, std::nanf(""), 1}}, {"inv_deviation", {1, 1, 1}}}};
  EXPECT_EQ(problem.slack(), (Floats{0, 0, infinity, infinity, 0, 0})) << "the last row is NaN, whatever dy is";
  problem.output = "db";
  EXPECT_EQ(problem.slack(), (Floats{0, infinity, 0.5F}));
}

// State that outputs share is not the others' own.
TEST(PrologueSlack, OfAllOutputsAtOnceIsThatOfEach) {
  for (const char* line :
       {"norm_forward x=f32:4x6 w=f32:1x6 mean=f32:4x1 inv_deviation=f32:4x1 axes=1",
        "norm_affine x=f32:4x6 w=f32:1x6 axes=1",
        "norm_backward dy=f32:4x6 x=f32:4x6 inv_deviation=f32:4x1 mean=f32:4x1 w=f32:1x6 dw=f32:1x6 db=f32:1x6 "
        "dresidual=f32:4x6 b=f32:1x6 activation=gelu axes=1"}) {
    const Request request = Request::parse(line);
    std::map<std::string, std::vector<std::byte>> contents;
    std::map<std::string, std::span<const std::byte>> operands;
    std::vector<std::string> outputs;
    for (const Operand& operand : request.operands) {
      contents[operand.name] = filled(request, operand, Values::uniform, contents.size());
      operands[operand.name] = contents[operand.name];
      if (is_written(request, operand.name)) outputs.push_back(operand.name);
    }
    const Floats perturbations(24, 0x1p-10F);
    const RunValues values = check_values(request);
    const auto all = prologue_slack(request, outputs, operands, perturbations, values);
    for (const std::string& output : outputs) {
      EXPECT_EQ(all.at(output),
                prologue_slack(request, std::vector{output}, operands, perturbations, values).at(output));
      EXPECT_THAT(all.at(output), testing::Each(testing::Gt(0)));
    }
  }
}

// Threads take parts: of rows, where these lie apart, or of their elements. Both as one thread takes a single row.
TEST(PrologueSlack, OfManyRowsIsThatOfEach) {
  struct Layout {
    const char *all, *one;
    size_t rows, row_stride, stride;
  };
  constexpr size_t length = 700;
  for (const Layout& layout : {Layout{"x=f32:31x700 axes=1", "x=f32:1x700 axes=1", 31, length, 1},
                               Layout{"x=f32:700x31 axes=0", "x=f32:700x1 axes=0", 31, 1, 31},
                               Layout{"x=f32:1x700x31 axes=1", "x=f32:1x700x1 axes=1", 31, 1, 31}}) {
    for (const std::string operation : {"norm_forward ", "reduce mode=mul ", "local_norm_forward size=9 "}) {
      const Request all = Request::parse(operation + layout.all), one = Request::parse(operation + layout.one);
      Floats x(layout.rows * length), perturbations(x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = 1 + static_cast<float>(random_bits(3, i) % 1000) * 0x1p-17F;
        perturbations[i] = static_cast<float>(random_bits(4, i) % 1000) * 0x1p-24F;
      }
      const Floats slack = Problem{all, x, {}, perturbations}.slack();
      const size_t results = slack.size() / layout.rows;
      for (const size_t row : {size_t{0}, layout.rows / 2, layout.rows - 1}) {
        Floats own, own_perturbations;
        for (size_t i = 0; i < length; ++i) {
          own.push_back(x[row * layout.row_stride + i * layout.stride]);
          own_perturbations.push_back(perturbations[row * layout.row_stride + i * layout.stride]);
        }
        const Floats expected = Problem{one, own, {}, own_perturbations}.slack();
        ASSERT_EQ(expected.size(), results);
        for (size_t i = 0; i < results; ++i) {
          const size_t at = results == 1 ? row : row * layout.row_stride + i * layout.stride;
          EXPECT_NEAR(slack[at], expected[i], 1e-6 * static_cast<double>(expected[i])) << all.key() << " row " << row;
        }
      }
    }
  }
}

// Moves that are small beside the deviation, as large, and larger.
TEST(PrologueSlack, CoversNormalisations) {
  for (const char* mode : {"mode=standard mean=f32:2x1 running_mean=f32:2x1 running_variance=f32:2x1", "mode=rms"}) {
    for (const float step : {0x1p-8F, 0.5F, 2.0F}) {
      Problem problem{Request::parse(fmt::format("norm_forward x=f32:2x6 w=f32:1x6 b=f32:1x6 inv_deviation=f32:2x1 "
                                                 "alpha=any {}",
                                                 mode)),
                      {3, 1, -2, 0.5F, 0, -1.5F, 101, 99, 102, 100, 100.5F, 97},
                      {},
                      Floats(12, step),
                      {{"w", {2, -0.5F, 1, 3, 0.25F, -1}},
                       {"b", {0.5F, 1, -1, 0.25F, 0, 7}},
                       {"running_mean", {0, 0}},
                       {"running_variance", {0, 0}}}};
      problem.values.alpha = -1.5F;
      problem.values.operation_scalars[0] = 0.5F;  // epsilon
      for (const Operand& operand : problem.request.operands) {
        if (!is_written(problem.request, operand.name)) continue;
        problem.output = operand.name;
        const bool is_mean = operand.name == "mean" || operand.name == "running_mean";
        problem.expect_covers(is_mean ? 1.05 : step == 0x1p-8F ? 4 : 12);
      }
    }
  }
}

TEST(PrologueSlack, CoversScaleAndShiftOfNormalisations) {
  for (const char* mode : {"standard", "rms"}) {
    for (const float step : {0x1p-8F, 0.5F, 2.0F}) {
      Problem problem{
          Request::parse(fmt::format("norm_affine x=f32:2x2x3 w=f32:1x2x1 b=f32:1x2x1 axes=1,2 mode={}", mode)),
          {3, 1, -2, 0.5F, 0, -1.5F, 11, 9, 12, 10, 10.5F, 7},
          {},
          Floats(12, step),
          {{"w", {2, -0.5F}}, {"b", {0.5F, 1}}}};
      problem.values.operation_scalars[0] = 0.5F;  // epsilon
      for (const char* output : {"scale", "shift"}) {
        problem.output = output;
        problem.expect_covers(step == 0x1p-8F ? 4 : 12);
      }
    }
  }
}

TEST(PrologueSlack, OfNormalisationsIsThatOfTheirRow) {
  Problem problem{Request::parse("norm_forward x=f32:5x2 mean=f32:5x1"),
                  {1, 2, 3, 4, infinity, 1, 2, 2, 0x1p126F, 1},
                  {},
                  {0, 0, 0, infinity, 0, 0.5F, 0.5F, 0, 0.5F, 0}};
  problem.values.operation_scalars[0] = 0;  // epsilon: the deviation of a row of 2 and 2 may be 0
  EXPECT_EQ(problem.slack(), (Floats{0, 0, infinity, infinity, 0, 0, infinity, infinity, infinity, infinity}));
  problem.output = "mean";
  EXPECT_EQ(problem.slack()[1], infinity);
  EXPECT_EQ(problem.slack()[2], 0) << "it is NaN";
}

// Windows that end at borders, along one dimension and two.
TEST(PrologueSlack, CoversLocalNormalisations) {
  const Floats x = {1, -2, 3, 0.5F, 0, -1, 4, 2, -0.25F, 1, 2, -3}, dy = {2, 1, 0, -1, 3, 1, 0.5F, -2, 1, 0, 4, 1};
  const Floats means = {0.5F, 1, 0, -1, 0.25F, 0, 3, 1, 0, 0.5F, 0, -1};
  for (const std::string tail : {"axes=1 size=2", "axes=0,1 size=3 means=f32:3x4"}) {
    for (const float step : {0x1p-8F, 1.0F}) {
      Problem problem{Request::parse("local_norm_forward x=f32:3x4 alpha=any " + tail),
                      x,
                      {},
                      Floats(12, step),
                      {{"means", means}}};
      problem.values.alpha = -1.5F;
      problem.values.operation_scalars[0] =
          0.0625F;  // lrn_alpha: little of what moves directly is taken back by the sum
      problem.expect_covers(step < 1 ? 4 : 10);
    }
    Problem gradient{Request::parse("local_norm_backward x=f32:3x4 dmeans=f32:3x4 alpha=any dmeans_alpha=any " + tail),
                     dy,
                     {},
                     {0.5F, 0.25F, 0, 1, 2, 0.125F, 1, 0.5F, 0.25F, 1, 0, 0.5F},
                     {{"x", x}, {"means", means}}};
    gradient.values.alpha = -1.5F;
    gradient.values.operation_scalars[0] = 0.0625F;
    gradient.values.operation_scalars[3] = 2;  // dmeans_alpha
    gradient.expect_covers(4);
    gradient.output = "dmeans";
    gradient.expect_covers(1.001);
  }
}

TEST(PrologueSlack, OfLocalNormalisationsIsThatOfTheirWindow) {
  const Problem problem{Request::parse("local_norm_forward x=f32:9 axes=0 size=3"),
                        {1, 2, 3, 4, std::nanf(""), infinity, 1, 1, 2},
                        {},
                        {0, 0, 0, infinity, 0, 0, 0.5F, 0, 0}};
  const Floats slack = problem.slack();
  EXPECT_THAT(Floats(slack.begin(), slack.begin() + 6), testing::ElementsAre(0, 0, infinity, infinity, infinity, 0));
  EXPECT_THAT(Floats(slack.begin() + 6, slack.end()), testing::ElementsAre(0, testing::Gt(0), 0));
}

TEST(PrologueSlack, CoversActivations) {
  for (const char* mode : {"identity", "leaky_relu", "tanh", "gelu", "hard_swish"}) {
    const Problem problem{Request::parse(std::string("activation_forward x=f32:4 mode=") + mode),
                          {-0.5F, 0.125F, 1.375F, 2.75F},
                          {},
                          {0x1p-10F, 0x1p-10F, 0x1p-10F, 0x1p-10F}};
    problem.expect_covers(infinity);
  }
  const Problem flat{Request::parse("activation_forward x=f32:2 mode=identity alpha=0"), {1, 2}, {}, {1, infinity}};
  EXPECT_EQ(flat.slack(), (std::vector<float>{0, 0}));
  Problem constant{Request::parse("activation_forward x=f32:3 mode=hard_sigmoid"), {1, 2, 3}, {}, {0, 1, infinity}};
  constant.values.operation_scalars[0] = 0;
  EXPECT_EQ(constant.slack(), (std::vector<float>{0, 0, infinity})) << "x may be NaN";
}

TEST(PrologueSlack, CoversReductions) {
  for (const char* mode : {"add", "mean", "min", "max", "amax", "norm1", "norm2"}) {
    const Problem problem{Request::parse(std::string("reduce x=f32:2x3 axes=1 mode=") + mode),
                          {1, -2, 0.5F, 3, 0.25F, -4},
                          {},
                          {0.5F, 0.25F, 0.0625F, 0.0625F, 0, 0.125F}};
    problem.expect_covers(infinity);
  }
  const Problem extreme{
      Request::parse("reduce x=f32:2x2 axes=1 mode=min"), {1, 2, 3, 4}, {}, {0.5F, 0.25F, 0, infinity}};
  EXPECT_EQ(extreme.slack(), (Floats{0.5F, infinity}));
}

TEST(PrologueSlack, CoversActivationGradients) {
  for (const char* known : {"x=f32:2x2 mode=gelu", "x=f32:2x2 mode=relu", "y=f32:2x2 mode=tanh"}) {
    Problem problem{Request::parse(std::string("activation_backward dy=f32:2x2 alpha=any ") + known),
                    {-0.5F, 0.125F, 1, 2.75F},
                    {},
                    {0.5F, 0.25F, 0, 1},
                    {{std::string(known, 1), {0.5F, -0.25F, 0.75F, -3}}}};
    problem.values.alpha = -1.5F;
    problem.expect_covers(1.001);
  }
}

TEST(PrologueSlack, CoversProductsOfElements) {
  for (const char* line : {"reduce x=f32:3x3 axes=1 mode=mul alpha=any", "reduce x=f32:3x3 axes=0 mode=mul"}) {
    Problem problem{
        Request::parse(line), {1, -2, 0.5F, 0, 0.25F, 3, 4, -1, 2}, {}, {0.5F, 0.25F, 0, 0.5F, 0.5F, 0.125F, 0, 0, 0}};
    problem.values.alpha = -1.5F;
    problem.expect_covers(1.001);
  }
}

// A factor that may be 0 is left out there; infinities keep their sign unless another factor may pass 0.
TEST(PrologueSlack, OfProductsIsThatOfZerosAndInfinities) {
  const auto slack_of = [](const char* mode, Floats x, Floats perturbations) {
    return Problem{
        Request::parse(std::string("reduce x=f32:1x2 axes=1 mode=") + mode), std::move(x), {}, std::move(perturbations)}
        .slack()[0];
  };
  EXPECT_EQ(slack_of("mul_no_zeros", {0.25F, 3}, {0.5F, 0}), 2.25F);
  EXPECT_EQ(slack_of("mul_no_zeros", {0, 3}, {0.5F, 0}), 4.5F);
  EXPECT_EQ(slack_of("mul_no_zeros", {0, 3}, {0, 0.5F}), 0.5F);
  EXPECT_EQ(slack_of("mul", {0, 3}, {0, 0.5F}), 0);
  EXPECT_EQ(slack_of("mul", {infinity, 3}, {0, 0.5F}), 0);
  EXPECT_EQ(slack_of("mul", {infinity, 0.25F}, {0, 0.5F}), infinity);
  EXPECT_EQ(slack_of("mul", {infinity, 0.5F}, {0, 0.5F}), infinity) << "it may be 0 and no less";
  EXPECT_EQ(slack_of("mul", {infinity, 0}, {0, 0}), 0);
  EXPECT_EQ(slack_of("mul", {std::nanf(""), 1}, {0, infinity}), 0);
  EXPECT_EQ(slack_of("mul", {1, 1}, {0, infinity}), infinity);
}

// An input that repeats, with perturbations that reach b or do not.
TEST(PrologueSlack, CoversArithmetic) {
  for (const TensorOpMode mode : tensor_op_modes()) {
    if (mode == TensorOpMode::select) continue;
    const bool binary = inputs_of(mode) == 2;
    const Problem problem{Request::parse(fmt::format("tensor_op a=f32:3x1{} y=f32:3x2 mode={} alpha=any",
                                                     binary ? " b=f32:3x2" : "", to_string(mode))),
                          {1.5F, 4, 0.25F},
                          binary ? std::vector<float>{2, 3, 0.5F, -1.25F, 3, 0.5F} : std::vector<float>{},
                          {0.5F, 0.25F, 0.0625F}};
    problem.expect_covers(1.001);
  }
}

TEST(PrologueSlack, OfArithmeticIsThatOfJumpsTurnsAndEnds) {
  const auto slack_of = [](const char* line, std::vector<float> a, std::vector<float> b,
                           std::vector<float> perturbations) {
    return Problem{Request::parse(line), std::move(a), std::move(b), std::move(perturbations)}.slack();
  };
  EXPECT_EQ(
      slack_of("tensor_op a=f32:4 b=f32:4 mode=eq", {1, 1, 1, 2}, {1.25F, 1, 1.25F, 5}, {0.5F, 0.5F, 0, infinity}),
      (Floats{1, 1, 0, infinity}));
  EXPECT_EQ(slack_of("tensor_op a=f32:3 mode=log", {0.5F, -2, -1}, {}, {0.5F, 0.5F, 1}),
            (Floats{infinity, 0, infinity}));
  EXPECT_EQ(slack_of("tensor_op a=f32:2 mode=abs", {0.25F, -3}, {}, {1, 1}), (Floats{1, 1}));
  EXPECT_EQ(slack_of("tensor_op a=f32:2 b=f32:2 mode=pow", {-0.5F, 2}, {-2, 2}, {1, 1}), (Floats{infinity, 5}));
  EXPECT_EQ(slack_of("tensor_op a=f32:1 b=f32:1 mode=div", {1}, {0}, {0.5F}), (Floats{0}));  // infinity at all of them
}

// Where an element is dropped, or is padding, it does not move.
TEST(PrologueSlack, CoversCopiesAndDropout) {
  const Problem copy{Request::parse("tensor_transform x=f32:2x1 y=f32:3x4 pad=1,0,0,0"), {1, 2}, {}, {0.5F, infinity}};
  EXPECT_EQ(copy.slack(),
            (std::vector<float>{0, 0, 0, 0, 0.5F, 0.5F, 0.5F, 0.5F, infinity, infinity, infinity, infinity}));
  Problem dropped{Request::parse("dropout x=f32:8"), Floats(8, 1), {}, Floats(8, 0.25F)};
  dropped.values.operation_scalars[0] = 0.5F;
  EXPECT_THAT(dropped.slack(),
              testing::AllOf(testing::Each(testing::AnyOf(0, 0.5F)), testing::Contains(0), testing::Contains(0.5F)));
}

}  // namespace
}  // namespace kiln::reference::prologue_slack_test
