// A database file that stays open for look-ups: whom it is in the way of, and what happens to it meanwhile.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache_fixtures.h"
#include "kiln/cache/winners.h"
#include "sqlite.h"

namespace kiln::cache::test::open_database_test {
namespace {

using ::testing::SizeIs;

Record numbered(int i) {
  return timed_record(request_line(i), fmt::format("TILE={}", i), 1e-5);
}

Kept insert(Database& db, const Record& record) {
  return db.insert(std::span(&record, 1));
}

OpenOptions with(OpenMode mode, Journal journal = Journal::wal) {
  OpenOptions options;
  options.mode = mode;
  options.journal = journal;
  options.busy_timeout = std::chrono::milliseconds(200);
  return options;
}

// Requests 0 to 2, each TILE=<its number>.
void make_database(const std::string& path, Journal journal = Journal::wal) {
  Database db = with_devices(Database::open(path, with(OpenMode::read_write, journal)));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(insert(db, numbered(i)), Kept::durably);
}

std::string chosen(const Winners& winners, int request) {
  const auto choice = winners.find(request_line(request));
  return choice ? std::string(choice->config) : "none";
}

// An application's: read-only, and only the index keeps it open.
struct Reader {
  Announcements announced;
  Winners winners{h200()};

  explicit Reader(const std::string& path, Journal journal = Journal::wal) {
    winners.load(Database::open(path, with(OpenMode::read_only, journal), announced.listener()));
  }
};

class OpenDatabase : public ::testing::Test {
 protected:
  const ScratchFolder folder_;
  const std::string path_ = folder_.file("cache.db");
};

TEST_F(OpenDatabase, IsInNobodysWayBetweenLookUps) {
  for (const Journal journal : {Journal::wal, Journal::rollback}) {
    make_database(path_, journal);
    const Reader reader(path_, journal);
    EXPECT_EQ(chosen(reader.winners, 1), "TILE=1");
    const int status = in_child(
        [&] {
          Connection other = Connection::open(path_, SQLITE_OPEN_READWRITE, std::chrono::milliseconds(0));
          other.execute("BEGIN IMMEDIATE; UPDATE records SET spread = 0; ROLLBACK");
          other.execute("VACUUM");
          if (journal == Journal::rollback) other.execute("BEGIN EXCLUSIVE; ROLLBACK");
          return journal == Journal::wal && other.integer_of("PRAGMA wal_checkpoint(TRUNCATE)") != 0 ? 1 : 0;
        },
        false);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(chosen(reader.winners, 2), "TILE=2");
    EXPECT_THAT(reader.announced.seen, SizeIs(0));
    std::filesystem::remove(path_);
  }
}

TEST_F(OpenDatabase, ThatIsDeletedIsReadOn) {
  make_database(path_);
  const Reader reader(path_);
  EXPECT_EQ(chosen(reader.winners, 0), "TILE=0");
  for (const char* beside : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + beside);
  EXPECT_EQ(chosen(reader.winners, 1), "TILE=1");
  EXPECT_THAT(reader.announced.seen, SizeIs(0));
}

TEST_F(OpenDatabase, ThatAnotherTakesThePlaceOfIsReadOnAndTheOtherLeftAlone) {
  make_database(path_);
  {
    Database other = with_devices(Database::open(folder_.file("other.db"), with(OpenMode::read_write)));
    insert(other, timed_record(request_line(1), "OTHER=1", 1e-5));
  }
  {
    const Reader reader(path_);
    EXPECT_EQ(chosen(reader.winners, 0), "TILE=0");
    std::filesystem::rename(folder_.file("other.db"), path_);
    EXPECT_EQ(chosen(reader.winners, 1), "TILE=1");
    EXPECT_THAT(reader.announced.seen, SizeIs(0));
  }
  const Reader afterwards(path_);
  EXPECT_EQ(chosen(afterwards.winners, 1), "OTHER=1");
  EXPECT_THAT(afterwards.announced.seen, SizeIs(0));
}

TEST_F(OpenDatabase, ThatIsOverwrittenIsAnnouncedOnceAndGivesNoWrongAnswer) {
  make_database(path_, Journal::rollback);
  const Reader reader(path_, Journal::rollback);
  EXPECT_EQ(chosen(reader.winners, 0), "TILE=0");
  write_file(path_, std::string(std::filesystem::file_size(path_), 'x'));
  EXPECT_EQ(chosen(reader.winners, 1), "none");
  EXPECT_EQ(chosen(reader.winners, 2), "none");
  EXPECT_THAT(reader.announced.seen, SizeIs(1));
  EXPECT_EQ(chosen(reader.winners, 0), "TILE=0") << "what was read stays";
}

TEST_F(OpenDatabase, WhoseTroubleIsAnnouncedMayBeAskedByWhoIsTold) {
  make_database(path_, Journal::rollback);
  Winners winners(h200());
  int told = 0;
  winners.load(Database::open(path_, with(OpenMode::read_only, Journal::rollback), [&](const Announcement&) {
    ++told;
    chosen(winners, 2);
    winners.is_quarantined("x");
  }));
  EXPECT_EQ(chosen(winners, 0), "TILE=0");
  write_file(path_, std::string(std::filesystem::file_size(path_), 'x'));
  EXPECT_EQ(chosen(winners, 1), "none");
  EXPECT_EQ(told, 1);
}

TEST_F(OpenDatabase, IsReadAndWrittenByBothProcessesAfterAFork) {
  for (const Journal journal : {Journal::wal, Journal::rollback}) {
    make_database(path_, journal);
    Database db = Database::open(path_, with(OpenMode::read_write, journal));
    Winners winners(h200());
    winners.load(db);
    EXPECT_EQ(chosen(winners, 0), "TILE=0");
    const int status = in_child(
        [&] {
          if (chosen(winners, 0) != "TILE=0" || chosen(winners, 1) != "TILE=1") return 1;
          if (insert(db, numbered(7)) != Kept::durably) return 2;
          return db.storage() == Storage::file ? 0 : 3;
        },
        false);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(chosen(winners, 7), "TILE=7");
    EXPECT_EQ(insert(db, numbered(8)), Kept::durably);
    EXPECT_EQ(db.storage(), Storage::file);
    winners.refresh(db, request_line(8));
    EXPECT_EQ(chosen(winners, 8), "TILE=8");
    std::filesystem::remove(path_);
  }
}

// A third process that opens, stores and closes, as `kiln tune` does.
void tune(const std::string& path, int request) {
  EXPECT_EQ(in_child(
                [&] {
                  Database db = Database::open(path, with(OpenMode::read_write));
                  return insert(db, numbered(request)) == Kept::durably ? 0 : 1;
                },
                false),
            0);
}

// Who closes last removes the log. To see that somebody is left, it needs that one's locks.
TEST_F(OpenDatabase, OfAForkedProcessHasLocksOfItsOwn) {
  make_database(path_);
  int to_child[2], to_parent[2];
  ASSERT_EQ(pipe(to_child), 0);
  ASSERT_EQ(pipe(to_parent), 0);
  auto before = std::make_unique<Database>(Database::open(path_, with(OpenMode::read_write)));
  char word = 'x';
  const pid_t child = fork();
  if (child == 0) {
    Database db = Database::open(path_, with(OpenMode::read_write));
    const bool told = insert(db, numbered(10)) == Kept::durably && write(to_parent[1], &word, 1) == 1;
    const bool heard = read(to_child[0], &word, 1) == 1;
    _exit(told && heard && insert(db, numbered(11)) == Kept::durably ? 0 : 1);
  }
  ASSERT_EQ(read(to_parent[0], &word, 1), 1);
  before.reset();
  tune(path_, 12);
  ASSERT_EQ(write(to_child[1], &word, 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  for (const int end : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) close(end);
  const Reader afterwards(path_);
  for (const int request : {10, 11, 12})
    EXPECT_EQ(chosen(afterwards.winners, request), fmt::format("TILE={}", request));
}

// POSIX takes all locks of a process off a file when it closes any handle of it.
TEST_F(OpenDatabase, KeepsItsLocksWhenTheProcessOpensAndClosesItOnceMore) {
  make_database(path_);
  int to_child[2];
  ASSERT_EQ(pipe(to_child), 0);
  char word = 'x';
  const pid_t child = fork();  // now, since a fork closes what is open
  if (child == 0) {
    const bool heard = read(to_child[0], &word, 1) == 1;
    Database db = Database::open(path_, with(OpenMode::read_write));
    const bool stored = heard && insert(db, numbered(12)) == Kept::durably;
    db = Database::in_memory();  // closes it
    _exit(stored ? 0 : 1);
  }
  Database db = Database::open(path_, with(OpenMode::read_write));
  ASSERT_EQ(insert(db, numbered(10)), Kept::durably);
  { const Reader once_more(path_); }
  ASSERT_EQ(write(to_child[1], &word, 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  for (const int end : to_child) close(end);
  EXPECT_TRUE(std::filesystem::exists(path_ + "-wal")) << "it is still in use";
  ASSERT_EQ(insert(db, numbered(11)), Kept::durably);
  const Database afterwards = Database::open(path_, with(OpenMode::read_write));
  for (const int request : {10, 11, 12}) EXPECT_THAT(afterwards.records(request_line(request), h200().id), SizeIs(1));
}

}  // namespace
}  // namespace kiln::cache::test::open_database_test
