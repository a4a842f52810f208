// Several processes on one store, and processes that die.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "store_folder.h"

namespace kiln::store::process_test {
namespace {

using namespace std::chrono_literals;

// Runs `work` in a process of its own, which ends with exit code 0 unless it throws.
template <class Work>
pid_t start(const Work& work) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    work();
  } catch (...) {
    _exit(1);
  }
  _exit(0);
}

int exit_status(pid_t process) {
  int status = 0;
  waitpid(process, &status, 0);
  return status;
}

std::string content_of(int i) {
  return fmt::format("content {} {}", i, std::string(static_cast<size_t>(100 + 531 * i % 4000), 'c'));
}

// One line for each entry made, by whichever process: an append of a few bytes is one write.
void note(int file, int i) {
  const std::string line = fmt::format("{}\n", i);
  if (write(file, line.data(), line.size()) < 0) _exit(1);
}

std::map<int, int> times_made(const std::string& path) {
  std::map<int, int> counts;
  std::istringstream lines(read_file(path));
  for (int i = 0; lines >> i;) ++counts[i];
  return counts;
}

StoreOptions in(const std::string& folder, uint64_t limit = default_limit) {
  StoreOptions options;
  options.folder = folder;
  options.limit_bytes = limit;
  return options;
}

// Obtains entries in random order for ever or `rounds` times; ends the process with 1 if one is not what it should be.
void use(const StoreOptions& options, int keys, int rounds, unsigned seed, int made) {
  FileStore store(options);
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    const int i = static_cast<int>(random() % static_cast<unsigned>(keys));
    std::string bytes;
    store.obtain(
        key_of(std::to_string(i)),
        [&](std::string_view stored) {
          bytes = stored;
          return true;
        },
        [&] {
          if (made >= 0) note(made, i);
          std::this_thread::sleep_for(2ms);  // as a compile: others come while it is at work
          return bytes = content_of(i);
        });
    if (bytes != content_of(i)) _exit(1);
  }
}

TEST(EightProcesses, MakeEachEntryOnce) {
  constexpr int processes = 8, keys = 40;
  const ScratchFolder scratch;
  const int made = open(scratch.path("made").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  std::vector<pid_t> children;
  for (unsigned p = 0; p < processes; ++p) {
    children.push_back(start([&] { use(in(scratch.path()), keys, 400, p, made); }));
  }
  for (const pid_t child : children) EXPECT_EQ(exit_status(child), 0);
  close(made);
  const std::map<int, int> counts = times_made(scratch.path("made"));
  EXPECT_EQ(counts.size(), static_cast<size_t>(keys));
  for (const auto& [i, count] : counts) EXPECT_EQ(count, 1) << "entry " << i;
  EXPECT_THAT(leftovers(scratch.path()), testing::IsEmpty());
}

// Readers, makers and evictors all at once: nobody ever sees a part of an entry, and the limit holds in the end.
TEST(EightProcesses, ReadWhileOthersEvict) {
  constexpr uint64_t limit = 20'000;  // of about 40 entries of 2,000 bytes each
  const ScratchFolder scratch;
  std::vector<pid_t> children;
  for (unsigned p = 0; p < 8; ++p) {
    children.push_back(start([&] { use(in(scratch.path(), limit), 40, 100, p, -1); }));
  }
  for (const pid_t child : children) EXPECT_EQ(exit_status(child), 0);
  EXPECT_LE(bytes_in(scratch.path()), limit);
  EXPECT_FALSE(entries(scratch.path()).empty());
}

TEST(KilledProcess, LeavesItsEntryToWhoeverWaits) {
  const ScratchFolder scratch;
  const pid_t holder = start([&] {
    FileStore store(in(scratch.path()));
    store.obtain(
        key_of("a"), [](std::string_view) { return true; },
        [&]() -> std::string {
          write_file(scratch.path("at-work"), "x");
          std::this_thread::sleep_for(60s);
          return "never";
        });
  });
  while (!std::filesystem::exists(scratch.path("at-work"))) std::this_thread::sleep_for(1ms);
  const auto start_time = std::chrono::steady_clock::now();
  std::jthread killer([&] {
    std::this_thread::sleep_for(50ms);
    kill(holder, SIGKILL);
  });
  FileStore store(in(scratch.path()));
  EXPECT_EQ(obtain(store, key_of("a"), "made by the one that waited"), "made by the one that waited");
  const auto waited = std::chrono::steady_clock::now() - start_time;
  EXPECT_GE(waited, 50ms);
  EXPECT_LT(waited, 30s);
  EXPECT_TRUE(WIFSIGNALED(exit_status(holder)));
}

// kill -9 at random points of looking up, making, writing and evicting: what is there is whole, and the next one can
// use the store.
TEST(KilledProcess, NeverDamagesTheStore) {
  const ScratchFolder scratch;
  const StoreOptions options = in(scratch.path(), 40'000);
  const int made = open(scratch.path("made").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  std::mt19937 random(23);
  for (unsigned round = 0; round < 40; ++round) {
    const auto before = std::filesystem::file_size(scratch.path("made"));
    const pid_t child = start([&] { use(options, 40, 1'000'000, round, made); });
    while (std::filesystem::file_size(scratch.path("made")) < before + 10) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 8'000));
    kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(exit_status(child))) << "it ended by itself: an entry was wrong";
  }
  close(made);
  FileStore store(in(scratch.path()));  // without the limit: looking at an entry evicts none
  for (int i = 0; i < 40; ++i) EXPECT_EQ(obtain(store, key_of(std::to_string(i)), content_of(i)), content_of(i));
  EXPECT_EQ(store.counts().damaged, 0U);
  EXPECT_GT(store.counts().found, 0U);
}

// Ends the process with 1 unless a store of "a" gives that, makes "b" itself, and says once why it keeps nothing.
void use_without_writing(const std::string& folder, const std::string& expected_of_a) {
  std::vector<std::string> announced;
  FileStore store(in(folder), [&](std::string_view message) { announced.emplace_back(message); });
  const bool right = obtain(store, key_of("a"), content_of(1)) == expected_of_a &&
                     obtain(store, key_of("b"), content_of(2)) == content_of(2) &&
                     obtain(store, key_of("b"), content_of(3)) == content_of(3) && announced.size() == 1 &&
                     announced[0].find("cannot be written") != std::string::npos;
  if (!right) _exit(1);
}

TEST(AStoreThatMayOnlyBeRead, IsUsedAndFailsNothing) {
  const ScratchFolder scratch;
  std::filesystem::permissions(scratch.path(""), std::filesystem::perms(0755));
  StoreOptions readable = in(scratch.path());
  readable.shared = true;
  FileStore writer(readable);
  obtain(writer, key_of("a"), "made");
  std::filesystem::permissions(scratch.path(), std::filesystem::perms(0555));
  const pid_t reader = start([&] {
    constexpr uid_t nobody = 65534;
    if (geteuid() == 0 && setuid(nobody) != 0) _exit(2);  // root may write everywhere
    use_without_writing(scratch.path(), "made");
  });
  EXPECT_EQ(exit_status(reader), 0);
  std::filesystem::permissions(scratch.path(), std::filesystem::perms(0755));
}

// A limit on the size of files fails a write in the middle, as a full disk does.
TEST(AFullDisk, FailsNothingAndLeavesNothingBehind) {
  const ScratchFolder scratch;
  const pid_t writer = start([&] {
    const rlimit limit = {50, 50};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    use_without_writing(scratch.path(), content_of(1));
  });
  EXPECT_EQ(exit_status(writer), 0);
  EXPECT_THAT(entries(scratch.path()), testing::IsEmpty());
  EXPECT_THAT(leftovers(scratch.path()), testing::IsEmpty());
}

}  // namespace
}  // namespace kiln::store::process_test
