#include "schema.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "cache_fixtures.h"
#include "file_system.h"
#include "kiln/cache/pack.h"
#include "kiln/cache/winners.h"

namespace kiln::cache::test::schema_test {
namespace {

Connection open_raw(const std::string& path) {
  return Connection::open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, std::chrono::milliseconds(1000));
}

// The view for people, by the SQLite that they use: a Connection lets no view run.
std::vector<std::string> read_candidates(const std::string& path, const std::string& column = "config") {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK);
  std::vector<std::string> configs;
  const auto take = [](void* out, int, char** values, char**) {
    static_cast<std::vector<std::string>*>(out)->emplace_back(values[0]);
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(db, ("SELECT " + column + " FROM candidates").c_str(), take, &configs, nullptr), SQLITE_OK);
  sqlite3_close_v2(db);
  return configs;
}

constexpr std::array<Migration, 3> three_steps = {
    Migration{1, [](Connection& db) { db.execute("CREATE TABLE t(a INTEGER); INSERT INTO t VALUES (1)"); }},
    Migration{2, [](Connection& db) { db.execute("ALTER TABLE t ADD COLUMN b INTEGER NOT NULL DEFAULT 7"); }},
    Migration{3, [](Connection& db) { db.execute("UPDATE t SET b = b + a"); }},
};

TEST(Schema, MigratesFromEveryOlderVersionToTheNewest) {
  for (std::size_t from = 0; from <= 3; ++from) {
    const ScratchFolder folder;
    Connection db = open_raw(folder.file("x.db"));
    if (from > 0) migrate(db, std::span(three_steps).subspan(0, from));
    EXPECT_EQ(db.integer_of("PRAGMA user_version"), static_cast<std::int64_t>(from));
    migrate(db, three_steps);
    migrate(db, three_steps);
    EXPECT_EQ(db.integer_of("PRAGMA user_version"), 3);
    EXPECT_EQ(db.integer_of("SELECT b FROM t"), 8);
  }
}

// A file as schema 2 left it: without calibrations.
void make_version_2(const std::string& path, std::span<const Record> records) {
  {
    Database db = with_devices(Database::open(path));
    db.insert(records);
  }
  open_raw(path).execute(
      "DROP TABLE calibrations; DROP TABLE runs; DROP TABLE run_layers; DROP INDEX records_that_bar; PRAGMA "
      "user_version = 2");
}

// A file as schema 1 left it: without checksums as well, and with fronts of another form.
void make_version_1(const std::string& path, std::span<const Record> records) {
  make_version_2(path, records);
  Connection db = open_raw(path);
  db.execute(
      "UPDATE fronts SET entries = substr(entries, 1, length(entries) - 8); ALTER TABLE records DROP COLUMN checksum; "
      "ALTER TABLE devices DROP COLUMN checksum; PRAGMA user_version = 1");
}

TEST(Schema, ADatabaseOfVersion1IsSealedAndKeepsEverything) {
  const ScratchFolder folder;
  std::mt19937_64 random(41);
  std::vector<Record> records;
  for (int i = 0; i < 60; ++i) records.push_back(random_record(random, {h200(), h100()}));
  make_version_1(folder.file("old.db"), records);
  make_version_1(folder.file("same.db"), records);
  Announcements announced;
  const Database old = Database::open(folder.file("old.db"), {}, announced.listener());
  const Database fresh = [&] {
    Database db = with_devices(Database::in_memory());
    db.insert(records);
    return db;
  }();
  EXPECT_TRUE(announced.seen.empty()) << announced.seen[0].text();
  EXPECT_EQ(export_pack(old), export_pack(fresh));
  for (const RequestSummary& summary : fresh.requests(h200().id)) {
    Winners from_old(h200()), from_fresh(h200());
    from_old.load(old);
    from_fresh.load(fresh);
    ASSERT_EQ(from_old.find(summary.request).has_value(), from_fresh.find(summary.request).has_value());
    if (const auto choice = from_fresh.find(summary.request)) {
      EXPECT_EQ(from_old.find(summary.request)->config, choice->config);
    }
  }
}

TEST(Schema, ADatabaseOfVersion2KeepsEverythingAndTakesCalibrations) {
  const ScratchFolder folder;
  std::mt19937_64 random(43);
  std::vector<Record> records;
  for (int i = 0; i < 20; ++i) records.push_back(random_record(random, {h200(), h100()}));
  make_version_2(folder.file("old.db"), records);
  Database fresh = with_devices(Database::in_memory());
  fresh.insert(records);
  const DeviceCalibration calibration = {h200().id, "copy_efficiency=0.8", 5};
  Announcements announced;
  {
    Database old = Database::open(folder.file("old.db"), {}, announced.listener());
    EXPECT_EQ(export_pack(old), export_pack(fresh));
    EXPECT_EQ(old.calibration(h200().id), std::nullopt);
    EXPECT_EQ(old.put_calibration(calibration), Kept::durably);
  }
  EXPECT_EQ(open_raw(folder.file("old.db")).integer_of("PRAGMA user_version"), schema_version());
  const Database again = Database::open(folder.file("old.db"), {.mode = OpenMode::read_only}, announced.listener());
  EXPECT_EQ(again.calibration(h200().id), calibration);
  EXPECT_EQ(export_pack(again), export_pack(fresh));
  EXPECT_TRUE(announced.seen.empty()) << announced.seen[0].text();
}

TEST(Schema, HasAViewWithTimesInMicroseconds) {
  const ScratchFolder folder;
  Record record = timed_record(request_line(1), "TILE=32", 0.5);
  record.spread = 0.25;
  { with_devices(Database::open(folder.file("a.db"))).insert(std::span(&record, 1)); }
  const auto value = [&](const char* column) { return read_candidates(folder.file("a.db"), column).at(0); };
  EXPECT_EQ(value("microseconds"), "500000.0");
  EXPECT_EQ(value("spread_microseconds"), "250000.0");
  EXPECT_EQ(value("created"), format_utc(record.created_ms).substr(0, 19) + "Z");
  EXPECT_EQ(value("request"), record.request);
  EXPECT_EQ(value("device"), record.device);
}

TEST(Schema, ADatabaseOfTheNextVersionIsLeftAlone) {
  const ScratchFolder folder;
  const std::string path = folder.file("newer.db");
  with_devices(Database::open(path));
  open_raw(path).execute(fmt::format("PRAGMA user_version = {}", schema_version() + 1));
  Announcements announced;
  Database db = Database::open(path, {}, announced.listener());
  EXPECT_EQ(db.put_calibration({h200().id, "copy_efficiency=0.8", 5}), Kept::in_memory);
  ASSERT_EQ(announced.seen.size(), 1u);
  EXPECT_EQ(announced.seen[0].trouble, Trouble::newer_schema);
  EXPECT_EQ(open_raw(path).integer_of("SELECT COUNT(*) FROM calibrations"), 0);
}

TEST(Schema, AMigrationThatFailsChangesNothing) {
  const ScratchFolder folder;
  Connection db = open_raw(folder.file("x.db"));
  migrate(db, std::span(three_steps).subspan(0, 1));
  const std::array<Migration, 3> broken = {three_steps[0], three_steps[1],
                                           Migration{3, [](Connection& c) { c.execute("no such statement"); }}};
  EXPECT_THROW(migrate(db, broken), SqliteFault);
  EXPECT_EQ(db.integer_of("PRAGMA user_version"), 1);
  EXPECT_THROW(db.integer_of("SELECT b FROM t"), SqliteFault);
}

TEST(Schema, AnEmptyFileOfVersionZeroBecomesADatabase) {
  const ScratchFolder folder;
  write_file(folder.file("zero bytes.db"), "");
  {
    Connection db = open_raw(folder.file("version 0.db"));
    db.execute("CREATE TABLE t(a); DROP TABLE t");  // a database without tables, user_version 0
  }
  for (const char* name : {"zero bytes.db", "version 0.db"}) {
    Announcements announced;
    {
      Database db = with_devices(Database::open(folder.file(name), {}, announced.listener()));
      const Record r = timed_record(request_line(1), "TILE=32", 1e-5);
      EXPECT_EQ(db.insert(std::span(&r, 1)), Kept::durably);
    }
    EXPECT_TRUE(announced.seen.empty()) << announced.seen[0].text();
    Connection db = open_raw(folder.file(name));
    EXPECT_EQ(db.integer_of("PRAGMA user_version"), schema_version());
    EXPECT_EQ(db.integer_of("PRAGMA application_id"), application_id);
    EXPECT_THAT(read_candidates(folder.file(name)), ::testing::ElementsAre("TILE=32"));
  }
}

TEST(Schema, ALocalFileUsesAWriteAheadLogAndAsksForFlushes) {
  const ScratchFolder folder;
  const auto mode_of = [&](const char* name, Journal journal) {
    OpenOptions options;
    options.journal = journal;
    Database::open(folder.file(name), options);
    return open_raw(folder.file(name)).text_of("PRAGMA journal_mode");
  };
  const bool network = on_network_file_system(folder.path());
  EXPECT_EQ(mode_of("a.db", Journal::automatic), network ? "delete" : "wal");
  EXPECT_EQ(mode_of("b.db", Journal::wal), "wal");
  EXPECT_EQ(mode_of("b.db", Journal::rollback), "delete") << "a moved database is converted";
  EXPECT_EQ(mode_of("b.db", Journal::wal), "wal");
}

TEST(Schema, AFileWithoutALogIsLeftWithout) {
  const ScratchFolder folder;
  const std::string path = folder.file("a.db");
  Database::open(path, {.journal = Journal::rollback});
  Announcements announced;
  EXPECT_EQ(Database::open(path, {}, announced.listener()).storage(), Storage::file);
  EXPECT_EQ(open_raw(path).text_of("PRAGMA journal_mode"), "delete") << "others may be using it over the network";
  EXPECT_TRUE(announced.seen.empty());
}

// Journal::rollback is what a network file system gets.
TEST(Schema, WhereMachinesShareAFileALogIsGivenUpOrNothingIsWritten) {
  const ScratchFolder folder;
  const std::string path = folder.file("a.db");
  with_devices(Database::open(path, {.journal = Journal::wal}));
  Connection holder = open_raw(path);
  holder.integer_of("SELECT COUNT(*) FROM devices");
  {
    Announcements announced;
    Database db = with_devices(Database::open(path, {.journal = Journal::rollback}, announced.listener()));
    ASSERT_EQ(announced.seen.size(), 1u);
    EXPECT_EQ(announced.seen[0].trouble, Trouble::locked);
    EXPECT_THAT(announced.seen[0].what,
                ::testing::HasSubstr("a write-ahead log, which only works among the processes"));
    const Record r = timed_record(request_line(1), "TILE=32", 1e-5);
    EXPECT_EQ(db.insert(std::span(&r, 1)), Kept::in_memory);
  }
  EXPECT_EQ(holder.integer_of("SELECT COUNT(*) FROM records"), 0);
  EXPECT_EQ(holder.text_of("PRAGMA journal_mode"), "wal");
}

TEST(Schema, WhereMachinesShareAFileAReaderOpensNoLog) {
  const ScratchFolder folder;
  const std::string path = folder.file("a.db");
  {
    Database db = with_devices(Database::open(path, {.journal = Journal::wal}));
    const Record r = timed_record(request_line(1), "TILE=32", 1e-5);
    db.insert(std::span(&r, 1));
  }
  const OpenOptions shared{
      .mode = OpenMode::read_only, .busy_timeout = std::chrono::milliseconds(20), .journal = Journal::rollback};
  {
    Announcements announced;
    const Database db = Database::open(path, shared, announced.listener());
    EXPECT_EQ(db.records(request_line(1), h200().id).size(), 1u) << "its log is folded into it";
    EXPECT_TRUE(announced.seen.empty());
    EXPECT_FALSE(std::filesystem::exists(path + "-shm"));
  }
  Database writer = Database::open(path, {.journal = Journal::wal});
  const Record r = timed_record(request_line(2), "TILE=32", 1e-5);
  writer.insert(std::span(&r, 1));
  Announcements announced;
  EXPECT_EQ(Database::open(path, shared, announced.listener()).storage(), Storage::memory);
  ASSERT_EQ(announced.seen.size(), 1u);
  EXPECT_THAT(announced.seen[0].what, ::testing::HasSubstr("has a write-ahead log that cannot be read here"));
}

TEST(FileSystem, OfAFileThatIsNotThereYetIsItsFoldersOne) {
  const ScratchFolder folder;
  EXPECT_EQ(on_network_file_system(folder.file("a.db")), on_network_file_system(folder.path()));
  EXPECT_FALSE(on_network_file_system(folder.file("not/there/a.db")));
}

TEST(FileSystem, KnowsWhereSeveralMachinesMayWrite) {
  for (const long magic : {0x6969L, 0xFF534D42L, 0xFE534D42L, 0x0BD00BD0L, 0x47504653L, 0x65735546L, 0xBACBACBCL,
                           0x20030528L, 0x6A656A63L, 0x12345678L}) {  // HGFS OrangeFS virtiofs, unknown
    EXPECT_TRUE(is_network_file_system(magic)) << magic;
  }
  EXPECT_TRUE(is_network_file_system(static_cast<int>(0xFF534D42))) << "32-bit f_type is sign-extended";
  for (const long magic :
       {0xEF53L, 0x58465342L, 0x9123683EL, 0x01021994L, 0x794C7630L, 0x2FC12FC1L, 0xF2F52010L}) {  // ext4 xfs btrfs
    // tmpfs overlay zfs f2fs
    EXPECT_FALSE(is_network_file_system(magic)) << magic;
  }
}

}  // namespace
}  // namespace kiln::cache::test::schema_test
