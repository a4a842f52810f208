// Variants that a check found wrong, or that hung or crashed, are not chosen by anybody who reads the record.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "cache_fixtures.h"
#include "kiln/cache/pack.h"
#include "kiln/cache/winners.h"
#include "record_rows.h"

namespace kiln::cache::test::barred_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Each of an algorithm of its own: a front has no two of one algorithm that differ in nothing but their time.
std::string algorithm_of(std::string_view config) {
  return "algorithm of " + std::string(config);
}

Record timed(const DeviceEntry& device, std::string_view config, double seconds = 1e-5) {
  Record r = timed_record(request_line(1), config, seconds);
  r.algorithm = algorithm_of(config);
  r.device = device.id;
  return r;
}

Record failed(const DeviceEntry& device, std::string_view config, std::string_view outcome = outcome::wrong_result) {
  Record r = timed(device, config, 0);
  r.outcome = outcome;
  r.samples.clear();
  return r;
}

std::vector<std::string> offered(const Winners& winners) {
  std::vector<std::string> configs;
  for (const Choice& choice : winners.all(request_line(1))) configs.emplace_back(choice.config);
  return configs;
}

std::string barred(const Winners& winners, std::string_view config) {
  const auto bar = winners.bar(request_line(1), algorithm_of(config), config);
  return bar ? std::string(bar->outcome) + " in " + std::string(bar->source) : "no";
}

TEST(Barred, AVariantThatFailedHereIsNotTakenFromAPack) {
  for (const std::string_view outcome : {outcome::wrong_result, outcome::timed_out, outcome::crashed}) {
    const Database db = database_of({failed(h200(), "A=1", outcome)});
    Winners winners(h200());
    winners.load(db);
    EXPECT_THAT(offered(winners), IsEmpty());
    winners.load_pack_text(pack_text_of({timed(h200(), "A=1"), timed(h200(), "A=2", 2e-5)}), "p");
    EXPECT_THAT(offered(winners), ElementsAre("A=2"));
    EXPECT_EQ(barred(winners, "A=1"), std::string(outcome) + " in memory");
    EXPECT_EQ(barred(winners, "A=2"), "no");
  }
}

TEST(Barred, OutcomesThatSayNothingOfTheResultBarNothing) {
  for (const std::string_view outcome :
       {outcome::refused, outcome::compile_failed, outcome::out_of_memory, std::string_view("from_the_future")}) {
    const Database db = database_of({failed(h200(), "A=1", outcome)});
    Winners winners(h200());
    winners.load(db);
    EXPECT_EQ(barred(winners, "A=1"), "no") << outcome;
  }
}

TEST(Barred, ThisDeviceIsBelievedRatherThanAnother) {
  Winners passed_here(h200());
  passed_here.load(database_of({timed(h200(), "A=1"), failed(h100(), "A=1")}));
  EXPECT_THAT(offered(passed_here), ElementsAre("A=1"));
  EXPECT_EQ(barred(passed_here, "A=1"), "no");

  Winners failed_here(h200());
  failed_here.load(database_of({failed(h200(), "A=1"), timed(h100(), "A=1")}));
  EXPECT_THAT(offered(failed_here), IsEmpty());

  Winners failed_elsewhere(h200());
  failed_elsewhere.load(database_of({failed(h100(), "A=1")}));
  EXPECT_EQ(barred(failed_elsewhere, "A=1"), "wrong_result in memory");

  Winners another_architecture(h200());
  another_architecture.load(database_of({failed(rtx4090(), "A=1")}));
  EXPECT_EQ(barred(another_architecture, "A=1"), "no");
}

TEST(Barred, AnEarlierLayerIsBelievedRatherThanALaterOne) {
  const Database db = database_of({timed(h200(), "A=1")});
  Winners winners(h200());
  winners.load(db);
  winners.load_pack_text(pack_text_of({failed(h200(), "A=1")}), "p");
  EXPECT_THAT(offered(winners), ElementsAre("A=1"));
  EXPECT_EQ(barred(winners, "A=1"), "no");

  Winners packs(h200());
  packs.load_pack_text(pack_text_of({failed(h200(), "A=1")}), "first");
  packs.load_pack_text(pack_text_of({timed(h200(), "A=1")}), "second");
  EXPECT_THAT(offered(packs), IsEmpty());
  EXPECT_EQ(barred(packs, "A=1"), "wrong_result in first");
}

TEST(Barred, AnEditedAlgorithmIsAnotherOne) {
  Record old = failed(h200(), "A=1");
  old.algorithm_digest = "before the edit";
  Winners winners(h200(), [](std::string_view, std::string_view digest) { return digest != "before the edit"; });
  winners.load(database_of({old}));
  EXPECT_EQ(barred(winners, "A=1"), "no");
}

TEST(Barred, AProgramIsBarredWhateverTheLibraryMakesNow) {
  Record old = failed(h200(), "A=1");
  old.algorithm_digest = "before the edit";
  old.source_digest = "its source";
  const auto current = [](std::string_view, std::string_view digest) { return digest != "before the edit"; };
  Winners from_database(h200(), current), from_pack(h200(), current);
  from_database.load(database_of({old}));
  from_pack.load_pack_text(pack_text_of({old}), "p");
  for (const Winners* winners : {&from_database, &from_pack}) {
    EXPECT_EQ(barred(*winners, "A=1"), "no");
    EXPECT_TRUE(winners->bars_program(request_line(1), "its source"));
    EXPECT_FALSE(winners->bars_program(request_line(1), "another"));
    EXPECT_FALSE(winners->bars_program(request_line(2), "its source"));
  }
}

TEST(Barred, AgeDoesNotMend) {
  Database db = database_of({timed(h200(), "A=1"), failed(h200(), "A=2")});
  PruneOptions all;
  all.before_ms = utc_now_ms() + 1000000;
  EXPECT_EQ(db.prune(all).records, 1);
  Winners winners(h200());
  winners.load(db);
  EXPECT_EQ(barred(winners, "A=2"), "wrong_result in memory");
}

TEST(Barred, ANewRecordIsSeenByARefresh) {
  Database db = database_of({timed(h200(), "A=1"), timed(h200(), "A=2", 2e-5)});
  Winners winners(h200());
  winners.load(db);
  winners.load_pack_text(pack_text_of({timed(h200(), "A=1")}), "p");
  const Record found_wrong = failed(h200(), "A=1");
  db.insert(std::span(&found_wrong, 1));
  winners.refresh(db, request_line(1));
  EXPECT_THAT(offered(winners), ElementsAre("A=2"));

  const Record mended = timed(h200(), "A=1");
  db.insert(std::span(&mended, 1));
  winners.refresh(db, request_line(1));
  EXPECT_THAT(offered(winners), ElementsAre("A=1", "A=2"));
  EXPECT_EQ(barred(winners, "A=1"), "no");
}

TEST(Barred, TheQuarantineIsOfThisDevice) {
  Database db = with_devices(Database::in_memory());
  db.add_quarantine({"source", h200().id, "12.8", "13.0", "crashed", 1});
  db.add_quarantine({"other", h100().id, "12.8", "13.0", "crashed", 1});
  Winners winners(h200());
  winners.load(db);
  EXPECT_TRUE(winners.is_quarantined("source"));
  EXPECT_FALSE(winners.is_quarantined("other"));
  db.end_quarantine({"source", h200().id, "12.8", "13.0", "crashed", 1});
  winners.refresh(db, request_line(1));
  EXPECT_FALSE(winners.is_quarantined("source"));
}

TEST(Barred, PruningAndExportingWinnersKeepWhatBars) {
  Database db = database_of({timed(h200(), "A=1"), timed(h200(), "A=2", 1), failed(h200(), "A=3"),
                             failed(h200(), "A=4", outcome::compile_failed)});
  ExportOptions winners_only;
  winners_only.winners_only = true;
  Winners from_pack(h200());
  from_pack.load_pack_text(print_pack(export_pack(db, winners_only), "0.1.0"), "p");
  EXPECT_EQ(barred(from_pack, "A=3"), "wrong_result in p");

  PruneOptions losers;
  losers.losers = true;
  EXPECT_EQ(db.prune(losers).records, 1);
  Winners pruned(h200());
  pruned.load(db);
  EXPECT_THAT(offered(pruned), ElementsAre("A=1", "A=2"));
  EXPECT_EQ(barred(pruned, "A=3"), "wrong_result in memory");
}

TEST(Barred, ADatabaseOfVersion3ThatIsReadOnlyBarsToo) {
  const ScratchFolder folder;
  const std::string path = folder.file("old.db");
  {
    Database db = with_devices(Database::open(path));
    const Record found_wrong = failed(h200(), "A=1");
    db.insert(std::span(&found_wrong, 1));
  }
  {
    Connection raw = Connection::open(path, SQLITE_OPEN_READWRITE, std::chrono::milliseconds(0));
    raw.execute("DROP TABLE runs; DROP TABLE run_layers; DROP INDEX records_that_bar; PRAGMA user_version = 3");
  }
  Announcements announced;
  const Database db = Database::open(path, {.mode = OpenMode::read_only}, announced.listener());
  EXPECT_TRUE(announced.seen.empty()) << announced.seen[0].text();
  Winners winners(h200());
  winners.load(db);
  EXPECT_EQ(barred(winners, "A=1"), "wrong_result in " + path);
}

TEST(Barred, ALookUpReadsNoOtherRecords) {
  const ScratchFolder folder;
  with_devices(Database::open(folder.file("x.db")));
  Connection raw = Connection::open(folder.file("x.db"), SQLITE_OPEN_READWRITE, std::chrono::milliseconds(0));
  const std::string sql =
      "EXPLAIN QUERY PLAN " + select_records(std::string(records_that_bar) + " AND device_id = 1 AND request_id = 2");
  Query plan = raw.query(sql.c_str());
  std::string text;
  while (plan.step()) text += std::string(plan.text(3)) + "\n";
  EXPECT_THAT(text, HasSubstr("INDEX records_that_bar (device_id=? AND request_id=?)"));
}

TEST(Barred, ATimeThatNothingTakesIsRefusedWithItsLine) {
  Winners winners(h200());
  winners.load_pack_text(pack_text_of({timed(h200(), "A=1", 1e-30), timed(h200(), "A=2")}), "p");
  EXPECT_THAT(offered(winners), ElementsAre("A=2"));
  EXPECT_THAT(winners.problems(), ElementsAre(HasSubstr("p: line 5: seconds '1e-30' is impossible")));
}

}  // namespace
}  // namespace kiln::cache::test::barred_test
