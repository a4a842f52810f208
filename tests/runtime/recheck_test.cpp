// Recheck with a device made of thin air.
#include "kiln/runtime/recheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fakes.h"
#include "kiln/base/error.h"
#include "kiln/runtime/records.h"

namespace kiln::recheck_test {
namespace {

using testing::HasSubstr;
using tuner::Failure;
using tuner::Outcome;
using namespace tuner::fakes;

class RecheckTest : public testing::Test {
 protected:
  /// The record of `choice` with a time of 1 ms.
  cache::Record stored_record() const {
    tuner::Trial stored = tuner::begin_trial(laboratory.apparatus(), catalogue, toy_request(), choice);
    tuner::add_program(stored, catalogue.program(toy_request(), laboratory.apparatus().target, choice));
    stored.outcome = Outcome::timed;
    stored.seconds = 1e-3;
    stored.samples = {1e-3};
    return *record_of(stored, "session");
  }

  RecheckResult look(std::vector<cache::Record> records, const RecheckOptions& options = {}) {
    cache::Pack contents;
    contents.devices = {device_entry(laboratory.apparatus().device)};
    contents.records = std::move(records);
    const RecheckResult result = recheck(contents, catalogue, laboratory, options);
    EXPECT_EQ(laboratory.known_specimens(), 0U);
    return result;
  }

  /// Tries the one stored variant again.
  Rechecked look() {
    const RecheckResult result = look({stored_record()});
    EXPECT_EQ(result.checked.size(), 1U);
    return result.checked.at(0);
  }

  const Choice choice{"fast", Config::parse("TILE=16")};
  const Catalogue catalogue = toy_catalogue({toy("fast", {16}, 1)});
  FakeLaboratory laboratory;
};

const Failure crash{Outcome::crashed, "it fell over"}, hang{Outcome::timed_out, "it went on"};

TEST_F(RecheckTest, ACrashOrAHangCountsOnceASecondAttemptFailsToo) {
  for (const Failure& failure : {crash, hang}) {
    laboratory.behaviours["fast"].check_failures = {failure};
    const Rechecked once = look();
    EXPECT_EQ(once.finding, Rechecked::Finding::agrees) << once.error;
    EXPECT_FALSE(once.bar);

    laboratory.behaviours["fast"].check_failures = {failure, failure};
    const Rechecked twice = look();
    EXPECT_EQ(twice.finding, Rechecked::Finding::failed);
    EXPECT_THAT(twice.error, HasSubstr(failure.error));
    ASSERT_TRUE(twice.bar);
    EXPECT_EQ(twice.bar->outcome, failure.outcome);
  }
}

TEST_F(RecheckTest, SoItIsForCompilesAndSamples) {
  laboratory.set_noisy();
  laboratory.behaviours["fast"].compile_failures = {crash};
  laboratory.behaviours["fast"].sample_failures = {hang};
  EXPECT_EQ(look().finding, Rechecked::Finding::agrees);
  laboratory.behaviours["fast"].compile_failures = {crash, crash};
  EXPECT_TRUE(look().bar);
  laboratory.behaviours["fast"].sample_failures = {hang, hang};
  EXPECT_TRUE(look().bar);
}

TEST_F(RecheckTest, AWrongResultCountsAtOnce) {
  laboratory.behaviours["fast"].check_failures = {{Outcome::wrong_result, "off by one"}};
  const Rechecked wrong = look();
  ASSERT_TRUE(wrong.bar);
  EXPECT_EQ(laboratory.count("check"), 1U);
}

TEST_F(RecheckTest, TimesAgreeWithinTheTolerance) {
  const std::vector<std::pair<double, Rechecked::Finding>> rows = {{1e-3, Rechecked::Finding::agrees},
                                                                   {1.09e-3, Rechecked::Finding::agrees},
                                                                   {0.91e-3, Rechecked::Finding::agrees},
                                                                   {1.11e-3, Rechecked::Finding::slower},
                                                                   {0.89e-3, Rechecked::Finding::faster}};
  for (const auto& [now, finding] : rows) {
    laboratory.behaviours["fast"].seconds = now;
    RecheckOptions options;
    options.tolerance = 0.1;
    const RecheckResult result = look({stored_record()}, options);
    ASSERT_EQ(result.checked.size(), 1U);
    EXPECT_EQ(result.checked[0].finding, finding) << now;
    EXPECT_EQ(result.checked[0].seconds, now);
  }
}

TEST_F(RecheckTest, OnlyUsableRecordsOfThisDeviceAndOfCurrentAlgorithmsAreTried) {
  const cache::Record good = stored_record();
  cache::Record elsewhere = good, stale = good, predicted = good, failed = good;
  elsewhere.device = "another device";
  stale.algorithm_digest = "of another version";
  predicted.kind = cache::TimeKind::predicted;
  failed.outcome = cache::outcome::crashed;
  const RecheckResult result = look({good, stale, predicted, failed, elsewhere});
  EXPECT_EQ(result.candidates, 1);
  EXPECT_EQ(result.checked.size(), 1U);
  EXPECT_EQ(result.other_devices, 1);
  EXPECT_EQ(result.stale, 1);
  EXPECT_EQ(result.without_text, 0);
}

TEST_F(RecheckTest, WhatNamesNothingThatCanBeMadeHasFailedAndTheOthersAreTried) {
  cache::Record unknown = stored_record(), garbled = stored_record();
  unknown.config = "TILE=17";
  garbled.config = "TILE";
  const RecheckResult result = look({stored_record(), unknown, garbled});
  ASSERT_EQ(result.checked.size(), 3U);
  size_t agreed = 0;
  for (const Rechecked& each : result.checked) {
    const bool is_good = each.stored.config == "TILE=16";
    agreed += is_good ? 1 : 0;
    EXPECT_EQ(each.finding, is_good ? Rechecked::Finding::agrees : Rechecked::Finding::failed) << each.stored.config;
    EXPECT_EQ(each.error.empty(), is_good) << each.error;
    EXPECT_FALSE(each.bar);
  }
  EXPECT_EQ(agreed, 1U);
}

TEST_F(RecheckTest, WhatTheLaboratoryThrowsEndsIt) {
  for (const ErrorCode code : {ErrorCode::driver_error, ErrorCode::missing_library, ErrorCode::out_of_memory}) {
    laboratory.on_check = [code] { throw Error(code, "the device is gone"); };
    cache::Pack contents;
    contents.records = {stored_record()};
    EXPECT_THROW((void)recheck(contents, catalogue, laboratory, {}), Error);
  }
}

TEST_F(RecheckTest, ASampleHoldsTheWinnersFirst) {
  std::vector<cache::Record> records;
  for (int rows = 1; rows <= 6; ++rows) {
    for (const char* config : {"TILE=16", "TILE=16,ROWS=1"}) {
      records.push_back(stored_record());
      records.back().request = toy_request(rows).key();
      records.back().config = config;
      if (records.back().config != "TILE=16") records.back().seconds = 2e-3;
    }
  }
  RecheckOptions options;
  for (const size_t sample : {0, 1, 6, 9, 12, 20}) {
    options.sample = sample;
    const RecheckResult result = look(records, options);
    EXPECT_EQ(result.candidates, 12);
    EXPECT_EQ(result.checked.size(), sample == 0 ? 12 : std::min<size_t>(sample, 12));
    const auto winners = std::count_if(result.checked.begin(), result.checked.end(),
                                       [](const Rechecked& each) { return each.stored.config == "TILE=16"; });
    EXPECT_EQ(winners, sample == 0 ? 6 : static_cast<std::ptrdiff_t>(std::min<size_t>(sample, 6)));
  }
}

TEST_F(RecheckTest, WhatBarsIsStoredAsTuningStoresIt) {
  laboratory.behaviours["fast"].check_failures = {crash, crash};
  const Rechecked crashed = look();
  cache::Database database = cache::Database::in_memory();
  database.put_device(device_entry(laboratory.apparatus().device));
  ASSERT_TRUE(crashed.bar && store_trial(database, *crashed.bar));
  const std::vector<cache::Record> records = database.records(toy_request().key(), crashed.bar->device);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_TRUE(same_identity(records[0], crashed.stored));
  EXPECT_EQ(records[0].outcome, "crashed");
  EXPECT_EQ(records[0].source_digest, crashed.stored.source_digest);
  ASSERT_EQ(database.quarantine().size(), 1U);
  EXPECT_EQ(database.quarantine()[0].source_digest, crashed.stored.source_digest);
}

}  // namespace
}  // namespace kiln::recheck_test
