// Databases made to do harm: schemas that compute, pages in a circle, huge values, rows that no Kiln writes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <functional>
#include <string>

#include "cache_fixtures.h"
#include "checksum.h"
#include "kiln/cache/pack.h"
#include "kiln/cache/winners.h"
#include "schema.h"
#include "sqlite.h"

namespace kiln::cache::test::hostile_database_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// SQL by the SQLite that everybody has, which permits all of it.
void run_sql(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr), SQLITE_OK);
  char* problem = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &problem), SQLITE_OK) << problem;
  sqlite3_close_v2(db);
}

class HostileDatabase : public ::testing::Test {
 protected:
  void make(const std::vector<Record>& records = {timed_record(request_line(1), "TILE=16", 1e-5)}) const {
    Database db = with_devices(Database::open(path_, {.journal = Journal::rollback}));
    ASSERT_EQ(db.insert(records), Kept::durably);
  }

  // Announcements of everything that reads it, within a time, for reading and for writing.
  std::vector<std::string> announced(Storage expected) const {
    std::vector<std::string> texts;
    for (const OpenMode mode : {OpenMode::read_only, OpenMode::read_write}) {
      const auto start = std::chrono::steady_clock::now();
      {
        Announcements heard;
        Database db = Database::open(path_, {.mode = mode}, heard.listener());
        for (const DeviceEntry& device : db.devices()) db.requests(device.id);
        db.records(request_line(1), h200().id);
        db.runs();
        export_pack(db);
        Winners winners(h200());
        winners.load(db);
        winners.all(request_line(1));
        if (mode == OpenMode::read_write) {
          EXPECT_EQ(db.storage(), expected);
        }
        for (const Announcement& one : heard.seen) texts.push_back(one.text());
      }
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
    }
    return texts;
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_.file("hostile.db");
};

TEST_F(HostileDatabase, AViewThatNeverEndsIsNotRun) {
  run_sql(path_,
          fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; CREATE VIEW devices AS WITH "
                      "RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, 'd' AS device, "
                      "'n' AS name, 9 AS cc_major, 0 AS cc_minor, 1 AS sms, 0 AS emulated, 0 AS checksum FROM n",
                      application_id, schema_version()));
  const std::vector<std::string> texts = announced(Storage::memory);
  ASSERT_THAT(texts, SizeIs(2));
  EXPECT_THAT(texts[0], HasSubstr("hostile.db is no tuning database that Kiln made: "));
}

TEST_F(HostileDatabase, OnlyTheSchemaThatKilnMakesIsTaken) {
  const std::pair<const char*, const char*> parts[] = {
      {"CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END", "the trigger t is not Kiln's"},
      {"CREATE TABLE more(a)", "the table more is not Kiln's"},
      {"CREATE VIEW more AS SELECT 1", "the view more is not Kiln's"},
      {"CREATE INDEX more ON records(outcome)", "the index more is not Kiln's"},
      {"ALTER TABLE records ADD COLUMN g BLOB GENERATED ALWAYS AS (zeroblob(1000000000)) VIRTUAL",
       "the table records is not defined as Kiln defines it"},
      {"DROP INDEX records_that_bar", "the index records_that_bar is missing"},
      {"DROP VIEW candidates; CREATE VIEW candidates AS SELECT 1",
       "the view candidates is not defined as Kiln defines it"},
      {"CREATE VIRTUAL TABLE a USING fts5(session)", "the table a is not Kiln's"},
      {"PRAGMA user_version = -3", "there is no schema -3"},
  };
  for (const auto& [sql, reason] : parts) {
    std::filesystem::remove(path_);
    make();
    run_sql(path_, sql);
    const std::string before = read_file(path_);
    const std::vector<std::string> texts = announced(Storage::memory);
    ASSERT_THAT(texts, SizeIs(2)) << sql;
    EXPECT_THAT(texts, ::testing::Each(HasSubstr(reason))) << sql;
    EXPECT_EQ(read_file(path_), before) << sql;
  }
}

TEST_F(HostileDatabase, NamesInItsSchemaReachNoTerminal) {
  make();
  run_sql(path_, "CREATE TABLE \"\x1b]0;owned\x07\"(a)");
  EXPECT_THAT(announced(Storage::memory)[0], HasSubstr("the table \\x1b]0;owned\\x07 is not Kiln's"));
}

// A root page whose children are that page's own kind gives rows for as long as it is asked.
TEST_F(HostileDatabase, PagesThatGiveRowsForEverEnd) {
  make();
  Database::open(path_, {.journal = Journal::rollback}).begin_session({"s", h200().id, "plan", "0.1.0", 1, {}});
  std::string bytes = read_file(path_);
  constexpr std::size_t page_size = 4096;
  const auto put = [&](std::size_t at, unsigned value, int size) {
    for (int i = 0; i < size; ++i)
      bytes[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> 8 * (size - 1 - i));
  };
  std::size_t root = 0;
  {
    Connection db = Connection::open(path_, SQLITE_OPEN_READONLY, std::chrono::milliseconds(0));
    root = static_cast<std::size_t>(db.integer_of("SELECT rootpage FROM sqlite_schema WHERE name = 'sessions'"));
  }
  // Levels of interior pages behind the file's end, each of 300 cells that name the next level; the last names the
  // page that was the table's.
  const std::size_t pages = bytes.size() / page_size;
  constexpr std::size_t levels = 6;
  bytes.resize(bytes.size() + (levels + 1) * page_size);
  const std::size_t leaf = pages + levels + 1;
  bytes.replace((leaf - 1) * page_size, page_size, bytes, (root - 1) * page_size, page_size);
  for (std::size_t level = 0; level <= levels; ++level) {
    const std::size_t page = level == 0 ? root : pages + level;
    const std::size_t child = level == levels ? leaf : pages + level + 1;
    const std::size_t at = (page - 1) * page_size;
    constexpr std::size_t cells = 300, cell_bytes = 6;
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), page_size, '\0');
    put(at, 5, 1);
    put(at + 3, cells, 2);
    put(at + 5, page_size - cells * cell_bytes, 2);
    put(at + 8, static_cast<unsigned>(child), 4);
    for (std::size_t cell = 0; cell < cells; ++cell) {
      const std::size_t offset = page_size - (cell + 1) * cell_bytes;
      put(at + 12 + 2 * cell, static_cast<unsigned>(offset), 2);
      put(at + offset, static_cast<unsigned>(child), 4);
      put(at + offset + 4, 0x8101, 2);
    }
  }
  put(28, static_cast<unsigned>(bytes.size() / page_size), 4);
  write_file(path_, bytes);
  const auto start = std::chrono::steady_clock::now();
  Announcements heard;
  EXPECT_EQ(Database::open(path_, {.mode = OpenMode::read_only}, heard.listener()).storage(), Storage::memory);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  ASSERT_THAT(heard.seen, SizeIs(1));
  EXPECT_THAT(heard.seen[0].what, HasSubstr("takes longer to read than its size explains"));
}

TEST_F(HostileDatabase, AHugeTextIsNotRead) {
  make();
  run_sql(path_, fmt::format("UPDATE records SET error = CAST(zeroblob({}) AS TEXT)", max_value_bytes + 1));
  EXPECT_THAT(announced(Storage::memory), ::testing::Each(HasSubstr("hostile.db")));
}

// Rows with right checksums, as whoever knows the format can write them.
void forge(const std::string& path, const Record& record) {
  Connection db = Connection::open(path, SQLITE_OPEN_READWRITE, std::chrono::milliseconds(100));
  db.query("UPDATE records SET config = ?1, error = ?2, checksum = ?3", record.config, record.error,
           checksum_of(record))
      .run();
}

TEST_F(HostileDatabase, ARowThatNoKilnWritesIsLeftOutAndTheOthersAreUsed) {
  Record good = timed_record(request_line(1), "TILE=16", 1e-5), bad = good;
  for (const std::string& config : {std::string(70'000, 'x'), std::string("TILE=\x1b[2J"), std::string("\xff")}) {
    std::filesystem::remove(path_);
    make({good});
    bad.config = config;
    forge(path_, bad);
    {
      Database db = Database::open(path_);
      const Record other = timed_record(request_line(1), "TILE=32", 2e-5);
      EXPECT_EQ(db.insert(std::span(&other, 1)), Kept::durably);
      EXPECT_THAT(db.records(request_line(1), h200().id), ElementsAre(other));
      ASSERT_THAT(db.requests(h200().id), SizeIs(1));
      EXPECT_EQ(db.requests(h200().id)[0].best, other);
    }
    const std::vector<std::string> texts = announced(Storage::file);
    ASSERT_THAT(texts, SizeIs(2));
    EXPECT_THAT(texts[0], HasSubstr("a record in it is not as Kiln writes it; damaged rows are left out"));
  }
}

TEST_F(HostileDatabase, AFrontThatIsDamagedIsMadeOfItsRecords) {
  make();
  run_sql(path_, "UPDATE fronts SET entries = zeroblob(40)");
  Announcements heard;
  const Database db = Database::open(path_, {.mode = OpenMode::read_only}, heard.listener());
  Winners winners(h200());
  winners.load(db);
  ASSERT_TRUE(winners.find(request_line(1)));
  EXPECT_EQ(winners.find(request_line(1))->config, "TILE=16");
  ASSERT_THAT(heard.seen, SizeIs(1));
  EXPECT_EQ(heard.seen[0].trouble, Trouble::corrupt);
}

// Records that a pack would not be let in with, a database is not merged with.
TEST_F(HostileDatabase, AMergeLetsInWhatAnImportDoes) {
  Record lie = timed_record(request_line(2), "TILE=16", 1e-30), odd = timed_record(request_line(3), "TILE=16", 1e-5);
  odd.algorithm = "another";
  make({timed_record(request_line(1), "TILE=16", 1e-5), lie, odd});
  PackValidator validator;
  validator.request = [](std::string_view) { return std::nullopt; };
  validator.record = [](const DeviceEntry&, const Record& r) {
    return r.algorithm == "another" ? std::optional<std::string>("is not known") : std::nullopt;
  };
  Database all = with_devices(Database::in_memory());
  const MergeResult merged = all.merge(Database::open(path_, {.mode = OpenMode::read_only}), {.validator = validator});
  EXPECT_EQ(merged.added, 1);
  EXPECT_EQ(merged.refused_records, 2);
  EXPECT_THAT(merged.refused, ElementsAre(HasSubstr("is impossible"), HasSubstr("another TILE=16: is not known")));
  EXPECT_THAT(all.records(request_line(2), h200().id), IsEmpty());
}

TEST_F(HostileDatabase, WhatIsMergedIsOnlyOwnWhereThatIsSaid) {
  make();
  {
    Database db = Database::open(path_);
    db.add_quarantine({"source", h200().id, "1", "2", "crashed", 1});
  }
  const Database from = Database::open(path_, {.mode = OpenMode::read_only});
  for (const bool own : {false, true}) {
    Database all = Database::in_memory();
    all.merge(from, {.validator = {}, .own = own});
    EXPECT_EQ(is_own(all.records(request_line(1), h200().id).at(0)), own);
    EXPECT_EQ(all.quarantine().size(), own ? 1u : 0u);
    Winners winners(h200());
    winners.load(all);
    EXPECT_TRUE(winners.find(request_line(1)));
    EXPECT_EQ(winners.has_passed(request_line(1), "conv_implicit_gemm", "TILE=16"), own);
  }
}

}  // namespace
}  // namespace kiln::cache::test::hostile_database_test
