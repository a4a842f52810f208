// Several processes on one file, and processes that die.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <set>

#include "cache_fixtures.h"
#include "kiln/cache/winners.h"
#include "sqlite.h"

namespace kiln::cache::test::process_test {
namespace {

// Inserts for ever; writes the number of each record to `acknowledge` once insert() has returned.
[[noreturn]] void insert_until_killed(const std::string& path, const OpenOptions& options, int first, int acknowledge) {
  Database db = with_devices(Database::open(path, options));
  for (int i = first;; ++i) {
    const Record r = timed_record(request_line(i % 50), fmt::format("TILE={}", i), 1e-5 + i * 1e-9);
    const bool durable = db.insert(std::span(&r, 1)) == Kept::durably;
    if (!durable || write(acknowledge, &i, sizeof(i)) != sizeof(i)) _exit(1);
  }
}

// Runs such a child, kills it `microseconds` after it has acknowledged `wait_for` records, and returns the last number
// that it acknowledged, or first - 1.
int run_and_kill(const std::string& path, const OpenOptions& options, int first, int wait_for, unsigned microseconds) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    insert_until_killed(path, options, first, ends[1]);
  }
  close(ends[1]);
  int last = first - 1;
  const auto next = [&] {
    int number = 0;
    if (read(ends[0], &number, sizeof(number)) != sizeof(number)) return false;
    EXPECT_EQ(number, last + 1);
    last = number;
    return true;
  };
  while (wait_for-- > 0 && next()) {
  }
  usleep(microseconds);
  kill(child, SIGKILL);
  while (next()) {
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself, status " << status;
  close(ends[0]);
  return last;
}

void expect_nothing_lost(const std::string& path, const OpenOptions& options, int acknowledged) {
  Announcements announced;
  const Database db = Database::open(path, options, announced.listener());
  EXPECT_TRUE(announced.seen.empty()) << announced.seen[0].text();
  std::set<std::string> stored;
  for (int request = 0; request < 50; ++request) {
    for (const Record& r : db.records(request_line(request), h200().id)) stored.insert(r.config);
  }
  for (int i = 0; i <= acknowledged; ++i) EXPECT_TRUE(stored.contains(fmt::format("TILE={}", i))) << i;
  EXPECT_LE(stored.size(), static_cast<std::size_t>(acknowledged) + 2)
      << "one may have been stored but not acknowledged";
  Winners winners(h200());
  winners.load(db);
  if (acknowledged >= 0) {
    EXPECT_EQ(winners.find(request_line(0))->seconds, 1e-5) << "the index follows the records";
  }
}

class KilledWriter : public ::testing::TestWithParam<Journal> {};

TEST_P(KilledWriter, LosesNothingThatWasAcknowledged) {
  const ScratchFolder folder;
  const std::string path = folder.file("cache.db");
  OpenOptions options;
  options.journal = GetParam();
  Database::open(path, options);
  std::mt19937_64 random(17);
  int acknowledged = -1;
  for (int round = 0; round < 15; ++round) {
    const int last = run_and_kill(path, options, acknowledged + 1, 1 + static_cast<int>(random() % 5),
                                  static_cast<unsigned>(random() % 8'000));
    expect_nothing_lost(path, options, last);
    // The record that was stored but not acknowledged is inserted again by the next child.
    acknowledged = last;
  }
  EXPECT_GE(acknowledged, 15);
}

INSTANTIATE_TEST_SUITE_P(Journals, KilledWriter, ::testing::Values(Journal::wal, Journal::rollback));

TEST(KilledWriterOnANewFile, LeavesAFileThatOpens) {
  std::mt19937_64 random(19);
  for (int round = 0; round < 15; ++round) {
    const ScratchFolder folder;
    const std::string path = folder.file("new/cache.db");
    const OpenOptions options;
    const int last = run_and_kill(path, options, 0, 0, static_cast<unsigned>(random() % 15'000));
    expect_nothing_lost(path, options, last);
  }
}

class ManyWriters : public ::testing::TestWithParam<Journal> {};

TEST_P(ManyWriters, WaitForEachOtherAndAllSucceed) {
  OpenOptions options;
  options.journal = GetParam();
  const ScratchFolder folder;
  const std::string path = folder.file("cache.db");
  constexpr int each = 100;
  std::vector<pid_t> children;
  for (int c = 0; c < 3; ++c) {
    const pid_t child = fork();
    if (child == 0) {
      Announcements announced;
      Database db = with_devices(Database::open(path, options, announced.listener()));  // all create the file at once
      int failed = 0;
      for (int i = 0; i < each; ++i) {
        const Record r = timed_record(request_line(i), fmt::format("WRITER={}", c), 1e-5);
        if (db.insert(std::span(&r, 1)) != Kept::durably) failed = 1;
      }
      if (!announced.seen.empty()) fmt::print(stderr, "{}\n", announced.seen[0].text());
      _exit(failed + (announced.seen.empty() ? 0 : 2));
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const Database db = Database::open(path);
  for (int i = 0; i < each; ++i) EXPECT_EQ(db.records(request_line(i), h200().id).size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(Journals, ManyWriters, ::testing::Values(Journal::wal, Journal::rollback));

TEST(Reader, SeesWhatAnotherProcessStoredAfterItOpened) {
  const ScratchFolder folder;
  const std::string path = folder.file("cache.db");
  const Database reader = with_devices(Database::open(path));
  Winners winners(h200());
  winners.load(reader);
  EXPECT_EQ(winners.find(request_line(1)).has_value(), false);
  const int status = in_child(
      [&] {
        Database writer = Database::open(path);
        const Record r = timed_record(request_line(1), "TILE=32", 1e-5);
        return writer.insert(std::span(&r, 1)) == Kept::durably ? 0 : 1;
      },
      false);
  EXPECT_EQ(status, 0);
  winners.refresh(reader, request_line(1));
  EXPECT_TRUE(winners.find(request_line(1)).has_value());
}

}  // namespace
}  // namespace kiln::cache::test::process_test
