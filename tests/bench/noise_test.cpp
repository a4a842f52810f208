// The tuner on noise that was measured: 161 rows of a public table (data/README.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kiln/base/error.h"
#include "replay.h"
#include "sampled_rows.h"
#include "tuning_study.h"

namespace kiln::bench::noise_test {
namespace {

const std::vector<SampledRow>& rows() {
  static const std::vector<SampledRow> all = read_sampled_rows(KILN_NOISE_TABLE);
  return all;
}

// Expects the aims that bench_noise has in 1,000 tunings.
void expect_aims(const Noise& noise, const Method& method) {
  const StudyOptions options{.tunings = 100, .noise = noise};
  const Verdict verdict = judge(rows(), options, method);
  EXPECT_GE(verdict.near, 0.95);
  EXPECT_GE(verdict.same, 0.99);
  EXPECT_LT(verdict.samples, 4);
}

TEST(TunerOnMeasuredNoise, FindsTheBestAndTheSameAgain) {
  expect_aims({}, tuner_method(64));
}

TEST(TunerOnMeasuredNoise, FindsThemOnADeviceThatDrifts) {
  expect_aims({.drift = 0.03}, tuner_method(64));
}

TEST(TunerOnMeasuredNoise, FindsThemOnADeviceWhoseClockSteps) {
  expect_aims({.steps_per_run = 1.0 / 370, .largest_step = 1.74, .drift = 0.03}, tuner_method(64));
}

TEST(TunerOnMeasuredNoise, OneAfterTheOtherTheStepsMislead) {
  const StudyOptions options{.tunings = 100,
                             .noise = {.steps_per_run = 1.0 / 370, .largest_step = 1.74, .drift = 0.03}};
  EXPECT_LT(judge(rows(), options, simple_method(32, Statistic::median)).near, 0.8);
}

TEST(TunerOnMeasuredNoise, IsTheSameForTheSameSeed) {
  const StudyOptions options{.tunings = 4, .seed = 3, .noise = {.steps_per_run = 0.01, .largest_step = 1.5}};
  const Verdict once = judge(rows(), options, tuner_method(64)), again = judge(rows(), options, tuner_method(64));
  EXPECT_EQ(once.seconds, again.seconds);
  EXPECT_EQ(once.samples, again.samples);
  StudyOptions other = options;
  other.seed = 4;
  EXPECT_NE(judge(rows(), other, tuner_method(64)).seconds, once.seconds);
}

TEST(ReplayDevice, TakesTheFirstSampleAfterAnotherCandidateAndTheOthersAsOftenAsEachOther) {
  SampledRow slow_start, other;
  for (int i = 0; i < 10; ++i) slow_start.samples.push_back(100 - i);
  other.samples = {1, 1};
  ReplayDevice device({&slow_start, &other}, {}, 1);
  std::map<double, int> seen;
  for (int i = 0; i < 2000; ++i) {
    device.run(1);
    EXPECT_EQ(device.run(0), 100);
    ++seen[device.run(0)];
  }
  EXPECT_EQ(seen.size(), 9U);
  for (const auto& [seconds, count] : seen) EXPECT_NEAR(count, 2000.0 / 9, 60) << seconds;
}

TEST(ReplayDevice, KeepsTheNeighboursOfABlock) {
  SampledRow row;
  for (int i = 0; i < 32; ++i) row.samples.push_back(i);
  ReplayDevice device({&row}, {}, 1);
  device.run(0);
  int neighbours = 0;
  double last = device.run(0);
  for (int i = 0; i < 799; ++i) {
    const double now = device.run(0);
    neighbours += now == last + 1 || (last == 31 && now == 1) ? 1 : 0;
    last = now;
  }
  EXPECT_GE(neighbours, 700) << "seven of eight, and some by chance";
  EXPECT_LT(neighbours, 740);
}

TEST(ReplayDevice, DriftsStepsAndIsDisturbedAsFarAsItMay) {
  SampledRow row;
  row.samples = {1, 1};
  const auto range = [&](const Noise& noise) {
    ReplayDevice device({&row}, noise, 1);
    double least = 10, most = 0;
    for (int i = 0; i < 20'000; ++i) {
      const double seconds = device.run(0);
      least = std::min(least, seconds);
      most = std::max(most, seconds);
    }
    return std::pair(least, most);
  };
  EXPECT_EQ(range({}), std::pair(1.0, 1.0));
  const auto drift = range({.drift = 0.03}), steps = range({.steps_per_run = 0.01, .largest_step = 1.74}),
             blips = range({.blips_per_run = 0.1, .largest_blip = 3});
  EXPECT_NEAR(drift.first, 0.97, 1e-4);
  EXPECT_NEAR(drift.second, 1.03, 1e-4);
  EXPECT_NEAR(steps.second, 1.74, 0.05);
  EXPECT_GE(steps.first, 1);
  EXPECT_NEAR(blips.second, 3, 0.1);
  EXPECT_EQ(blips.first, 1);
}

TEST(SampledRows, AreReadWithoutThoseThatFailed) {
  EXPECT_EQ(rows().size(), 161U);
  for (const SampledRow& row : rows()) {
    EXPECT_EQ(row.samples.size(), 32U);
    EXPECT_GT(row.median, 5e-4);
    EXPECT_LT(row.median, 6e-3);
  }
}

TEST(SampledRows, SayWhereATableIsWrong) {
  const std::string path = testing::TempDir() + "/noise_table.csv";
  const auto error_of = [&](const std::string& text) -> std::string {
    std::ofstream(path) << text;
    try {
      (void)read_sampled_rows(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string head = "x,median_ms,samples_us\n";
  EXPECT_EQ(error_of(head + "1,0.001,1 1 1 1 1 1 1 1\r\n2,failed,\r\n"), "");
  EXPECT_NE(error_of("x,y\n").find("the last columns must be median_ms and samples_us"), std::string::npos);
  EXPECT_NE(error_of(head + "1,0.001,1 1\n").find("noise_table.csv:2: 2 samples, expected at least 8"),
            std::string::npos);
  EXPECT_NE(error_of(head + "1,0.001,1 1 one\n").find("'1 1 one' are not samples"), std::string::npos);
  EXPECT_NE(error_of(head + "1,0.001,1 -1\n").find("a sample is not above 0"), std::string::npos);
  EXPECT_NE(error_of(head + "1\n").find("expected parameters, a median and samples"), std::string::npos);
  EXPECT_NE(error_of(head + "1,failed,\n").find("has no samples"), std::string::npos);
  std::filesystem::remove(path);
  EXPECT_THROW((void)read_sampled_rows(path), Error);
}

TEST(Study, NeedsAsManyRowsAsCandidates) {
  EXPECT_THROW((void)judge(rows(), {.candidates = 1000}, simple_method(1, Statistic::mean)), Error);
  EXPECT_THROW((void)judge(rows(), {.tunings = 0}, simple_method(1, Statistic::mean)), Error);
}

}  // namespace
}  // namespace kiln::bench::noise_test
