// Recheck with a device made of thin air.
#include "kiln/runtime/recheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes.h"
#include "kiln/runtime/records.h"

namespace kiln::recheck_test {
namespace {

using testing::HasSubstr;
using tuner::Failure;
using tuner::Outcome;
using namespace tuner::fakes;

class RecheckTest : public testing::Test {
 protected:
  // Tries the one stored variant again, which stands in the database with a time of 1 ms.
  Rechecked look() {
    tuner::Trial stored = tuner::begin_trial(laboratory.apparatus(), catalogue, toy_request(), choice);
    tuner::add_program(stored, catalogue.program(toy_request(), laboratory.apparatus().target, choice));
    stored.outcome = Outcome::timed;
    stored.seconds = 1e-3;
    stored.samples = {1e-3};
    cache::Pack contents;
    contents.devices = {device_entry(laboratory.apparatus().device)};
    contents.records = {*record_of(stored, "session")};
    const RecheckResult result = recheck(contents, catalogue, laboratory, {});
    EXPECT_EQ(result.checked.size(), 1U);
    EXPECT_EQ(laboratory.known_specimens(), 0U);
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
