// Behaviour of a database when its file cannot do what it should: one announcement, then memory, never an exception.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "cache_fixtures.h"
#include "kiln/cache/pack.h"
#include "kiln/cache/winners.h"
#include "schema.h"
#include "sqlite.h"

namespace kiln::cache::test::fault_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Connection open_raw(const std::string& path) {
  return Connection::open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, std::chrono::milliseconds(100));
}

OpenOptions impatient() {
  OpenOptions options;
  options.busy_timeout = std::chrono::milliseconds(20);
  return options;
}

Kept insert(Database& db, const Record& record) {
  return db.insert(std::span(&record, 1));
}

// Everything an application does with its cache. Damage that SQLite cannot see may hide records: then no answers are
// expected.
void run_through(Database& db) {
  db.put_device(h200());
  db.begin_session({"s", h200().id, "plan", "0.1.0", 1, std::nullopt});
  const Record r = timed_record(request_line(900), "TILE=32", 1e-5);
  insert(db, r);
  for (int i = 0; i < 50; ++i) db.records(request_line(i), h200().id);
  db.requests(h200().id);
  db.records_of_session(r.session);
  db.add_quarantine({"digest", h200().id, "1", "2", "why", 1});
  Winners winners(h200());
  winners.load(db);
  winners.refresh(db, r.request);
  db.end_session("s", 2);
  db.unfinished_session(h200().id, "plan");
}

// The same on a database that must answer as ever.
void use(Database& db) {
  run_through(db);
  const Record r = timed_record(request_line(900), "TILE=32", 1e-5);
  EXPECT_THAT(db.records(r.request, r.device), ::testing::Contains(r));
  EXPECT_FALSE(db.requests(h200().id).empty());
  EXPECT_FALSE(db.records_of_session(r.session).empty());
  EXPECT_TRUE(db.find_quarantine("digest", h200().id, "1", "2").has_value());
  Winners winners(h200());
  winners.load(db);
  EXPECT_TRUE(winners.find(r.request).has_value());
  EXPECT_FALSE(export_pack(db).records.empty());
}

void make_database(const std::string& path, int requests = 1) {
  Database db = with_devices(Database::open(path));
  std::vector<Record> records;
  for (int i = 0; i < requests; ++i) records.push_back(timed_record(request_line(i), "TILE=16", 2e-5));
  ASSERT_EQ(db.insert(records), Kept::durably);
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// Opens and uses a file that must not be touched.
Announcement announced_for(const std::string& path, const OpenOptions& options = impatient()) {
  const std::string before = read_file(path);
  const std::string folder = std::filesystem::path(path).parent_path();
  const std::vector<std::string> names = names_in(folder);
  Announcements announced;
  {
    Database db = Database::open(path, options, announced.listener());
    EXPECT_EQ(db.storage(), Storage::memory);
    use(db);
  }
  EXPECT_EQ(names_in(folder), names) << "a log or shared memory stays behind";
  EXPECT_EQ(announced.seen.size(), 1u);
  EXPECT_TRUE(read_file(path) == before) << "the file was touched";
  return announced.seen.empty() ? Announcement{} : announced.seen[0];
}

TEST(Fault, GarbageIsLeftAloneAndAnnounced) {
  const ScratchFolder folder;
  write_file(folder.file("garbage.db"), std::string(5000, 'x') + "not SQLite");
  const Announcement a = announced_for(folder.file("garbage.db"));
  EXPECT_EQ(a.trouble, Trouble::not_a_database);
  EXPECT_THAT(a.what, HasSubstr("garbage.db is not a database"));
  EXPECT_THAT(a.what, HasSubstr("records are kept in memory"));
  EXPECT_FALSE(a.hint.empty());
  write_file(folder.file("short.db"), "x");
  announced_for(folder.file("short.db"));
}

TEST(Fault, ATruncatedFileIsLeftAloneAtAnyLength) {
  const ScratchFolder folder;
  make_database(folder.file("whole.db"), 50);
  const std::string whole = read_file(folder.file("whole.db"));
  for (const std::size_t length :
       {std::size_t{10}, std::size_t{100}, std::size_t{4096}, whole.size() / 2, whole.size() - 1}) {
    write_file(folder.file("cut.db"), whole.substr(0, length));
    const Announcement a = announced_for(folder.file("cut.db"));
    EXPECT_TRUE(a.trouble == Trouble::corrupt || a.trouble == Trouble::not_a_database) << length << a.text();
  }
}

TEST(Fault, ADamagedFileNeverStopsTheApplication) {
  const ScratchFolder folder;
  make_database(folder.file("whole.db"), 50);
  const std::string whole = read_file(folder.file("whole.db"));
  std::mt19937_64 random(13);
  int announcements = 0;
  for (int round = 0; round < 60; ++round) {
    std::string damaged = whole;
    const std::size_t at = random() % (damaged.size() - 512);
    for (std::size_t i = 0; i < 512; ++i) damaged[at + i] = static_cast<char>(random());
    write_file(folder.file("damaged.db"), damaged);
    Announcements announced;
    {
      Database db = Database::open(folder.file("damaged.db"), impatient(), announced.listener());
      EXPECT_NO_THROW(run_through(db)) << "damage at " << at;
    }
    EXPECT_LE(announced.of_rows(), 1u);
    EXPECT_LE(announced.seen.size() - announced.of_rows(), 1u);
    announcements += static_cast<int>(announced.seen.size());
  }
  EXPECT_GT(announcements, 10);
}

// SQLite sees nothing wrong with a value that was altered; the checksums do.
TEST(Fault, AnAlteredValueIsNeverTakenForTheStoredOne) {
  for (const char* alteration :
       {"UPDATE records SET seconds = seconds / 2", "UPDATE records SET workspace = 1",
        "UPDATE records SET config = 'TILE=99'", "UPDATE records SET samples = zeroblob(16)",
        "UPDATE algorithms SET name = 'conv_direct'", "UPDATE requests SET key = key || ' '",
        "UPDATE devices SET sms = 1", "UPDATE devices SET emulated = 1",
        "UPDATE fronts SET entries = zeroblob(length(entries))", "UPDATE records SET checksum = checksum + 1"}) {
    const ScratchFolder folder;
    const std::string path = folder.file("cache.db");
    make_database(path);
    open_raw(path).execute(alteration);
    Announcements announced;
    const Database db = Database::open(path, impatient(), announced.listener());
    const Record stored = timed_record(request_line(0), "TILE=16", 2e-5);
    for (const std::string& request : {stored.request, stored.request + " "}) {
      for (const Record& r : db.records(request, h200().id)) EXPECT_EQ(r, stored) << alteration;
      Winners winners(h200());
      winners.load(db);
      if (const auto choice = winners.find(request)) {
        EXPECT_EQ(choice->seconds, stored.seconds) << alteration;
        EXPECT_EQ(choice->algorithm, stored.algorithm) << alteration;
      }
    }
    for (const DeviceEntry& device : db.devices())
      EXPECT_THAT(device, ::testing::AnyOf(h200(), h100(), rtx4090(), emulated()));
    export_pack(db);
    ASSERT_EQ(announced.seen.size(), 1u) << alteration;
    EXPECT_EQ(announced.seen[0].trouble, Trouble::corrupt) << alteration;
  }
}

TEST(Fault, ANewerSchemaIsLeftAlone) {
  const ScratchFolder folder;
  const std::string path = folder.file("newer.db");
  make_database(path);
  open_raw(path).execute("PRAGMA user_version = 999");
  const Announcement a = announced_for(path);
  EXPECT_EQ(a.trouble, Trouble::newer_schema);
  EXPECT_THAT(a.what, HasSubstr("schema 999"));
  EXPECT_THAT(a.hint, HasSubstr("update Kiln"));
}

TEST(Fault, AnotherApplicationsDatabaseIsLeftAlone) {
  const ScratchFolder folder;
  const std::string path = folder.file("browser.db");
  open_raw(path).execute("CREATE TABLE history(url TEXT)");
  EXPECT_EQ(announced_for(path).trouble, Trouble::not_a_database);
}

TEST(Fault, ADamagedSchemaIsLeftAlone) {
  for (const char* damage :
       {"UPDATE sqlite_schema SET sql = 'CREATE TABLE records(' WHERE name = 'records'",
        "UPDATE sqlite_schema SET rootpage = 9999 WHERE type = 'table'", "CREATE VIEW foreign_view AS SELECT 1"}) {
    const ScratchFolder folder;
    const std::string path = folder.file("damaged.db");
    make_database(path);
    sqlite3* db = nullptr;  // a Connection does no damage
    ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, "PRAGMA writable_schema = ON", nullptr, nullptr, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, damage, nullptr, nullptr, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_close(db), SQLITE_OK);
    EXPECT_THAT(announced_for(path).hint,
                ::testing::AnyOf(HasSubstr("was left as it is"), HasSubstr("was not touched")))
        << damage;
  }
}

TEST(Fault, AFolderOrAnImpossiblePathIsAnnounced) {
  const ScratchFolder folder;
  write_file(folder.file("file"), "");
  for (const std::string& path : {folder.path(), folder.file("file/below/a/file.db"), std::string("/proc/none/x.db")}) {
    Announcements announced;
    Database db = Database::open(path, impatient(), announced.listener());
    EXPECT_EQ(db.storage(), Storage::memory);
    use(db);
    ASSERT_EQ(announced.seen.size(), 1u) << path;
    EXPECT_EQ(announced.seen[0].path, path);
  }
}

TEST(Fault, ALockedFileIsAnnouncedOnceAndMemoryTakesOver) {
  const ScratchFolder folder;
  const std::string path = folder.file("cache.db");
  make_database(path);
  OpenOptions rollback = impatient();
  rollback.journal = Journal::rollback;
  Database::open(path, rollback);  // readers and an exclusive lock exclude each other only in this mode
  Connection holder = open_raw(path);
  holder.execute("BEGIN EXCLUSIVE");
  Announcements announced;
  Database db = Database::open(path, rollback, announced.listener());
  EXPECT_EQ(db.storage(), Storage::memory);
  use(db);
  ASSERT_EQ(announced.seen.size(), 1u);
  EXPECT_EQ(announced.seen[0].trouble, Trouble::locked);
}

TEST(Fault, AWriteLockHeldTooLongKeepsTheFileReadable) {
  const ScratchFolder folder;
  const std::string path = folder.file("cache.db");
  make_database(path, 3);
  Connection holder = open_raw(path);
  holder.execute("BEGIN IMMEDIATE");
  Announcements announced;
  Database db = Database::open(path, impatient(), announced.listener());
  EXPECT_EQ(db.storage(), Storage::file);
  Record changed = timed_record(request_line(1), "TILE=16", 1e-5);
  const Record added = timed_record(request_line(1), "TILE=32", 3e-5);
  EXPECT_EQ(insert(db, changed), Kept::in_memory);
  EXPECT_EQ(insert(db, added), Kept::in_memory);
  EXPECT_EQ(db.storage(), Storage::file_and_memory);
  ASSERT_EQ(announced.seen.size(), 1u);
  EXPECT_EQ(announced.seen[0].trouble, Trouble::locked);
  EXPECT_THAT(announced.seen[0].what, HasSubstr("its records are used"));

  EXPECT_THAT(db.records(request_line(1), h200().id), ::testing::ElementsAre(changed, added));
  EXPECT_EQ(db.records(request_line(2), h200().id).size(), 1u);
  const auto requests = db.requests(h200().id);
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].best->seconds, 2e-5);
  EXPECT_EQ(requests[1].best, changed);
  EXPECT_EQ(requests[1].records, 2);
  EXPECT_EQ(db.records_of_session("session-1").size(), 4u);
  Winners winners(h200());
  winners.load(db);
  EXPECT_EQ(winners.find(request_line(1))->seconds, 1e-5);
  EXPECT_EQ(winners.find(request_line(2))->seconds, 2e-5);
  EXPECT_EQ(export_pack(db).records.size(), 4u);
  EXPECT_EQ(db.devices().size(), 4u);
  use(db);
  EXPECT_EQ(announced.seen.size(), 1u) << "once";
}

// Writes to a database that another connection keeps locked for longer than they wait.
class Locked : public ::testing::Test {
 protected:
  void write_all() {
    db.begin_session({"s", h200().id, "plan", "0.1.0", 1, std::nullopt});
    EXPECT_EQ(insert(db, added), Kept::in_memory);
    EXPECT_EQ(insert(db, changed), Kept::in_memory);
    db.add_quarantine(barred);
    EXPECT_EQ(db.storage(), Storage::file_and_memory);
  }

  void expect_all_in(const std::string& file) const {
    const Database written = Database::open(file, {.mode = OpenMode::read_only});
    EXPECT_THAT(written.records(request_line(1), h200().id), ::testing::Contains(added));
    EXPECT_THAT(written.records(request_line(1), h200().id), ::testing::Contains(changed));
    EXPECT_EQ(written.sessions().size(), 1u);
    EXPECT_THAT(written.quarantine(), ::testing::ElementsAre(barred));
  }

  const ScratchFolder folder;
  const std::string path = folder.file("cache.db");
  const Record added = timed_record(request_line(1), "TILE=32", 3e-5), changed = measured_again();
  const Quarantine barred = {"digest", h200().id, "1", "2", "why", 1};
  std::optional<Connection> holder = locked();
  Announcements announced;
  Database db = Database::open(path, impatient(), announced.listener());

 private:
  static Record measured_again() {
    Record record = timed_record(request_line(1), "TILE=16", 1e-5);
    ++record.created_ms;
    return record;
  }

  Connection locked() {
    make_database(path, 3);
    Connection connection = open_raw(path);
    connection.execute("BEGIN IMMEDIATE");
    return connection;
  }
};

TEST_F(Locked, WhatWaitedInMemoryIsStoredByTheNextWriteOnceTheLockIsGone) {
  write_all();
  ASSERT_EQ(announced.seen.size(), 1u);
  EXPECT_THAT(announced.seen[0].what, HasSubstr("new ones are kept in memory until it is free"));
  holder.reset();
  Database other = Database::open(path);
  const Record of_others = timed_record(request_line(1), "TILE=64", 2e-5);
  EXPECT_EQ(insert(other, of_others), Kept::durably);
  std::this_thread::sleep_for(2 * impatient().busy_timeout);  // until then it is not tried again
  EXPECT_EQ(insert(db, timed_record(request_line(2), "TILE=32", 3e-5)), Kept::durably);
  EXPECT_EQ(db.storage(), Storage::file);
  EXPECT_THAT(db.records(request_line(1), h200().id), ::testing::ElementsAre(changed, added, of_others));
  EXPECT_EQ(db.requests(h200().id).size(), 3u);
  expect_all_in(path);
  EXPECT_EQ(announced.seen.size(), 1u);
}

TEST_F(Locked, WhoeverKeepsWaitsForTheLock) {
  write_all();
  EXPECT_EQ(db.keep(impatient().busy_timeout), Kept::in_memory);
  const std::jthread letting_go([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    holder->execute("COMMIT");
  });
  EXPECT_EQ(db.keep(std::chrono::minutes(1)), Kept::durably);
  EXPECT_EQ(db.storage(), Storage::file);
  expect_all_in(path);
}

TEST_F(Locked, TheLastHandleStoresWhatWaitedInMemory) {
  write_all();
  holder.reset();
  { const Database last = std::move(db); }
  expect_all_in(path);
  EXPECT_EQ(announced.seen.size(), 1u);
}

TEST_F(Locked, TheLastHandleSaysWhatIsLost) {
  write_all();
  { const Database last = std::move(db); }
  ASSERT_EQ(announced.seen.size(), 2u);
  EXPECT_THAT(announced.seen[1].what, HasSubstr("is still locked by another process; records kept in memory"));
}

TEST_F(Locked, WhatCannotBeKeptCanBeWrittenElsewhereAndMerged) {
  write_all();
  {
    Database beside = Database::open(folder.file("beside.db"));
    EXPECT_TRUE(db.write_unkept(beside));
    EXPECT_EQ(beside.request_keys(h200().id).size(), 1u) << "and nothing else";
    { const Database last = std::move(db); }
    EXPECT_EQ(announced.seen.size(), 1u) << "nothing is lost";
  }
  expect_all_in(folder.file("beside.db"));
  holder.reset();
  Database whole = Database::open(path);
  whole.merge(Database::open(folder.file("beside.db")), {.validator = {}, .own = true});
  EXPECT_THAT(whole.records(request_line(1), h200().id), ::testing::IsSupersetOf({changed, added}));
}

TEST_F(Locked, AChildProcessLeavesItToItsParent) {
  write_all();
  const int status = in_child(
      [this] {
        const Kept kept = insert(db, timed_record(request_line(2), "TILE=32", 3e-5));
        return kept == Kept::in_memory ? 0 : 1;
      },
      false);
  EXPECT_EQ(status, 0);
  holder.reset();
  EXPECT_EQ(db.keep(std::chrono::minutes(1)), Kept::durably);
  expect_all_in(path);
}

// Lost for another reason than a lock, which a later write would find gone.
TEST(Fault, AFileThatWasLostForWritingStaysSoAfterAFork) {
  const ScratchFolder folder;
  const std::string path = folder.file("cache.db");
  make_database(path, 3);
  const int status = in_child(
      [&] {
        std::signal(SIGXFSZ, SIG_IGN);
        Announcements announced;
        Database db = Database::open(path, impatient(), announced.listener());
        rlimit limit{};
        getrlimit(RLIMIT_FSIZE, &limit);
        const rlimit full = {1000, limit.rlim_max};
        setrlimit(RLIMIT_FSIZE, &full);
        if (insert(db, timed_record(request_line(1), "TILE=32", 3e-5)) != Kept::in_memory) return 1;
        setrlimit(RLIMIT_FSIZE, &limit);
        if (in_child([] { return 0; }, false) != 0) return 2;
        if (db.storage() != Storage::file_and_memory) return 3;
        if (insert(db, timed_record(request_line(1), "TILE=64", 3e-5)) != Kept::in_memory) return 4;
        return announced.seen.size() == 1 ? 0 : 5;
      },
      false);
  EXPECT_EQ(status, 0);
}

TEST(Fault, AFullDiskLosesNothingThatWasStored) {
  const ScratchFolder folder;
  const std::string path = folder.file("cache.db");
  const int status = in_child(
      [&] {
        std::signal(SIGXFSZ, SIG_IGN);
        make_database(path, 10);
        const rlimit limit = {400'000, 400'000};  // stands for a full disk: writes beyond fail
        setrlimit(RLIMIT_FSIZE, &limit);
        Announcements announced;
        Database db = Database::open(path, {}, announced.listener());
        int stored = 0;
        for (int i = 100; i < 1500; ++i) {
          if (insert(db, timed_record(request_line(i), "TILE=16", 2e-5)) == Kept::durably) stored = i;
          if (db.records(request_line(i), h200().id).size() != 1) return 1;
        }
        if (stored == 0 || stored == 1499) return 2;
        if (announced.seen.size() != 1 || announced.seen[0].trouble == Trouble::corrupt) return 3;
        if (db.requests(h200().id).size() != 1410) return 4;
        return db.storage() == Storage::file_and_memory || db.storage() == Storage::memory ? 0 : 5;
      },
      false);
  ASSERT_EQ(status, 0);
  Announcements announced;
  Database db = Database::open(path, {}, announced.listener());
  EXPECT_THAT(announced.seen, IsEmpty());
  const auto found = db.requests(h200().id).size();
  EXPECT_GT(found, 10u);
  EXPECT_LT(found, 1410u);
  EXPECT_EQ(insert(db, timed_record(request_line(5000), "", 1e-5)), Kept::durably);
}

TEST(Fault, AFullDiskIsNamedWhereADatabaseCannotBeMade) {
  const ScratchFolder folder;
  const int status = in_child(
      [&] {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit = {8192, 8192};
        setrlimit(RLIMIT_FSIZE, &limit);
        Announcements announced;
        Database db = Database::open(folder.file("cache.db"), {}, announced.listener());
        db.put_device(h200());
        if (insert(db, timed_record(request_line(1), "TILE=16", 2e-5)) != Kept::in_memory) return 1;
        if (announced.seen.size() != 1) return 2;
        if (announced.seen[0].text().find("cannot be read or written") == std::string::npos) return 3;
        return announced.seen[0].text().find("disk") == std::string::npos ? 4 : 0;
      },
      false);
  EXPECT_EQ(status, 0);
}

// Runs as an unprivileged user: to root nothing is read-only.
int use_read_only(const std::string& path, OpenMode mode, std::size_t expected_announcements) {
  Announcements announced;
  OpenOptions options = impatient();
  options.mode = mode;
  Database db = Database::open(path, options, announced.listener());
  if (db.storage() != Storage::file_and_memory) return 1;
  if (db.records(request_line(1), h200().id).size() != 1) return 2;
  if (insert(db, timed_record(request_line(1), "TILE=64", 1e-5)) != Kept::in_memory) return 3;
  if (db.records(request_line(1), h200().id).size() != 2) return 4;
  Winners winners(h200());
  winners.load(db);
  if (winners.find(request_line(1))->config != "TILE=64") return 5;
  if (winners.find(request_line(2))->config != "TILE=16") return 6;
  if (announced.seen.size() != expected_announcements) return 7;
  if (expected_announcements == 1 && announced.seen[0].trouble != Trouble::read_only) return 8;
  return 0;
}

TEST(Fault, AReadOnlyFileIsReadAndMemoryTakesWrites) {
  const ScratchFolder folder;
  const std::string path = folder.file("cache.db");
  make_database(path, 3);
  const std::string before = read_file(path);
  std::filesystem::permissions(path, std::filesystem::perms(0444));
  EXPECT_EQ(in_child([&] { return use_read_only(path, OpenMode::read_write, 1); }, true), 0);
  EXPECT_EQ(in_child([&] { return use_read_only(path, OpenMode::read_only, 0); }, true), 0);
  EXPECT_TRUE(read_file(path) == before);
}

TEST(Fault, AReadOnlyFolderIsReadAsImmutable) {
  const ScratchFolder folder;
  const std::string path = folder.file("größe 'x'?#%.db");
  make_database(path, 3);
  std::filesystem::permissions(path, std::filesystem::perms(0666));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  EXPECT_EQ(in_child([&] { return use_read_only(path, OpenMode::read_write, 1); }, true), 0);
  EXPECT_EQ(in_child([&] { return use_read_only(path, OpenMode::read_only, 0); }, true), 0);
  EXPECT_EQ(in_child(
                [&] {
                  Announcements announced;
                  Database db = Database::open(folder.file("new.db"), impatient(), announced.listener());
                  use(db);
                  return announced.seen.size() == 1 && db.storage() == Storage::memory ? 0 : 1;
                },
                true),
            0);
}

TEST(Fault, AskingForReadingOnlyWritesNothingAndIsNotATrouble) {
  const ScratchFolder folder;
  const std::string path = folder.file("cache.db");
  make_database(path, 3);
  const std::string before = read_file(path);
  EXPECT_EQ(use_read_only(path, OpenMode::read_only, 0), 0);
  EXPECT_TRUE(read_file(path) == before);
  EXPECT_THAT(names_in(folder.path()), testing::ElementsAre("cache.db")) << "no log or shared memory stays behind";
  const Database again = Database::open(path);
  EXPECT_EQ(again.records(request_line(1), h200().id).size(), 1u);
}

TEST(Fault, AReaderThatEndsTakesNothingFromAWriterBesideIt) {
  const ScratchFolder folder;
  const std::string path = folder.file("cache.db");
  make_database(path, 3);
  {
    Database writer = Database::open(path);
    for (int i = 0; i < 5; ++i) {
      const std::string config = "TILE=" + std::to_string(100 + i);
      ASSERT_EQ(insert(writer, timed_record(request_line(1), config, 1e-3)), Kept::durably);
      OpenOptions reading;
      reading.mode = OpenMode::read_only;
      const Database reader = Database::open(path, reading);
      EXPECT_EQ(reader.records(request_line(1), h200().id).size(), static_cast<size_t>(i) + 2);
    }
    EXPECT_TRUE(std::filesystem::exists(path + "-wal")) << "the writer is still at work";
  }
  EXPECT_THAT(names_in(folder.path()), testing::ElementsAre("cache.db"));
  EXPECT_EQ(Database::open(path).records(request_line(1), h200().id).size(), 6u);
}

TEST(Fault, AReaderLeavesTheLogOfAKilledWriterAsItIs) {
  const ScratchFolder folder;
  const std::string path = folder.file("cache.db");
  make_database(path, 3);
  const auto die = [&] {
    Database writer = Database::open(path);
    insert(writer, timed_record(request_line(1), "TILE=99", 1e-3));
    std::_Exit(0);  // as kill -9: nothing is closed
    return 1;
  };
  ASSERT_EQ(in_child(die, false), 0);
  const std::string log = read_file(path + "-wal");
  ASSERT_FALSE(log.empty());
  {
    OpenOptions reading;
    reading.mode = OpenMode::read_only;
    EXPECT_EQ(Database::open(path, reading).records(request_line(1), h200().id).size(), 2u);
  }
  EXPECT_TRUE(read_file(path + "-wal") == log);
}

TEST(Fault, AFolderIsSaidToBeOne) {
  const ScratchFolder folder;
  for (const OpenMode mode : {OpenMode::read_only, OpenMode::read_write}) {
    Announcements announced;
    OpenOptions options;
    options.mode = mode;
    const Database db = Database::open(folder.file(""), options, announced.listener());
    EXPECT_EQ(db.storage(), Storage::memory);
    ASSERT_EQ(announced.seen.size(), 1u);
    EXPECT_EQ(announced.seen[0].cause, folder.file("") + " is a folder, not a database");
  }
}

TEST(Fault, AMissingFileIsAsGoodAsEmptyForReadingOnly) {
  const ScratchFolder folder;
  Announcements announced;
  OpenOptions options;
  options.mode = OpenMode::read_only;
  Database db = Database::open(folder.file("a/missing.db"), options, announced.listener());
  EXPECT_EQ(db.storage(), Storage::memory);
  EXPECT_EQ(announced.seen.size(), 0u);
  EXPECT_FALSE(std::filesystem::exists(folder.file("a")));
}

}  // namespace
}  // namespace kiln::cache::test::fault_test
