// How long an application waits for its tuning cache: opening a database of 10,000 requests x 16 records and a pack of
// 10,000 entries in a fresh process, with the first look-up of a request of either and of one that nobody knows; and
// one look-up after that.
//
//   bench_cache_open [folder]        builds the files in a scratch folder (or keeps them in `folder`), then measures
//   bench_cache_open --open DB PACK  one measurement; what the parent process runs
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "kiln/cache/database.h"
#include "kiln/cache/pack.h"
#include "kiln/cache/winners.h"

namespace kiln::cache {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int requests = 10'000;
constexpr int candidates = 16;
constexpr int pack_entries = 10'000;
constexpr int rounds = 21;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// CPU time of this process: what opening costs where nothing else runs, also on a busy machine.
double cpu_ms() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

DeviceEntry device() {
  return {"NVIDIA H200 sm_90 132SM 141GB", "NVIDIA H200", 9, 0, 132, false};
}

std::string request(int index) {
  return fmt::format(
      "conv_forward x=f16:32x{0}x56x56:nhwc w=f16:64x{0}x3x3:nhwc y=f16:32x64x56x56:nhwc pad=1,1,1,1 stride=1,1 "
      "dilation=1,1 groups=1 acc=f32 epilogue=bias+relu",
      index + 1);
}

// A candidate as a tuning session leaves it: four algorithms with four configurations each.
Record record(int request_index, int candidate, std::mt19937_64& random) {
  std::uniform_real_distribution<double> spread(1, 3);
  Record r;
  r.request = request(request_index);
  r.device = device().id;
  r.algorithm = fmt::format("conv_algorithm_{}", candidate % 4);
  r.algorithm_digest = fmt::format("0123456789abcdef0123456789abcde{}", candidate % 4);
  r.config = fmt::format("BLOCK_M={},BLOCK_N=64,BLOCK_K=16,STAGES=2,VECTOR=4", 16 << (candidate / 4));
  r.outcome = outcome::timed;
  r.seconds = 1e-5 * spread(random);
  r.spread = r.seconds / 200;
  r.samples.assign(9, r.seconds);
  r.check = "max error 1.2e-4, bound 3.1e-3";
  r.workspace_bytes = candidate % 4 == 3 ? 1 << 20 : 0;
  r.resources = {96, 0, 32768};
  r.driver_version = "13000";
  r.nvrtc_version = "13.0";
  r.kiln_version = "0.1.0";
  r.source_digest = fmt::format("{:032x}", random());
  r.session = "session";
  r.created_ms = 1'790'000'000'000;
  return r;
}

void build_database(const std::string& path) {
  std::mt19937_64 random(1);
  Database db = Database::open(path, {}, [](const Announcement& a) { throw std::runtime_error(a.text()); });
  db.put_device(device());
  std::vector<Record> records;
  for (int i = 0; i < requests; ++i) {
    for (int c = 0; c < candidates; ++c) records.push_back(record(i, c, random));
    if (records.size() >= 16'000) {
      db.insert(records);
      records.clear();
    }
  }
  db.insert(records);
}

void build_pack(const std::string& path) {
  std::mt19937_64 random(2);
  std::vector<Record> records;
  for (int i = 0; i < pack_entries; ++i) records.push_back(record(requests + i, i % candidates, random));
  write_pack_file(path, make_pack({device()}, std::move(records)), "0.1.0");
}

std::vector<std::string> random_keys() {
  std::mt19937_64 random(3);
  std::vector<std::string> keys;
  for (int i = 0; i < 4096; ++i) keys.push_back(request(static_cast<int>(random() % (requests + pack_entries))));
  return keys;
}

void look_up(const Winners& winners, const std::string& key, bool is_known) {
  if (winners.find(key).has_value() != is_known) throw std::runtime_error("a wrong answer for " + key);
}

// Mean time of the first look-up of each key, which reads what is stored.
double first_lookup_us(const Winners& winners, const std::vector<std::string>& keys) {
  const auto start = Clock::now();
  for (const std::string& key : keys) look_up(winners, key, true);
  return ms_since(start) * 1e3 / static_cast<double>(keys.size());
}

// Median time of one later look-up, in batches so that the clock's own cost does not count.
double lookup_ns(const Winners& winners, const std::vector<std::string>& keys) {
  std::vector<double> batches;
  for (int batch = 0; batch < 31; ++batch) {
    const auto start = Clock::now();
    std::size_t found = 0;
    for (const std::string& key : keys) found += winners.find(key).has_value() ? 1 : 0;
    batches.push_back(ms_since(start) * 1e6 / static_cast<double>(keys.size()));
    if (found != keys.size()) throw std::runtime_error("a key was not found");
  }
  std::nth_element(batches.begin(), batches.begin() + 15, batches.end());
  return batches[15];
}

struct Sample {
  double wall_ms = 0;      // of everything
  double cpu_ms = 0;       // of everything
  double database_ms = 0;  // CPU
  double pack_ms = 0;      // CPU
  double first_ms = 0;     // CPU: of three first look-ups
  double first_lookup_us = 0;
  double lookup_ns = 0;
};

// Prints a Sample.
int measure(const char* database_path, const char* pack_path) {
  const auto start = Clock::now();
  const double cpu_start = cpu_ms();
  const Database db = Database::open(database_path);
  Winners winners(device(), [](std::string_view, std::string_view) { return true; });
  winners.load(db);
  const double database_ms = cpu_ms() - cpu_start;
  winners.load_pack(pack_path);
  const double opened_ms = cpu_ms() - cpu_start;
  look_up(winners, request(requests / 2), true);
  look_up(winners, request(requests + pack_entries / 2), true);
  look_up(winners, request(requests + pack_entries), false);
  const double total_ms = cpu_ms() - cpu_start;
  const double wall_ms = ms_since(start);
  const std::vector<std::string> keys = random_keys();
  const double first_us = first_lookup_us(winners, keys);
  if (!winners.problems().empty()) return 1;
  fmt::print("{} {} {} {} {} {} {}\n", wall_ms, total_ms, database_ms, opened_ms - database_ms, total_ms - opened_ms,
             first_us, lookup_ns(winners, keys));
  return 0;
}

Sample run_fresh_process(const std::string& program, const std::string& database, const std::string& pack) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  std::array<std::string, 4> words = {program, "--open", database, pack};
  std::array<char*, 5> argv = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ) != 0) {
    throw std::runtime_error("cannot start " + program);
  }
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  FILE* out = fdopen(ends[0], "r");
  Sample s = {};
  const int read = std::fscanf(out, "%lf %lf %lf %lf %lf %lf %lf", &s.wall_ms, &s.cpu_ms, &s.database_ms, &s.pack_ms,
                               &s.first_ms, &s.first_lookup_us, &s.lookup_ns);
  std::fclose(out);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0 || read != 7) throw std::runtime_error("a measuring process failed");
  return s;
}

double median(std::vector<Sample> samples, double Sample::*field) {
  std::sort(samples.begin(), samples.end(), [&](const Sample& a, const Sample& b) { return a.*field < b.*field; });
  return samples[samples.size() / 2].*field;
}

int run(const std::string& program, const std::string& folder) {
  const std::string database = folder + "/cache.db";
  const std::string pack = folder + "/shipped.pack";
  if (!std::filesystem::exists(database)) build_database(database);
  if (!std::filesystem::exists(pack)) build_pack(pack);
  std::vector<Sample> samples;
  for (int i = 0; i < rounds; ++i) samples.push_back(run_fresh_process(program, database, pack));
  fmt::print("database: {} requests x {} records, {:.1f} MB; pack: {} entries, {:.1f} MB\n", requests, candidates,
             static_cast<double>(std::filesystem::file_size(database)) / 1e6, pack_entries,
             static_cast<double>(std::filesystem::file_size(pack)) / 1e6);
  fmt::print(
      "opening, median: {:.1f} ms by the clock, {:.1f} ms of CPU time (database {:.2f}, pack {:.2f}, three first "
      "look-ups {:.2f}); aim: 5 ms\n",
      median(samples, &Sample::wall_ms), median(samples, &Sample::cpu_ms), median(samples, &Sample::database_ms),
      median(samples, &Sample::pack_ms), median(samples, &Sample::first_ms));
  fmt::print("look-up by request text, random order, median: the first {:.1f} us, later ones {:.0f} ns\n",
             median(samples, &Sample::first_lookup_us), median(samples, &Sample::lookup_ns));
  fmt::print(
      "method: {} fresh processes, one after the other; steady clock from before Database::open to after the\n"
      "look-ups of a request of the database, of one of the pack and of an unknown one; files in the page cache; "
      "later\n"
      "look-ups in batches of 4096 different keys\n",
      rounds);
  return 0;
}

int main_of(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--open") return measure(argv[2], argv[3]);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  if (argc == 2) {
    std::filesystem::create_directories(argv[1]);
    return run(program, argv[1]);
  }
  std::string scratch = std::filesystem::temp_directory_path() / "kiln-cache-open-XXXXXX";
  if (mkdtemp(scratch.data()) == nullptr) throw std::runtime_error("no scratch folder");
  const int status = run(program, scratch);
  std::filesystem::remove_all(scratch);
  return status;
}

}  // namespace
}  // namespace kiln::cache

int main(int argc, char** argv) {
  try {
    return kiln::cache::main_of(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_cache_open: {}\n", error.what());
    return 1;
  }
}
