#include "kiln/cache/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache_fixtures.h"

namespace kiln::cache::test::statistics_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Statistics, CountsRecordsWinsAndFailuresByDeviceAndAlgorithm) {
  Record best = timed_record(request_line(1), "best", 1e-5);
  best.created_ms = 1000;
  Record other = timed_record(request_line(1), "other", 2e-5);
  other.algorithm = "conv_direct";
  other.created_ms = 3000;
  Record crashed = timed_record(request_line(2), "crashed", 0);
  crashed.outcome = outcome::crashed;
  crashed.created_ms = 2000;
  Record stale = timed_record(request_line(2), "stale", 1e-5);
  stale.algorithm_digest = "old";
  stale.created_ms = 2000;
  const Pack pack = make_pack({h200(), h100()}, {best, other, crashed, stale});
  const auto current = [](std::string_view, std::string_view digest) { return digest != "old"; };
  const std::vector<DeviceStatistics> all = statistics(pack, current);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].device, h100());
  EXPECT_EQ(all[0].records, 0);
  const DeviceStatistics& here = all[1];
  EXPECT_EQ(here.requests, 2);
  EXPECT_EQ(here.without_winner, 1);
  EXPECT_EQ(here.records, 4);
  EXPECT_EQ(here.stale, 1);
  EXPECT_THAT(here.outcomes, ElementsAre(Pair("crashed", 1), Pair("timed", 3)));
  EXPECT_EQ(here.oldest_ms, 1000);
  EXPECT_EQ(here.newest_ms, 3000);
  EXPECT_THAT(here.nvrtc_versions, ElementsAre("13.0"));
  const AlgorithmStatistics& gemm = here.algorithms.at("conv_implicit_gemm");
  EXPECT_EQ(gemm.candidates, 3);
  EXPECT_EQ(gemm.wins, 1);
  EXPECT_EQ(gemm.failed, 1);
  EXPECT_EQ(gemm.stale, 1);
  EXPECT_EQ(here.algorithms.at("conv_direct").wins, 0);
}

}  // namespace
}  // namespace kiln::cache::test::statistics_test
