// A writer that dies, at every operation on its files and, 1,000 times over the four cases, at any moment between.
// After each death everything that was acknowledged is there and nothing that was never stored.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <map>
#include <random>

#include "cache_fixtures.h"
#include "fault_vfs.h"
#include "kiln/cache/winners.h"

namespace kiln::cache::test::crash_test {
namespace {

using Fault = FaultVfs::Fault;

constexpr int records_per_life = 3;

Record numbered(int i) {
  return timed_record(request_line(i % 7), fmt::format("TILE={}", i), 1e-5 + i * 1e-9);
}

struct Life {
  int acknowledged = 0;  ///< Records.
  bool died = false;
};

// A child that opens the database, inserts records from number `first` on and acknowledges each; with faults by `plan`.
Life live(const std::string& path, Journal journal, int first, const FaultVfs::Plan& plan, unsigned kill_after_us = 0) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const FaultVfs vfs(plan);
    OpenOptions options;
    options.journal = journal;
    Database db = Database::open(path, options);
    db.put_device(h200());
    const int last = kill_after_us == 0 ? first + records_per_life : 1'000'000;
    for (int i = first; i < last; ++i) {
      const Record r = numbered(i);
      if (db.insert(std::span(&r, 1)) != Kept::durably || write(ends[1], "k", 1) != 1) _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  if (kill_after_us > 0) {
    usleep(kill_after_us);
    kill(child, SIGKILL);
  }
  Life life;
  for (char k = 0; read(ends[0], &k, 1) == 1;) ++life.acknowledged;
  int status = 0;
  waitpid(child, &status, 0);
  close(ends[0]);
  life.died = WIFSIGNALED(status);
  EXPECT_TRUE(life.died || WEXITSTATUS(status) == 0) << "a record was not stored durably";
  return life;
}

// Everything acknowledged is there, unchanged; at most one record more, whose acknowledgement came too late. Returns
// how many there are.
int expect_whole(const std::string& path, Journal journal, int acknowledged) {
  Announcements announced;
  OpenOptions options;
  options.journal = journal;
  const Database db = Database::open(path, options, announced.listener());
  EXPECT_TRUE(announced.seen.empty()) << announced.seen[0].text();
  std::map<std::string, Record> stored;
  for (int request = 0; request < 7; ++request) {
    for (const Record& r : db.records(request_line(request), h200().id)) stored.emplace(r.config, r);
  }
  for (int i = 0; i < acknowledged; ++i) {
    const auto found = stored.find(numbered(i).config);
    EXPECT_TRUE(found != stored.end() && found->second == numbered(i)) << "record " << i << " of " << acknowledged;
  }
  EXPECT_LE(stored.size(), static_cast<std::size_t>(acknowledged) + 1);
  Winners winners(h200());
  winners.load(db);
  if (acknowledged > 0) {
    const auto first = winners.find(request_line(0));
    EXPECT_TRUE(first && first->seconds == numbered(0).seconds) << "the index follows the records";
  }
  EXPECT_TRUE(announced.seen.empty()) << announced.seen[0].text();
  return static_cast<int>(stored.size());
}

struct Case {
  Journal journal;
  bool new_file = false;
};

class Death : public ::testing::TestWithParam<Case> {
 protected:
  // A fresh copy of a database that holds `records` records, or no file at all.
  std::string database(int records) const {
    std::filesystem::remove_all(folder_.file("life"));
    std::filesystem::create_directory(folder_.file("life"));
    const std::string path = folder_.file("life/cache.db");
    if (GetParam().new_file) return path;
    OpenOptions options;
    options.journal = GetParam().journal;
    Database db = Database::open(path, options);
    db.put_device(h200());
    for (int i = 0; i < records; ++i) {
      const Record r = numbered(i);
      db.insert(std::span(&r, 1));
    }
    return path;
  }

  int die_at_every_operation(Fault fault) const {
    int deaths = 0;
    while (true) {
      const int before = GetParam().new_file ? 0 : 4;
      const std::string path = database(before);
      const Life life = live(path, GetParam().journal, before, {fault, deaths, static_cast<std::uint64_t>(deaths)});
      expect_whole(path, GetParam().journal, before + life.acknowledged);
      if (HasFailure()) ADD_FAILURE() << "at operation " << deaths;
      if (!life.died || HasFailure()) return deaths;
      ++deaths;
    }
  }

  const ScratchFolder folder_{ScratchFolder::Where::memory};
};

TEST_P(Death, InTheMiddleOfAnyOperationLosesNothing) {
  EXPECT_GT(die_at_every_operation(Fault::killed), 20);
}

TEST_P(Death, ByAPowerCutBeforeAnyOperationLosesNothing) {
  EXPECT_GT(die_at_every_operation(Fault::power_cut), 20);
}

TEST_P(Death, AtAnyMomentLosesNothing) {
  constexpr int deaths = 250, deaths_per_file = 10;  // every file is read whole after each death
  std::mt19937_64 random(23);
  std::string path;
  int stored = GetParam().new_file ? 0 : 4, acknowledged = 0;
  const auto start = std::chrono::steady_clock::now();
  live(database(stored), GetParam().journal, stored, {});
  const std::chrono::duration<double, std::micro> whole_life = std::chrono::steady_clock::now() - start;
  // Sanitized code takes longer to live, and would die before it writes.
  const auto window =
      std::max<std::uint64_t>(GetParam().new_file ? 5'000 : 2'500, static_cast<std::uint64_t>(2 * whole_life.count()));
  for (int death = 0; death < deaths; ++death) {
    if (GetParam().new_file || death % deaths_per_file == 0) {
      stored = GetParam().new_file ? 0 : 4;
      path = database(stored);
    }
    const unsigned moment = 1 + static_cast<unsigned>(random() % window);
    const Life life = live(path, GetParam().journal, stored, {}, moment);
    acknowledged += life.acknowledged;
    stored = expect_whole(path, GetParam().journal, stored + life.acknowledged);
    ASSERT_FALSE(HasFailure()) << "death " << death;
  }
  EXPECT_GT(acknowledged, deaths) << "few died while they wrote";
}

INSTANTIATE_TEST_SUITE_P(Journals, Death,
                         ::testing::Values(Case{.journal = Journal::wal}, Case{.journal = Journal::rollback},
                                           Case{.journal = Journal::wal, .new_file = true},
                                           Case{.journal = Journal::rollback, .new_file = true}),
                         [](const auto& suite) {
                           return std::string(suite.param.journal == Journal::wal ? "WriteAheadLog"
                                                                                  : "RollbackJournal") +
                                  (suite.param.new_file ? "OnANewFile" : "");
                         });

}  // namespace
}  // namespace kiln::cache::test::crash_test
