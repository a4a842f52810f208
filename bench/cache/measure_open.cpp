#include "measure_open.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <stdexcept>

#include "kiln/cache/database.h"
#include "kiln/cache/winners.h"

namespace kiln::cache {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// CPU time of this process: what opening costs where nothing else runs, also on a busy machine.
double cpu_ms() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

std::vector<std::string> random_keys(const Files& files) {
  std::mt19937_64 random(3);
  std::uniform_int_distribution<int> draw(0, files.database_requests + files.pack_entries - 1);
  std::vector<std::string> keys;
  for (int i = 0; i < 4096; ++i) {
    const int drawn = draw(random);
    keys.push_back(
        request(drawn < files.database_requests ? drawn : files.pack_first + drawn - files.database_requests));
  }
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

std::vector<std::string> arguments_of(const Files& files) {
  return {files.database, std::to_string(files.database_requests), files.pack, std::to_string(files.pack_first),
          std::to_string(files.pack_entries)};
}

Sample run_fresh_process(const Files& files) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  std::vector<std::string> words = {program, "--open"};
  for (std::string& argument : arguments_of(files)) words.push_back(std::move(argument));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
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

/// One measurement, printed for run_fresh_process(). Returns the exit code.
int measure(const std::vector<std::string>& arguments) {
  const Files files = {arguments.at(0), std::stoi(arguments.at(1)), arguments.at(2), std::stoi(arguments.at(3)),
                       std::stoi(arguments.at(4))};
  const auto start = Clock::now();
  const double cpu_start = cpu_ms();
  const Database db = files.database.empty() ? Database::in_memory() : Database::open(files.database);
  Winners winners(device(), [](std::string_view, std::string_view) { return true; });
  winners.load(db);
  const double database_ms = cpu_ms() - cpu_start;
  if (!files.pack.empty()) winners.load_pack(files.pack);
  const double opened_ms = cpu_ms() - cpu_start;
  if (files.database_requests > 0) look_up(winners, request(files.database_requests / 2), true);
  if (files.pack_entries > 0) look_up(winners, request(files.pack_first + files.pack_entries / 2), true);
  look_up(winners, request(std::max(files.database_requests, files.pack_first + files.pack_entries)), false);
  const double total_ms = cpu_ms() - cpu_start;
  const double wall_ms = ms_since(start);
  const std::vector<std::string> keys = random_keys(files);
  const double first_us = first_lookup_us(winners, keys);
  if (!winners.problems().empty()) return 1;
  fmt::print("{} {} {} {} {} {} {}\n", wall_ms, total_ms, database_ms, opened_ms - database_ms, total_ms - opened_ms,
             first_us, lookup_ns(winners, keys));
  return 0;
}

}  // namespace

DeviceEntry device() {
  return {"NVIDIA H200 sm_90 132SM 141GB", "NVIDIA H200", 9, 0, 132, false};
}

std::string request(int index) {
  return fmt::format(
      "conv_forward x=f16:32x{0}x56x56:nhwc w=f16:64x{0}x3x3:nhwc y=f16:32x64x56x56:nhwc pad=1,1,1,1 stride=1,1 "
      "dilation=1,1 groups=1 acc=f32 epilogue=bias+relu",
      index + 2);  // channels: of one alone the layout would be written as nchw
}

Record record(int request_index, int candidate, std::mt19937_64& random) {
  std::uniform_real_distribution<double> spread(1, 3);
  Record r;
  r.request = request(request_index);
  r.device = device().id;
  r.algorithm = fmt::format("conv_algorithm_{}", candidate % 4);
  r.algorithm_digest = fmt::format("0123456789abcdef0123456789abcde{}", candidate % 4);
  r.config = fmt::format("BLOCK_K=16,BLOCK_M={},BLOCK_N=64,STAGES=2,VECTOR=4", 16 << (candidate / 4));
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

int run_main(const std::string& name, const std::vector<std::string>& arguments,
             const std::function<void(const std::string& folder)>& run) {
  try {
    if (!arguments.empty() && arguments[0] == "--open") return measure({arguments.begin() + 1, arguments.end()});
    if (arguments.size() == 1) {
      std::filesystem::create_directories(arguments[0]);
      run(arguments[0]);
      return 0;
    }
    std::string scratch = std::filesystem::temp_directory_path() / (name + "-XXXXXX");
    if (mkdtemp(scratch.data()) == nullptr) throw std::runtime_error("no scratch folder");
    run(scratch);
    std::filesystem::remove_all(scratch);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return 1;
  }
}

std::vector<Sample> measure_in_fresh_processes(const Files& files, int rounds) {
  std::vector<Sample> samples;
  for (int i = 0; i < rounds; ++i) samples.push_back(run_fresh_process(files));
  return samples;
}

std::string summary_of(const std::vector<Sample>& samples) {
  return fmt::format(
      "opening, median: {:.1f} ms by the clock, {:.1f} ms of CPU time (database {:.2f}, pack {:.2f}, first "
      "look-ups {:.2f}); aim: 5 ms\n"
      "look-up by request text, random order, median: the first {:.1f} us, later ones {:.0f} ns\n",
      median(samples, &Sample::wall_ms), median(samples, &Sample::cpu_ms), median(samples, &Sample::database_ms),
      median(samples, &Sample::pack_ms), median(samples, &Sample::first_ms), median(samples, &Sample::first_lookup_us),
      median(samples, &Sample::lookup_ns));
}

}  // namespace kiln::cache
