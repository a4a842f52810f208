// Taking records out of a database.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache_fixtures.h"
#include "kiln/cache/pack.h"
#include "kiln/cache/winners.h"

namespace kiln::cache::test::prune_test {
namespace {

using ::testing::ElementsAre;

bool not_old(std::string_view, std::string_view digest) {
  return digest != "old";
}

class Prune : public ::testing::Test {
 protected:
  void SetUp() override {
    fast.workspace_bytes = slow.workspace_bytes = 1 << 20;
    stale.algorithm_digest = "old";
    crashed.outcome = outcome::crashed;
    elsewhere.device = h100().id;
    early.created_ms = 1000;
    db.insert(std::vector<Record>{fast, lean, slow, stale, crashed, elsewhere, early});
  }

  std::vector<std::string> left() const {
    std::vector<std::string> configs;
    for (const Record& r : export_pack(db).records) configs.push_back(r.config);
    return configs;
  }

  Record fast = timed_record(request_line(1), "fast", 1e-5), lean = timed_record(request_line(1), "lean", 5e-5),
         slow = timed_record(request_line(1), "slow", 9e-5), stale = timed_record(request_line(1), "stale", 1e-6),
         crashed = timed_record(request_line(1), "crashed", 0), elsewhere = timed_record(request_line(1), "far", 1e-5),
         early = timed_record(request_line(2), "early", 1e-5);
  ScratchFolder folder;
  Database db = with_devices(Database::open(folder.file("cache.db")));
};

TEST_F(Prune, TakesOutStaleRecordsAndNothingElse) {
  PruneOptions options;
  options.is_current = not_old;
  const PruneResult gone = db.prune(options);
  EXPECT_EQ(gone.records, 1);
  EXPECT_EQ(gone.requests, 0);
  EXPECT_EQ(gone.storage, Kept::durably);
  EXPECT_THAT(left(), ElementsAre("far", "crashed", "fast", "lean", "slow", "early"));
  EXPECT_EQ(db.prune(options).records, 0);
}

TEST_F(Prune, TakesOutWhatCannotWinAndChangesNoChoice) {
  Winners before(h200(), not_old), after(h200(), not_old);
  before.load(db);
  PruneOptions options;
  options.losers = true;
  options.is_current = not_old;
  EXPECT_EQ(db.prune(options).records, 2);
  EXPECT_THAT(left(), ElementsAre("far", "crashed", "fast", "lean", "early"));
  after.load(db);
  for (const std::int64_t limit : {std::int64_t{0}, std::int64_t{1} << 30}) {
    EXPECT_EQ(before.find(request_line(1), {limit, false})->config,
              after.find(request_line(1), {limit, false})->config);
  }
}

TEST_F(Prune, TakesOutOldRecordsAndRequestsOfWhichNothingIsLeft) {
  db.add_quarantine({"digest", h200().id, "1", "2", "why", 500});
  db.add_quarantine({"later", h200().id, "1", "2", "why", 5000});
  PruneOptions options;
  options.before_ms = 2000;
  const PruneResult gone = db.prune(options);
  EXPECT_EQ(gone.records, 1);
  EXPECT_EQ(gone.requests, 1);
  EXPECT_EQ(gone.quarantine, 1);
  EXPECT_EQ(db.requests(h200().id).size(), 1u);
  EXPECT_EQ(db.quarantine().size(), 1u);
  Winners winners(h200());
  winners.load(db);
  EXPECT_FALSE(winners.find(request_line(2)).has_value()) << "the index follows";
}

TEST_F(Prune, KeepsWhatWasMadeAtTheVeryTime) {
  db.add_quarantine({"digest", h200().id, "1", "2", "why", early.created_ms});
  PruneOptions options;
  options.before_ms = early.created_ms;
  EXPECT_EQ(db.prune(options).records, 0);
  EXPECT_EQ(db.quarantine().size(), 1u);
  options.before_ms = early.created_ms + 1;
  EXPECT_EQ(db.prune(options).records, 1);
  EXPECT_EQ(db.quarantine().size(), 0u);
}

TEST_F(Prune, LooksOnlyAtTheDevicesNamed) {
  PruneOptions options;
  options.before_ms = utc_now_ms();
  options.devices = {h100().id};
  EXPECT_EQ(db.prune(options).records, 1);
  EXPECT_THAT(left(), ::testing::Not(::testing::Contains("far")));
}

TEST_F(Prune, ADryRunCountsTheSameAndChangesNothing) {
  PruneOptions options;
  options.before_ms = utc_now_ms();
  options.dry_run = true;
  const Pack before = export_pack(db);
  const PruneResult counted = db.prune(options);
  EXPECT_EQ(export_pack(db), before);
  options.dry_run = false;
  const PruneResult gone = db.prune(options);
  EXPECT_EQ(gone.records, counted.records);
  EXPECT_EQ(gone.requests, counted.requests);
  EXPECT_THAT(left(), ElementsAre("crashed")) << "what bars a variant stays";
}

TEST_F(Prune, DropsEndedSessionsWithoutRecordsAndKeepsTheUnfinished) {
  db.begin_session({"ended", h200().id, "plan", "0.1.0", 1, 2});
  db.begin_session({"open", h200().id, "plan", "0.1.0", 1, std::nullopt});
  db.begin_session({"session-1", h200().id, "plan", "0.1.0", 1, 2});
  EXPECT_EQ(db.prune({}).sessions, 1);
  EXPECT_EQ(db.sessions().size(), 2u);
}

TEST_F(Prune, GivesTheSpaceBack) {
  std::vector<Record> many;
  for (int i = 0; i < 2000; ++i) many.push_back(timed_record(request_line(100 + i), "x", 1e-5));
  db.insert(many);
  PruneOptions options;
  options.before_ms = utc_now_ms();
  db.prune(options);
  db = Database::in_memory();  // closes the file, and with it its log
  EXPECT_LT(std::filesystem::file_size(folder.file("cache.db")), 200'000u);
}

TEST_F(Prune, LeavesAFileAloneThatCannotBeWritten) {
  OpenOptions options;
  options.mode = OpenMode::read_only;
  Database reader = Database::open(folder.file("cache.db"), options);
  PruneOptions all;
  all.before_ms = utc_now_ms();
  EXPECT_EQ(reader.prune(all).storage, Kept::in_memory);
  EXPECT_EQ(left().size(), 7u);
}

}  // namespace
}  // namespace kiln::cache::test::prune_test
