// Disks that fill up, fail or change what was stored: no exception, no wrong answer, nothing acknowledged lost.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "cache_fixtures.h"
#include "fault_vfs.h"
#include "kiln/cache/pack.h"
#include "kiln/cache/winners.h"

namespace kiln::cache::test::bad_disk_test {
namespace {

using Fault = FaultVfs::Fault;

OpenOptions with_journal(Journal journal) {
  OpenOptions options;
  options.journal = journal;
  options.busy_timeout = std::chrono::milliseconds(20);
  return options;
}

Record numbered(int i) {
  return timed_record(request_line(i % 5), fmt::format("TILE={}", i), 1e-5 + i * 1e-9);
}

void make_database(const std::string& path, Journal journal, int records) {
  Database db = with_devices(Database::open(path, with_journal(journal)));
  for (int i = 0; i < records; ++i) {
    const Record r = numbered(i);
    db.insert(std::span(&r, 1));
  }
}

class BadDisk : public ::testing::TestWithParam<std::tuple<Journal, Fault>> {
 protected:
  const ScratchFolder folder_{ScratchFolder::Where::memory};
};

constexpr int before = 6, inserted = 4;

// One process's life with the database on a disk with a fault; the numbers that were acknowledged as durable.
std::vector<int> use(const std::string& path, Journal journal, const FaultVfs::Plan& plan, bool& done) {
  std::vector<int> durable;
  Announcements announced;
  const FaultVfs vfs(plan);
  {
    Database db = Database::open(path, with_journal(journal), announced.listener());
    db.put_device(h200());
    for (int i = before; i < before + inserted; ++i) {
      const Record r = numbered(i);
      const bool kept_in_file = db.insert(std::span(&r, 1)) == Kept::durably;
      if (kept_in_file) durable.push_back(i);
      bool found = false;
      for (const Record& read : db.records(r.request, r.device)) {
        EXPECT_LT(std::stoi(read.config.substr(5)), before + inserted);
        found = found || read == r;
      }
      const bool file_is_lost = kept_in_file && db.storage() == Storage::memory;
      EXPECT_TRUE(found || file_is_lost) << "what this process stored it can read, on disk or in memory";
    }
    Winners winners(h200());
    winners.load(db);
    EXPECT_TRUE(winners.find(numbered(before).request) || db.storage() == Storage::memory);
  }
  EXPECT_LE(announced.seen.size(), 1u) << "once";
  EXPECT_TRUE(durable.size() == inserted || !announced.seen.empty()) << "and not silently";
  done = std::max({vfs.changes(), vfs.reads(), vfs.locks()}) <= plan.at;
  return durable;
}

TEST_P(BadDisk, NeverLosesWhatWasAcknowledgedAndNeverStopsTheApplication) {
  const auto [journal, fault] = GetParam();
  bool done = false;
  int at = 0;
  for (; !done; ++at) {
    const std::string path = folder_.file(fmt::format("{}.db", at));
    make_database(path, journal, before);
    const std::vector<int> durable = use(path, journal, {fault, at, 0}, done);
    Announcements announced;
    const Database db = Database::open(path, with_journal(journal), announced.listener());
    EXPECT_TRUE(announced.seen.empty()) << announced.seen[0].text();
    std::map<std::string, Record> stored;
    for (const Record& r : export_pack(db).records) stored.emplace(r.config, r);
    std::vector<int> expected(before);
    for (int i = 0; i < before; ++i) expected[static_cast<std::size_t>(i)] = i;
    expected.insert(expected.end(), durable.begin(), durable.end());
    for (const int i : expected) {
      Record r = numbered(i);
      r.session.clear();
      EXPECT_TRUE(stored.contains(r.config) && stored.at(r.config) == r) << "record " << i;
    }
    ASSERT_FALSE(HasFailure()) << "fault at operation " << at;
  }
  EXPECT_GT(at, 10);
}

std::string name_of(const ::testing::TestParamInfo<BadDisk::ParamType>& suite) {
  const Fault fault = std::get<Fault>(suite.param);
  const char* name = fault == Fault::full         ? "Full"
                     : fault == Fault::error      ? "Failing"
                     : fault == Fault::one_error  ? "FailingOnce"
                     : fault == Fault::unreadable ? "Unreadable"
                     : fault == Fault::no_locks   ? "WithoutLocks"
                                                  : "WithoutOneLock";
  const bool wal = std::get<Journal>(suite.param) == Journal::wal;
  return std::string(name) + (wal ? "WriteAheadLog" : "RollbackJournal");
}

INSTANTIATE_TEST_SUITE_P(Faults, BadDisk,
                         ::testing::Combine(::testing::Values(Journal::wal, Journal::rollback),
                                            ::testing::Values(Fault::full, Fault::error, Fault::one_error,
                                                              Fault::unreadable, Fault::no_locks, Fault::one_lock)),
                         name_of);

// An empty file would be said to be of an older Kiln ever after.
class FullDisk : public ::testing::TestWithParam<Journal> {
 protected:
  const ScratchFolder folder_{ScratchFolder::Where::memory};
};

TEST_P(FullDisk, KeepsNothingOfADatabaseThatCouldNotBeMade) {
  const Journal journal = GetParam();
  bool done = false;
  for (int at = 0; !done; ++at) {
    const std::string path = folder_.file(fmt::format("new-{}.db", at));
    Announcements announced;
    Storage storage = Storage::memory;
    {
      const FaultVfs vfs({Fault::full, at, 0});
      const Database db = Database::open(path, with_journal(journal), announced.listener());
      storage = db.storage();
      done = vfs.changes() <= at;
    }
    const bool is_left = std::filesystem::exists(path);
    EXPECT_TRUE(!is_left || std::filesystem::file_size(path) > 0) << "fault at operation " << at;
    EXPECT_TRUE(is_left || storage == Storage::memory) << "fault at operation " << at;
    if (!is_left) {
      EXPECT_FALSE(std::filesystem::exists(path + "-wal") || std::filesystem::exists(path + "-shm")) << at;
      EXPECT_EQ(announced.seen.size(), 1u);
    }
    Announcements later;
    (void)Database::open(path, with_journal(journal), later.listener());
    EXPECT_TRUE(later.seen.empty()) << "with room again: " << later.seen[0].text();
  }
}

// A file that was there before is its owner's, whatever becomes of it.
TEST_P(FullDisk, KeepsAFileThatWasThereBefore) {
  const std::string path = folder_.file("empty.db");
  std::ofstream(path).close();
  const FaultVfs vfs({Fault::full, 0, 0});
  Announcements announced;
  (void)Database::open(path, with_journal(GetParam()), announced.listener());
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(announced.seen.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Journals, FullDisk, ::testing::Values(Journal::wal, Journal::rollback));

// A file with `damage` done to it never gives a record or a choice that was not stored.
void expect_no_wrong_answer(const std::string& path, const std::map<std::string, Record>& truth) {
  Announcements announced;
  Database db = Database::open(path, with_journal(Journal::automatic), announced.listener());
  for (int request = 0; request < 5; ++request) {
    for (const Record& r : db.records(request_line(request), h200().id)) {
      ASSERT_TRUE(truth.contains(r.config)) << r.config;
      ASSERT_EQ(r, truth.at(r.config));
    }
  }
  Winners winners(h200());
  winners.load(db);
  for (int request = 0; request < 5; ++request) {
    for (const Choice& c : winners.all(request_line(request))) {
      const auto original = truth.find(std::string(c.config));
      ASSERT_NE(original, truth.end()) << c.config;
      ASSERT_EQ(c.seconds, original->second.seconds);
      ASSERT_EQ(c.algorithm, original->second.algorithm);
      ASSERT_EQ(c.workspace_bytes, original->second.workspace_bytes);
      ASSERT_EQ(original->second.request, request_line(request));
    }
  }
  db.requests(h200().id);
  db.sessions();
  db.quarantine();
  const Record fresh = numbered(100);
  db.put_device(h200());
  db.insert(std::span(&fresh, 1));
  ASSERT_LE(announced.of_rows(), 1u);
  ASSERT_LE(announced.seen.size() - announced.of_rows(), 1u);
}

class Damage : public ::testing::TestWithParam<Journal> {
 protected:
  void SetUp() override {
    make_database(folder_.file("whole.db"), GetParam(), 40);
    for (int i = 0; i < 40; ++i) truth_.emplace(numbered(i).config, numbered(i));
    whole_ = read_file(folder_.file("whole.db"));
  }

  const ScratchFolder folder_{ScratchFolder::Where::memory};
  std::map<std::string, Record> truth_;
  std::string whole_;
};

TEST_P(Damage, OfRandomBytesInAThousandFilesGivesNoWrongAnswer) {
  std::mt19937_64 random(29);
  for (int file = 0; file < 500; ++file) {  // in each journal mode
    std::string damaged = whole_;
    for (auto flips = 1 + random() % 8; flips > 0; --flips) {
      damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    }
    const std::string path = folder_.file("damaged.db");
    for (const char* beside : {"", "-wal", "-shm", "-journal"}) std::filesystem::remove(path + beside);
    write_file(path, damaged);
    expect_no_wrong_answer(path, truth_);
    ASSERT_FALSE(HasFatalFailure()) << "file " << file;
  }
}

TEST_P(Damage, ByCuttingTheFileOffAnywhereGivesNoWrongAnswer) {
  std::mt19937_64 random(31);
  for (int file = 0; file < 100; ++file) {
    const std::string path = folder_.file("cut.db");
    for (const char* beside : {"", "-wal", "-shm", "-journal"}) std::filesystem::remove(path + beside);
    write_file(path, whole_.substr(0, random() % whole_.size()));
    expect_no_wrong_answer(path, truth_);
    ASSERT_FALSE(HasFatalFailure()) << "file " << file;
  }
}

// The log of a process that died, damaged: SQLite's own checksums end it where the damage is.
TEST_P(Damage, OfTheJournalBesideItGivesNoWrongAnswer) {
  const std::string path = folder_.file("dying.db");
  const int status = in_child(
      [&]() -> int {
        make_database(path, GetParam(), 20);
        Database db = Database::open(path, with_journal(GetParam()));
        for (int i = 20; i < 40; ++i) {
          const Record r = numbered(i);
          db.insert(std::span(&r, 1));
        }
        _exit(0);  // without closing: the log stays
      },
      false);
  ASSERT_EQ(status, 0);
  const std::string file = read_file(path), log = read_file(path + "-wal");
  std::mt19937_64 random(37);
  for (int round = 0; round < 100; ++round) {
    std::string damaged = log;
    if (!damaged.empty()) damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    std::filesystem::remove(path + "-shm");
    write_file(path, file);
    write_file(path + "-wal", damaged);
    expect_no_wrong_answer(path, truth_);
    ASSERT_FALSE(HasFatalFailure()) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Journals, Damage, ::testing::Values(Journal::wal, Journal::rollback));

}  // namespace
}  // namespace kiln::cache::test::bad_disk_test
