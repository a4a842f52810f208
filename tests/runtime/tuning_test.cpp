// A tuning run over a database: what it takes from there, and what it must not.
#include "kiln/runtime/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fakes.h"

namespace kiln::tuning_test {
namespace {

using tuner::fakes::toy;
using tuner::fakes::toy_request;

class TuningTest : public testing::Test {
 protected:
  TuningTest() { laboratory_.behaviours["second"] = {.seconds = 0.5e-3}; }

  tuner::JobResult tune(cache::Database& database) {
    tuner::SessionOptions options;
    options.clock = laboratory_.clock();
    laboratory_.log.clear();
    Tuning tuning(catalogue_, laboratory_, database, options);
    tuner::JobResult result = tuning.run({{toy_request(), 1}}).front();
    reused_ = tuning.reused();
    return result;
  }

  /// Records that a first run stores.
  std::vector<cache::Record> records() {
    cache::Database database = cache::Database::in_memory();
    tune(database);
    return database.records(toy_request().key(), laboratory_.apparatus().device.id());
  }

  /// How many trials a run takes from a database with these records.
  size_t reused_of(const std::vector<cache::Record>& records) {
    cache::Database database = cache::Database::in_memory();
    database.put_device({laboratory_.apparatus().device.id(), "Fake", 9, 0, 132, true});
    database.insert(records);
    tune(database);
    EXPECT_EQ(laboratory_.count("check") + reused_, 2U);
    return reused_;
  }

  tuner::fakes::FakeLaboratory laboratory_;
  Catalogue catalogue_ = tuner::fakes::toy_catalogue({toy("first", {1}, 1e-3), toy("second", {1}, 2e-3)});
  size_t reused_ = 0;
};

TEST_F(TuningTest, RepeatsNothingThatIsKnown) {
  EXPECT_EQ(reused_of(records()), 2U);
}

// Each field by itself: what was measured of something else is no answer.
TEST_F(TuningTest, RepeatsWhatWasMadeOfSomethingElse) {
  const std::map<std::string, std::function<void(cache::Record&)>> edits = {
      {"algorithm", [](cache::Record& record) { record.algorithm = "third"; }},
      {"configuration", [](cache::Record& record) { record.config = "TILE=2"; }},
      {"algorithm digest", [](cache::Record& record) { record.algorithm_digest = "of an older template"; }},
      {"source digest", [](cache::Record& record) { record.source_digest = "of an older generator"; }},
      {"driver", [](cache::Record& record) { record.driver_version = "12.9"; }},
      {"nvrtc", [](cache::Record& record) { record.nvrtc_version = "12.9"; }},
      {"request", [](cache::Record& record) { record.request = toy_request(2).key(); }}};
  const std::vector<cache::Record> stored = records();
  for (const auto& [field, edit] : edits) {
    std::vector<cache::Record> edited = stored;
    edit(edited.front());
    EXPECT_EQ(reused_of(edited), 1U) << field;
  }
}

TEST_F(TuningTest, TriesAgainWhatRanOutOfMemory) {
  std::vector<cache::Record> edited = records();
  edited.front().outcome = cache::outcome::out_of_memory;
  edited.front().seconds = 0;
  edited.front().samples.clear();
  EXPECT_EQ(reused_of(edited), 1U);
}

TEST_F(TuningTest, DoesNotTryAgainWhatWasWrong) {
  std::vector<cache::Record> edited = records();
  edited.front().outcome = cache::outcome::wrong_result;
  edited.front().seconds = 0;
  edited.front().samples.clear();
  EXPECT_EQ(reused_of(edited), 2U);
}

TEST_F(TuningTest, PassesOverWhatANewerKilnStored) {
  std::vector<cache::Record> stored = records();
  cache::Record newer = stored.front();
  newer.config = "TILE=1,HUE=2";
  newer.outcome = "levitated";
  newer.seconds = 0;
  newer.samples.clear();
  stored.push_back(newer);
  newer.config = "TILE=4";
  newer.outcome = cache::outcome::wrong_result;
  stored.push_back(newer);
  cache::Database database = cache::Database::in_memory();
  database.put_device({laboratory_.apparatus().device.id(), "Fake", 9, 0, 132, true});
  database.insert(stored);
  EXPECT_EQ(tune(database).best->choice.algorithm, "second");
}

TEST_F(TuningTest, NamesTheBestThatIsStoredUnlessItsAlgorithmHasChangedSince) {
  cache::Database database = cache::Database::in_memory();
  tune(database);
  cache::Record other = database.records(toy_request().key(), laboratory_.apparatus().device.id()).front();
  other.algorithm = "first";
  other.config = "TILE=64";  // from a session that tried more
  other.seconds = 1e-6;
  other.algorithm_digest = *catalogue_.digest("first");
  const std::array current = {other};
  database.insert(current);
  EXPECT_EQ(tune(database).best->choice.config.print(), "TILE=64");

  cache::Database with_stale = cache::Database::in_memory();
  tune(with_stale);
  other.algorithm_digest = "of an older template";
  const std::array stale = {other};
  with_stale.insert(stale);
  EXPECT_EQ(tune(with_stale).best->choice.algorithm, "second") << "no Context would use the faster one";
}

TEST_F(TuningTest, ALabelledRunSaysInItsDatabaseHowFarItIs) {
  cache::Database database = cache::Database::open(testing::TempDir() + "kiln-tuning-journal.db");
  tuner::SessionOptions options;
  options.clock = laboratory_.clock();
  std::vector<std::map<cache::LayerState, std::int64_t>> seen;
  Tuning tuning(catalogue_, laboratory_, database, options,
                [&](const tuner::Progress&) { seen.push_back(database.runs().at(0).layers); });
  const Request impossible = Request::parse("pool_forward x=f32:1x16x14x14 mode=max window=2 stride=2");
  tuning.run({{toy_request(), 1}, {impossible, 1}}, RunLabel{"model.onnx", "1/4"});
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.front(), (std::map<cache::LayerState, std::int64_t>{{cache::LayerState::waiting, 2}}));
  const cache::RunProgress end = database.runs().at(0);
  EXPECT_EQ(end.layers,
            (std::map<cache::LayerState, std::int64_t>{{cache::LayerState::done, 1}, {cache::LayerState::failed, 1}}));
  EXPECT_EQ(end.run.workload, "model.onnx");
  EXPECT_EQ(end.run.part, "1/4");
  EXPECT_FALSE(end.run.host.empty());
  EXPECT_TRUE(end.session.ended_ms);
  ASSERT_EQ(end.failed.size(), 1u);
  EXPECT_EQ(end.failed[0].request, impossible.key());
  EXPECT_FALSE(end.failed[0].error.empty());
  std::filesystem::remove(database.path());
}

TEST_F(TuningTest, ARunThatIsEndedEarlySaysWhatIsLeft) {
  cache::Database database = cache::Database::open(testing::TempDir() + "kiln-tuning-journal-left.db");
  tuner::SessionOptions options;
  options.clock = laboratory_.clock();
  Tuning tuning(catalogue_, laboratory_, database, options);
  tuning.stop();
  tuning.run({{toy_request(), 1}}, RunLabel{"model.onnx", ""});
  EXPECT_EQ(database.runs().at(0).layers, (std::map<cache::LayerState, std::int64_t>{{cache::LayerState::left, 1}}));
  std::filesystem::remove(database.path());
}

TEST_F(TuningTest, ARunWithoutALabelSaysNothing) {
  cache::Database database = cache::Database::open(testing::TempDir() + "kiln-tuning-no-journal.db");
  tune(database);
  EXPECT_TRUE(database.runs().empty());
  std::filesystem::remove(database.path());
}

}  // namespace
}  // namespace kiln::tuning_test
