#include "kiln/cache/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "cache_fixtures.h"
#include "kiln/cache/pack.h"
#include "sqlite.h"

namespace kiln::cache::test::database_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Record> one(const Record& record) {
  return {record};
}

TEST(Database, GivesBackEveryFieldOfARecord) {
  const ScratchFolder folder;
  const std::string path = folder.file("a/b/ö 'c'?x=1#%/cache.db");  // parents are missing, and awkward
  Record r = timed_record("conv 'quoted' \"x\" ; DROP TABLE records; -- größe 例", "TILE=32,NAME='a\"b'", 1.0 / 3);
  r.workspace_bytes = std::numeric_limits<std::int64_t>::max();
  r.resources = {255, std::numeric_limits<std::int64_t>::max(), -1};
  r.samples = {std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max(), 0.0, -0.0};
  r.error = "line one\nline two\t\\ 🔥";
  r.deterministic = false;
  {
    Database db = with_devices(Database::open(path));
    EXPECT_EQ(db.storage(), Storage::file);
    EXPECT_EQ(db.insert(one(r)), Kept::durably);
  }
  const Database db = Database::open(path);
  EXPECT_THAT(db.records(r.request, r.device), ElementsAre(r));
  EXPECT_TRUE(std::signbit(db.records(r.request, r.device)[0].samples[3]));
  EXPECT_THAT(db.records_of_session(r.session), ElementsAre(r));
  EXPECT_THAT(db.records_of_session(""), IsEmpty());
}

TEST(Database, KeepsFailuresAndListsCandidatesInAStableOrder) {
  Database db = with_devices(Database::in_memory());
  Record a = timed_record(request_line(1), "TILE=32", 2e-5);
  Record b = timed_record(request_line(1), "TILE=16", 1e-5);
  Record c = b;
  c.algorithm = "conv_direct";
  c.outcome = outcome::wrong_result;
  c.seconds = 0;
  c.samples.clear();
  c.error = "max error 3, bound 0.1 at n=0 c=1";
  const std::vector<Record> records = {a, b, c};
  EXPECT_EQ(db.insert(records), Kept::in_memory);
  EXPECT_THAT(db.records(request_line(1), h200().id), ElementsAre(c, b, a));
  EXPECT_THAT(db.records(request_line(2), h200().id), IsEmpty());
  EXPECT_THAT(db.records(request_line(1), h100().id), IsEmpty());
}

TEST(Database, ANewRecordOfTheSameVariantTakesTheOldOnesPlaceEvenIfTheClockWentBack) {
  Database db = with_devices(Database::in_memory());
  const Record first = timed_record(request_line(1), "TILE=32", 2e-5);
  Record second = first;
  second.seconds = 3e-5;
  second.created_ms -= 1000;
  db.insert(one(first));
  db.insert(one(second));
  EXPECT_THAT(db.records(first.request, first.device), ElementsAre(second));
  Record edited = second;
  edited.algorithm_digest = "another";
  db.insert(one(edited));
  EXPECT_EQ(db.records(first.request, first.device).size(), 2u) << "a stale record is kept";
}

TEST(Database, APredictionNeverDisplacesATakenTime) {
  Database db = with_devices(Database::in_memory());
  const Record taken = timed_record(request_line(1), "TILE=32", 2e-5);
  Record predicted = taken;
  predicted.kind = TimeKind::predicted;
  predicted.outcome = outcome::predicted;
  predicted.created_ms += 1000;
  db.insert(one(predicted));
  EXPECT_THAT(db.records(taken.request, taken.device), ElementsAre(predicted));
  db.insert(one(taken));
  db.insert(one(predicted));
  EXPECT_THAT(db.records(taken.request, taken.device), ElementsAre(taken));
}

TEST(Database, OnlyATimeOrAnotherBarDisplacesWhatBarsAVariant) {
  const Record taken = timed_record(request_line(1), "TILE=32", 2e-5);
  Record bar = taken;
  bar.outcome = outcome::wrong_result;
  bar.seconds = 0;
  for (const std::string_view name : {outcome::out_of_memory, outcome::compile_failed, outcome::refused}) {
    Database db = with_devices(Database::in_memory());
    Record says_less = bar;
    says_less.outcome = name;
    db.insert(one(bar));
    db.insert(one(says_less));
    EXPECT_THAT(db.records(bar.request, bar.device), ElementsAre(bar)) << name;
  }
  Database db = with_devices(Database::in_memory());
  Record crashed = bar;
  crashed.outcome = outcome::crashed;
  db.insert(one(bar));
  db.insert(one(crashed));
  EXPECT_THAT(db.records(bar.request, bar.device), ElementsAre(crashed));
  db.insert(one(taken));
  EXPECT_THAT(db.records(bar.request, bar.device), ElementsAre(taken));
}

TEST(Database, ATimeFromElsewhereLiftsNoBar) {
  Record taken = timed_record(request_line(1), "TILE=32", 2e-5);
  Record bar = taken;
  bar.outcome = outcome::wrong_result;
  bar.seconds = 0;
  taken.created_ms += 1000;
  Database mine = with_devices(Database::in_memory());
  mine.insert(one(bar));
  Database other = with_devices(Database::in_memory());
  other.insert(one(taken));
  EXPECT_EQ(mine.merge(other).kept, 1);
  EXPECT_EQ(mine.records(bar.request, bar.device).at(0).outcome, outcome::wrong_result);
  EXPECT_EQ(other.merge(mine).replaced, 1);
  EXPECT_EQ(other.records(bar.request, bar.device).at(0).outcome, outcome::wrong_result);
}

TEST(Database, AWrongRecordRefusesTheWholeInsert) {
  Database db = with_devices(Database::in_memory());
  const Record good = timed_record(request_line(1), "TILE=32", 1e-5);
  const auto refusal = [&](const std::function<void(Record&)>& spoil) {
    std::vector<Record> records = {good, good};
    records[1].config = "TILE=16";
    spoil(records[1]);
    return error_of(ErrorCode::invalid_argument, [&] { db.insert(records); });
  };
  EXPECT_THAT(refusal([](Record& r) { r.seconds = std::nan(""); }), HasSubstr("seconds"));
  EXPECT_THAT(refusal([](Record& r) { r.device = "unheard of"; }), HasSubstr("unheard of"));
  EXPECT_THAT(refusal([](Record& r) { r.kind = TimeKind::modelled; }), HasSubstr("real device"));
  EXPECT_THAT(refusal([](Record& r) { r.device = emulated().id; }), HasSubstr("emulated device"));
  EXPECT_THAT(db.requests(h200().id), IsEmpty());
}

TEST(Database, SummarisesRequestsWithCountsAndTheWinner) {
  Database db = with_devices(Database::in_memory());
  Record slow = timed_record(request_line(1), "TILE=16", 5e-5);
  Record fast = timed_record(request_line(1), "TILE=32", 1e-5);
  Record stale = timed_record(request_line(1), "TILE=64", 0.5e-5);
  stale.algorithm_digest = "old";
  Record failed = timed_record(request_line(1), "TILE=128", 0);
  failed.outcome = outcome::crashed;
  Record other = timed_record(request_line(2), "TILE=16", 0);
  other.outcome = outcome::refused;
  const std::vector<Record> records = {slow, fast, stale, failed, other};
  db.insert(records);
  const auto current = [](std::string_view, std::string_view digest) { return digest != "old"; };
  const auto summaries = db.requests(h200().id, current);
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_EQ(summaries[0].request, request_line(1));
  EXPECT_EQ(summaries[0].records, 4);
  EXPECT_EQ(summaries[0].usable, 3);
  EXPECT_EQ(summaries[0].stale, 1);
  EXPECT_EQ(summaries[0].best, fast);
  EXPECT_EQ(summaries[1].records, 1);
  EXPECT_EQ(summaries[1].best, std::nullopt);
  EXPECT_EQ(db.requests(h200().id)[0].best, stale) << "without a predicate every digest is current";
}

TEST(Database, ASessionThatNeverEndedIsFoundAgain) {
  const ScratchFolder folder;
  const Session killed = {"s1", h200().id, "plan-digest", "0.1.0", 1000, std::nullopt};
  const Session later = {"s2", h200().id, "plan-digest", "0.1.0", 2000, std::nullopt};
  {
    Database db = with_devices(Database::open(folder.file("cache.db")));
    db.begin_session(killed);
    db.begin_session(later);
    db.end_session("s2", 3000);
    db.end_session("never begun", 3000);
  }
  Database db = Database::open(folder.file("cache.db"));
  EXPECT_EQ(db.unfinished_session(h200().id, "plan-digest"), killed);
  EXPECT_EQ(db.unfinished_session(h100().id, "plan-digest"), std::nullopt);
  EXPECT_EQ(db.unfinished_session(h200().id, "another plan"), std::nullopt);
  EXPECT_EQ(db.sessions().size(), 2u);
  EXPECT_EQ(db.sessions()[1].ended_ms, 3000);
  db.end_session("s1", 4000);
  EXPECT_EQ(db.unfinished_session(h200().id, "plan-digest"), std::nullopt);
}

TEST(Database, ACalibrationBelongsToItsDeviceAndTheLastOneCounts) {
  const ScratchFolder folder;
  const DeviceCalibration first = {h200().id, "copy_efficiency=0.8", 5}, second = {h200().id, "copy_efficiency=0.9", 6};
  {
    Database db = Database::open(folder.file("a.db"));
    EXPECT_EQ(db.calibration(h200().id), std::nullopt);
    EXPECT_EQ(db.put_calibration(first), Kept::durably);
    EXPECT_EQ(db.put_calibration(second), Kept::durably);
    EXPECT_THROW(db.put_calibration({h200().id, "two\nlines", 7}), Error);
  }
  Database read_only = Database::open(folder.file("a.db"), {.mode = OpenMode::read_only});
  EXPECT_EQ(read_only.calibration(h200().id), second);
  EXPECT_EQ(read_only.calibration(h100().id), std::nullopt);
  EXPECT_EQ(read_only.put_calibration(first), Kept::in_memory);
  EXPECT_EQ(read_only.calibration(h200().id), first);
}

TEST(Database, ACalibrationThatWasDamagedIsNotBelieved) {
  const ScratchFolder folder;
  {
    Database db = Database::open(folder.file("a.db"));
    db.put_calibration({h200().id, "copy_efficiency=0.8", 5});
  }
  Connection::open(folder.file("a.db"), SQLITE_OPEN_READWRITE, std::chrono::milliseconds(1000))
      .execute("UPDATE calibrations SET figures = 'copy_efficiency=8.8'");
  Announcements announced;
  const Database db = Database::open(folder.file("a.db"), {}, announced.listener());
  EXPECT_EQ(db.calibration(h200().id), std::nullopt);
  ASSERT_EQ(announced.seen.size(), 1u);
  EXPECT_EQ(announced.seen[0].trouble, Trouble::corrupt);
}

TEST(Database, ACalibrationStaysWithItsDatabase) {
  Database from = with_devices(Database::in_memory()), into = with_devices(Database::in_memory());
  from.put_calibration({h200().id, "copy_efficiency=0.8", 5});
  into.merge(from);
  EXPECT_EQ(into.calibration(h200().id), std::nullopt);
  EXPECT_EQ(export_pack(from), export_pack(into));
}

TEST(Database, QuarantineHoldsForExactlyTheSameSourceDeviceAndVersions) {
  Database db = Database::in_memory();
  const Quarantine entry = {"digest", h200().id, "13000", "13.0", "crashed in two fresh processes", 5};
  db.add_quarantine(entry);
  EXPECT_EQ(db.find_quarantine("digest", h200().id, "13000", "13.0"), entry);
  EXPECT_EQ(db.find_quarantine("other", h200().id, "13000", "13.0"), std::nullopt);
  EXPECT_EQ(db.find_quarantine("digest", h100().id, "13000", "13.0"), std::nullopt);
  EXPECT_EQ(db.find_quarantine("digest", h200().id, "13001", "13.0"), std::nullopt);
  EXPECT_EQ(db.find_quarantine("digest", h200().id, "13000", "12.9"), std::nullopt);
  EXPECT_THAT(db.quarantine(), ElementsAre(entry));
}

TEST(Database, QuarantineEndsForThatEntryAlone) {
  Database db = Database::in_memory();
  const Quarantine entry = {"digest", h200().id, "13000", "13.0", "crashed in two fresh processes", 5};
  Quarantine newer = entry;
  newer.driver_version = "13001";
  db.add_quarantine(entry);
  db.add_quarantine(newer);
  db.end_quarantine(entry);
  EXPECT_THAT(db.quarantine(), ElementsAre(newer));
  db.end_quarantine(entry);
  EXPECT_THAT(db.quarantine(), ElementsAre(newer));
}

TEST(Database, MergingShardsGivesTheSameInAnyOrderAndTwice) {
  std::mt19937_64 random(7);
  const std::vector<DeviceEntry> devices = {h200(), h100(), emulated()};
  for (int round = 0; round < 20; ++round) {
    std::vector<Database> shards;
    for (int i = 0; i < 2; ++i) {
      Database shard = with_devices(Database::in_memory());
      std::vector<Record> records;
      for (int r = 0; r < 20; ++r) records.push_back(random_record(random, devices));
      shard.insert(records);
      shards.push_back(std::move(shard));
    }
    Database ab = Database::in_memory();
    Database ba = Database::in_memory();
    ab.merge(shards[0]);
    ab.merge(shards[1]);
    ba.merge(shards[1]);
    ba.merge(shards[0]);
    EXPECT_EQ(export_pack(ab), export_pack(ba));
    const MergeResult again = ab.merge(shards[0]);
    EXPECT_EQ(again.added + again.replaced, 0);
    EXPECT_EQ(export_pack(ab), export_pack(ba));
    EXPECT_EQ(export_pack(ab), merge(export_pack(shards[0]), export_pack(shards[1])));
  }
}

TEST(Database, ServesThreadsOneAfterTheOther) {
  const ScratchFolder folder;
  Database db = with_devices(Database::open(folder.file("cache.db")));
  constexpr int threads = 4, each = 20;
  std::atomic<int> durable = 0;
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        const Record r = timed_record(request_line(t), "TILE=" + std::to_string(i), 1e-5);
        if (db.insert(one(r)) == Kept::durably) ++durable;
        EXPECT_GE(db.records(request_line(t), h200().id).size(), static_cast<std::size_t>(i + 1));
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(durable, threads * each);
  EXPECT_EQ(db.requests(h200().id).size(), static_cast<std::size_t>(threads));
}

TEST(Database, AnEmptyPathIsTheCallersError) {
  EXPECT_THAT(error_of(ErrorCode::invalid_argument, [] { Database::open(""); }), HasSubstr("path"));
}

}  // namespace
}  // namespace kiln::cache::test::database_test
