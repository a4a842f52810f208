// Cost of a fleet's databases: 100,000 requests x 16 records in 64 shards are merged by `kiln cache merge`, once and
// again; then `kiln tune --status` of the shards, `kiln cache export --winners`, and opening and look-ups of the merged
// database and of the pack.
//
//   bench_fleet [folder]   makes the shards in a scratch folder (or keeps all files in `folder`), then measures
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kiln/cache/database.h"
#include "measure_open.h"

namespace kiln::cache {
namespace {

constexpr int requests = 100'000;
constexpr int candidates = 16;
constexpr int shards = 64;
constexpr int rounds = 11;

Database open(const std::string& path) {
  return Database::open(path, {}, [](const Announcement& a) { throw std::runtime_error(a.text()); });
}

// As a finished job leaves it.
void build_shard(const std::string& path, int shard) {
  std::mt19937_64 random(static_cast<std::uint64_t>(shard));
  Database db = open(path);
  db.put_device(device());
  const std::string session = fmt::format("session-{}", shard);
  db.begin_session({session, device().id, "plan", "0.1.0", 1'790'000'000'000, std::nullopt});
  std::vector<Record> records;
  std::vector<std::string> keys;
  for (int i = shard; i < requests; i += shards) {
    keys.push_back(request(i));
    for (int c = 0; c < candidates; ++c) records.push_back(record(i, c, random));
  }
  db.insert(records);
  db.begin_run({session, "zoo.txt", fmt::format("{}/{}", shard, shards), "node", 1'790'000'000'000, 0.0}, keys);
  std::vector<RunLayer> done;
  for (const std::string& key : keys) done.push_back({key, LayerState::done, {}});
  db.report_run(session, 1'790'000'100'000, 0.0, done);
  db.end_session(session, 1'790'000'100'000);
}

void build_shards(const std::string& folder) {
  std::filesystem::create_directories(folder);
  const auto build = [&](int first) {
    for (int i = first; i < shards; i += 2) {
      const std::string path = fmt::format("{}/shard-{}-of-{}.db", folder, i, shards);
      if (!std::filesystem::exists(path)) build_shard(path, i);
    }
  };
  std::thread other(build, 1);
  build(0);
  other.join();
}

// Runs the program, prints what it took, and fails with it.
void time_program(const std::string& what, std::vector<std::string> words, const std::string& aim) {
  words.insert(words.begin(), KILN_PROGRAM);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  if (posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ) != 0) {
    throw std::runtime_error("cannot start " + words[0]);
  }
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  rusage used{};
  wait4(child, &status, 0, &used);
  if (status != 0) throw std::runtime_error(what + " failed");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto of = [](const timeval& time) { return static_cast<double>(time.tv_sec) + time.tv_usec / 1e6; };
  fmt::print(
      "{}: {:.2f} s by the clock, {:.2f} s of CPU time ({:.2f} of it the system's), {:.0f} MB of memory; aim: {}\n",
      what, seconds, of(used.ru_utime) + of(used.ru_stime), of(used.ru_stime),
      static_cast<double>(used.ru_maxrss) * 1024 / 1e6, aim);
  std::fflush(stdout);
}

double megabytes(const std::string& path) {
  return static_cast<double>(std::filesystem::file_size(path)) / 1e6;
}

void run(const std::string& folder) {
  const std::string fleet = folder + "/shards", merged = folder + "/merged.db", pack = folder + "/winners.pack";
  build_shards(fleet);
  std::filesystem::remove(merged);
  fmt::print("{} requests x {} records in {} shards\n", requests, candidates, shards);
  const std::vector<std::string> merge = {"cache", "merge", "--db", merged, fleet};
  time_program("merge", merge, "60 s, 1000 MB");
  time_program("merge again", merge, "none");
  time_program("status", {"tune", "--status", fleet}, "2 s");
  time_program("export of the winners", {"cache", "export", "--winners", "--no-samples", "--db", merged, pack}, "none");
  fmt::print("merged database, {:.0f} MB:\n{}", megabytes(merged),
             summary_of(measure_in_fresh_processes({.database = merged, .database_requests = requests}, rounds)));
  fmt::print("pack of its winners, {:.0f} MB:\n{}", megabytes(pack),
             summary_of(measure_in_fresh_processes({.pack = pack, .pack_entries = requests}, rounds)));
  fmt::print("method: {} fresh processes for each of the last figures, one after the other; files in the page cache\n",
             rounds);
}

}  // namespace
}  // namespace kiln::cache

int main(int argc, char** argv) {
  return kiln::cache::run_main("bench_fleet", {argv + 1, argv + argc}, kiln::cache::run);
}
