// Estimates follow what a device was measured to reach.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kiln/templates/catalogue.h"

namespace kiln::calibrated_estimate_test {
namespace {

constexpr DeviceFigures h200{.sms = 132, .clock_hz = 1.98e9, .dram_bytes_per_second = 4.8e12, .l2_bytes = 60 << 20};

// A figure, a device on which it is so poor that nothing else counts, and layers that it then bounds.
struct Case {
  const char* name;
  Calibration poor;
  double factor;  // by which it is poorer
  std::vector<std::string> bounded;
};

const std::string conv = "conv_forward x=f32:8x64x28x28 w=f32:64x64x3x3 pad=1";
const std::string pool = "pool_forward x=f32:8x64x56x56 mode=max window=3 stride=2";
const std::string softmax = "softmax_forward x=f32:4096x1000";

std::vector<Case> cases() {
  const Calibration usual;
  std::vector<Case> all = {{"copy_efficiency", usual, 1e3, {conv, pool, softmax}},
                           {"l2_bytes_per_clock", usual, 1e3, {conv}},
                           {"fma_efficiency", usual, 1e3, {conv}},
                           {"shared_efficiency", usual, 1e3, {conv}},
                           {"launch_seconds", usual, 1e3, {conv, pool, softmax}}};
  all[0].poor.copy_efficiency /= all[0].factor;
  all[1].poor.l2_bytes_per_clock /= all[1].factor;
  all[2].poor.fma_efficiency /= all[2].factor;
  all[3].poor.shared_efficiency /= all[3].factor;
  all[4].poor.launch_seconds *= all[4].factor;
  return all;
}

TEST(CalibratedEstimate, GrowsWithEveryFigureThatBoundsTheLayerAndNeverShrinks) {
  const Catalogue catalogue = make_catalogue(embedded_sources());
  const Target target{Arch::of(9, 0), 13, 0};
  for (const Case& figure : cases()) {
    DeviceFigures poor = h200;
    poor.calibration = figure.poor;
    for (const std::string& line : {conv, pool, softmax}) {
      const Request request = Request::parse(line);
      const bool bounded = std::find(figure.bounded.begin(), figure.bounded.end(), line) != figure.bounded.end();
      double most = 0;
      for (const Candidate& candidate : catalogue.candidates(request, target, h200).ranked) {
        const double before = candidate.estimate.seconds;
        const double after = catalogue.estimate(request, target, poor, candidate.choice).seconds;
        ASSERT_GE(after, before) << figure.name << ": " << line << ": " << candidate.choice.algorithm << " "
                                 << candidate.choice.config.print();
        most = std::max(most, after / before);
      }
      if (bounded) {
        EXPECT_GT(most, figure.factor / 10) << figure.name << ": " << line;
        EXPECT_LT(most, figure.factor * 1.01) << figure.name << ": " << line;
      }
    }
  }
}

TEST(CalibratedEstimate, IsThatOfTypicalFiguresWhereNothingWasMeasured) {
  const Catalogue catalogue = make_catalogue(embedded_sources());
  const Target target{Arch::of(9, 0), 13, 0};
  DeviceFigures typical = h200;
  typical.calibration = *Calibration::parse(
      "copy_efficiency=0.9 l2_bytes_per_clock=46.6 fma_efficiency=1 shared_efficiency=1 launch_seconds=2.5e-06");
  for (const std::string& line : {conv, pool, softmax}) {
    const Request request = Request::parse(line);
    const Choice choice = catalogue.heuristic(request, target, h200);
    EXPECT_EQ(catalogue.heuristic(request, target, typical), choice);
    EXPECT_EQ(catalogue.estimate(request, target, typical, choice).seconds,
              catalogue.estimate(request, target, h200, choice).seconds);
  }
}

TEST(CalibratedEstimate, DecidesTheDefaultChoice) {
  const Catalogue catalogue = make_catalogue(embedded_sources());
  const Target target{Arch::of(9, 0), 13, 0};
  const Request request = Request::parse("conv_forward x=f32:1x512x7x7 w=f32:512x512x3x3 pad=1");
  DeviceFigures slow_launches = h200;
  slow_launches.calibration.launch_seconds = 1e-3;
  const auto launches_of = [&](const DeviceFigures& figures) {
    const Choice choice = catalogue.heuristic(request, target, figures);
    return catalogue.program(request, target, choice).steps.size();
  };
  EXPECT_GT(launches_of(h200), 1U) << "a split of the sum, and its end";
  EXPECT_EQ(launches_of(slow_launches), 1U);
}

}  // namespace
}  // namespace kiln::calibrated_estimate_test
