// The reference of cross entropy and of its gradient: against PyTorch, by central differences, and what rows are that
// hold no class, or no numbers.
#include "kiln/generator/operations/cross_entropy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "call.h"

namespace kiln::reference::cross_entropy_test {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::IsNan;
using testing::Pointwise;

constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<double> numbers(std::istream& lines) {
  std::string line;
  std::getline(lines, line);
  std::istringstream stream(line);
  return {std::istream_iterator<double>(stream), {}};
}

std::vector<double> smoothed_results(const Call& call, float smoothing) {
  Bindings bindings = call.bindings();
  bindings.values.operation_scalars = {smoothing};
  return evaluate(call.request, bindings);
}

TEST(CrossEntropyReference, AgreesWithPyTorch) {
  std::ifstream table(KILN_CROSS_ENTROPY_TABLE);
  std::string extents, reduction;
  bool weighted = false;
  float smoothing = 0;
  int cases = 0;
  for (; table >> extents >> reduction >> smoothing >> weighted; ++cases) {
    table.ignore();
    const std::vector<double> x = numbers(table), targets = numbers(table), loss = numbers(table), dx = numbers(table);
    std::string what = fmt::format("x=f32:{} reduction={}", extents, reduction);
    std::vector<double> weights;
    for (int64_t c = 0; weighted && c < Request::parse("cross_entropy_forward " + what).at("x").extents[1]; ++c) {
      weights.push_back(0.5 + static_cast<double>(c) / 4);
    }
    if (weighted) what += fmt::format(" weights=f32:{}", weights.size());
    if (smoothing != 0) what += " smoothing=any";
    const auto results = [&](Call& call) {
      call.set("x", x).set("targets", targets);
      if (weighted) call.set("weights", weights);
      return smoothed_results(call, smoothing);
    };
    Call forward("cross_entropy_forward " + what);
    EXPECT_THAT(results(forward), Pointwise(testing::DoubleNear(1e-12), loss)) << what;
    const TensorSpec& rows = forward.request.at("targets");
    const bool each = reduction == "none";
    const std::string one =
        each ? " dlosses=" + TensorSpec::packed(DType::f32, rows.extents, dimension_letters(rows.rank())).print()
             : " dloss=f32:1";
    Call backward("cross_entropy_backward " + what + one);
    const auto dlosses = static_cast<size_t>(each ? rows.elements() : 1);
    backward.set(each ? "dlosses" : "dloss", std::vector<double>(dlosses, 1.25));
    EXPECT_THAT(results(backward), Pointwise(testing::DoubleNear(1e-12), dx)) << what;
  }
  EXPECT_EQ(cases, 13);
}

class CrossEntropyDifferences : public testing::TestWithParam<const char*> {};

// d(sum of dloss * loss) / dx by moving one logit after the other, in double.
TEST_P(CrossEntropyDifferences, AgreeWithTheReference) {
  Call call(std::string("cross_entropy_backward ") + GetParam());
  const CrossEntropyBackward gradient = CrossEntropyBackward::of(call.request);
  CrossEntropyForward forward;
  static_cast<CrossEntropy&>(forward) = gradient;
  Call inner(forward.request().key());
  call.memory["targets"] = filled(call.request, {"targets", gradient.targets}, Values::uniform, 3);
  inner.memory["targets"] = call.memory["targets"];
  if (gradient.weights) inner.memory["weights"] = call.memory["weights"];
  constexpr float smoothing = 0.25F;
  const std::vector<double> x = read_all(gradient.x, call.memory["x"]);
  const char* const dloss_name = gradient.reduction == LossReduction::none ? "dlosses" : "dloss";
  const std::vector<double> dloss = gradient.dloss ? read_all(*gradient.dloss, call.memory[dloss_name])
                                                   : std::vector<double>(static_cast<size_t>(gradient.rows()), 1);
  const std::vector<double> got = smoothed_results(call, smoothing);
  for (size_t i = 0; i < x.size(); ++i) {
    constexpr double step = 0x1p-10;  // x stays exact in f32: only its first 24 bits are kept
    const auto loss_at = [&](double moved_by) {
      std::vector<double> moved = x;
      moved[i] = static_cast<float>(x[i]) + moved_by;
      const std::vector<double> losses = smoothed_results(inner.set("x", moved), smoothing);
      double sum = 0;
      for (size_t j = 0; j < losses.size(); ++j) sum += dloss[j] * losses[j];
      return sum;
    };
    ASSERT_THAT(got[i], DoubleNear((loss_at(step) - loss_at(-step)) / (2 * step), 2e-5)) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CrossEntropyDifferences,
                         testing::Values("x=f32:4x5 dloss=f32:1", "x=f32:4x5 reduction=sum",
                                         "x=f32:3x2x2x3 reduction=none dlosses=f32:3x2x3 ignore=1",
                                         "x=f32:2x3x2:nwc targets=i32:2x2:1,2 reduction=mean",
                                         "x=f32:4x5 weights=f32:5", "x=f32:4x5 smoothing=any",
                                         "x=f32:3x4x3 weights=f32:4:2 smoothing=any dloss=f32:1",
                                         "x=f32:4x5 weights=f32:5 smoothing=any reduction=none dlosses=f32:4"));

TEST(CrossEntropyReference, CountsNoIgnoredRow) {
  Call loss("cross_entropy_forward x=f32:2x2 ignore=7");
  loss.set("x", {0, 0, std::nan(""), 1}).set("targets", {0, 7});
  EXPECT_THAT(loss.results(), ElementsAre(DoubleNear(std::log(2), 1e-12)));
  loss.set("targets", {7, 7});
  EXPECT_THAT(loss.results(), ElementsAre(IsNan())) << "the mean of nothing";
  Call gradient("cross_entropy_backward x=f32:2x2 ignore=7");
  gradient.set("x", {0, 0, std::nan(""), 1}).set("targets", {0, 7});
  EXPECT_THAT(gradient.results(), ElementsAre(-0.5, 0.5, 0, 0));
}

TEST(CrossEntropyReference, IsNanWhereTheTargetIsNoClass) {
  for (const double target : {-1.0, 2.0}) {
    Call loss("cross_entropy_forward x=f32:2x2 reduction=none");
    loss.set("x", {0, 0, 0, 0}).set("targets", {target, 1});
    EXPECT_THAT(loss.results(), ElementsAre(IsNan(), DoubleNear(std::log(2), 1e-12)));
    Call gradient("cross_entropy_backward x=f32:2x2 reduction=sum");
    gradient.set("x", {0, 0, 0, 0}).set("targets", {target, 1});
    EXPECT_THAT(gradient.results(), ElementsAre(IsNan(), IsNan(), 0.5, -0.5));
  }
}

TEST(CrossEntropyReference, FollowsInfinities) {
  Call loss("cross_entropy_forward x=f32:4x2 reduction=none");
  loss.set("x", {0, -infinity, -infinity, 0, infinity, 0, -infinity, -infinity}).set("targets", {0, 0, 0, 0});
  EXPECT_THAT(loss.results(), ElementsAre(0, infinity, IsNan(), IsNan()));
}

TEST(CrossEntropyReference, OfAnEmptyBatchIsNoMeanButASum) {
  EXPECT_THAT(Call("cross_entropy_forward x=f32:0x2").results(), Each(IsNan()));
  EXPECT_THAT(Call("cross_entropy_forward x=f32:0x2 reduction=sum").results(), ElementsAre(0));
}

}  // namespace
}  // namespace kiln::reference::cross_entropy_test
