#include "fuzz_driver.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <set>
#include <thread>

#include "kiln/base/digest.h"
#include "mutate.h"

namespace kiln::fuzz {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t max_input = std::size_t{1} << 17;
#ifdef __SANITIZE_ADDRESS__
// It reserves terabytes, and has limits of memory of its own (allocation_size_limit_mb); code takes up to four times as
// long.
constexpr bool has_address_sanitizer = true;
#else
constexpr bool has_address_sanitizer = false;
#endif
constexpr double seconds_per_input = has_address_sanitizer ? 60 : 10;

struct Settings {
  double seconds = 10;
  std::uint64_t seed = 1;
  std::string findings = ".";
  std::vector<std::string> corpus;
  std::vector<std::string> replay;
  std::uint64_t count = 0;
};

/// Inputs with one outcome.
struct Outcome {
  char words[24];
  std::uint64_t inputs;
};

// Report of the trying process to its parent: memory that both see.
struct Shared {
  std::atomic<std::uint64_t> tried;
  std::atomic<std::uint64_t> kept;
  std::uint64_t next;  // of the seeds that are counted
  double slowest;      // seconds of the processor for one input, which is that of slowest_seed
  std::uint64_t slowest_seed;
  Outcome outcomes[16];
  std::size_t size;
  char input[max_input];
};

Shared& share() {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    std::exit(2);
  }
  return *new (memory) Shared{};
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in.is_open()) {
    fmt::print(stderr, "cannot read {}\n", path.string());
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> read_corpus(const std::vector<std::string>& names) {
  std::vector<fs::path> files;
  for (const std::string& name : names) {
    if (!fs::is_directory(name)) {
      files.emplace_back(name);
      continue;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(name)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs;
  for (const fs::path& file : files) inputs.push_back(read_file(file));
  return inputs;
}

// Words without what they quote and without their numbers: "line 3: 'x' is ..." and "line 40: 'y' is ..." are the same
// news.
std::string kind_of(std::string_view words) {
  constexpr std::size_t enough = 60;
  std::string kind;
  bool quoted = false;
  for (const char c : words) {
    if (c == '\'') quoted = !quoted;
    const bool number = c >= '0' && c <= '9';
    if (!quoted && !number) kind += c;
    if (kind.size() == enough) break;
  }
  return kind;
}

std::string attempt(const Target& target, std::string_view input) {
  try {
    return target.run(input);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: an exception came out: {}\n", target.name, error.what());
    std::abort();
  }
}

[[noreturn]] void refuse_memory() {
  fmt::print(stderr, "an input takes more memory than it may\n");
  std::abort();
}

/// Has a request for more memory end the process, also where the code would make an error of it.
void limit_memory(const Target& target) {
  if (has_address_sanitizer || target.most_bytes == 0) return;
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + target.most_bytes;
  const rlimit limit{most, most};
  check(::setrlimit(RLIMIT_AS, &limit) == 0, "memory can be limited");
  std::set_new_handler(refuse_memory);
}

/// The input of a seed.
std::string made_of(std::uint64_t seed) {
  constexpr std::size_t bytes = 64;  // the first choices; Choices makes the others of these
  std::mt19937_64 random(seed);
  std::string input(bytes, '\0');
  for (char& byte : input) byte = static_cast<char>(random());
  return input;
}

void hand_over(Shared& shared, std::string_view input) {
  shared.size = input.size();
  std::memcpy(shared.input, input.data(), input.size());
}

void count_outcome(Shared& shared, std::string_view words) {
  const std::string_view outcome = words.substr(0, std::min(words.find(':'), sizeof(Outcome::words) - 1));
  for (Outcome& known : shared.outcomes) {
    if (known.inputs == 0) std::copy(outcome.begin(), outcome.end(), known.words);
    if (known.words != outcome) continue;
    ++known.inputs;
    return;
  }
}

[[noreturn]] void try_seeds(const Target& target, const Settings& settings, Shared& shared) {
  limit_memory(target);
  while (shared.next < settings.count) {
    const std::uint64_t seed = settings.seed + shared.next++;
    const std::string input = made_of(seed);
    hand_over(shared, input);
    const std::clock_t begin = std::clock();
    count_outcome(shared, attempt(target, input));
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (seconds > shared.slowest) shared.slowest = seconds, shared.slowest_seed = seed;
    ++shared.tried;
  }
  std::_Exit(0);
}

[[noreturn]] void try_inputs(const Target& target, const Settings& settings, Shared& shared) {
  limit_memory(target);
  std::vector<std::string> pool = read_corpus(settings.corpus);
  constexpr std::uint64_t most_made = 200;
  for (std::uint64_t i = 0; target.made && i < most_made; ++i) pool.push_back(made_of(settings.seed + i));
  std::set<std::string> seen;
  const auto attempt_one = [&](const std::string& input) {
    hand_over(shared, input);
    const std::string words = attempt(target, input);
    ++shared.tried;
    return seen.insert(kind_of(words)).second;
  };
  for (std::string& input : pool) {
    input.resize(std::min(input.size(), max_input));
    attempt_one(input);
  }
  if (pool.empty()) pool.emplace_back();
  std::mt19937_64 random(settings.seed);
  const auto end = Clock::now() + std::chrono::duration<double>(settings.seconds);
  constexpr std::size_t largest_pool = 10'000;
  while (Clock::now() < end) {
    const std::string& parent = pool[random() % pool.size()];
    const std::string& other = pool[random() % pool.size()];
    std::string mutant = mutate(parent, other, target.dictionary, random, max_input);
    if (attempt_one(mutant) && pool.size() < largest_pool) {
      pool.push_back(std::move(mutant));
      ++shared.kept;
    }
  }
  std::_Exit(0);
}

constexpr auto between_looks = std::chrono::milliseconds(50);

/// How long a process works on one input. Seconds of the processor count, and looks at which it has done nothing since
/// the last one, because it may wait for something: a busy machine, or one that stands still, takes time from all
/// alike.
class Stopwatch {
 public:
  explicit Stopwatch(pid_t process) { clock_getcpuclockid(process, &processor_); }

  void restart() { begin_ = work(), idle_looks_ = 0; }
  /// To be asked once in between_looks.
  bool is_over() {
    constexpr int most_idle_looks = 1200;  // a minute
    const double now = work();
    idle_looks_ = now > last_ ? 0 : idle_looks_ + 1;
    last_ = now;
    return now - begin_ > seconds_per_input || idle_looks_ > most_idle_looks;
  }

 private:
  double work() const {
    constexpr double nanosecond = 1e-9;
    timespec time{};
    clock_gettime(processor_, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * nanosecond;
  }

  clockid_t processor_{};
  double begin_ = 0, last_ = 0;
  int idle_looks_ = 0;
};

// Waits for the trying process; ends it if one input takes too long. Its status, and whether it hung.
std::pair<int, bool> watch(pid_t child, const Shared& shared) {
  std::uint64_t last = shared.tried;
  Stopwatch stopwatch(child);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(between_looks);
    if (shared.tried != last) {
      last = shared.tried;
      stopwatch.restart();
    } else if (stopwatch.is_over()) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return {status, true};
    }
  }
  return {status, false};
}

std::string ending(int status, bool hung) {
  if (hung) return fmt::format("more than {} s on one input", seconds_per_input);
  return WIFSIGNALED(status) ? fmt::format("it died by signal {}", WTERMSIG(status)) : std::string("it died");
}

void report(const Target& target, const Settings& settings, const Shared& shared, const std::string& ending,
            const char* program) {
  const std::string_view input(shared.input, std::min(shared.size, max_input));
  fs::create_directories(settings.findings);
  const fs::path file = fs::path(settings.findings) / fmt::format("{}-{}", target.name, digest_of(input).substr(0, 16));
  std::ofstream(file, std::ios::binary).write(input.data(), static_cast<std::streamsize>(input.size()));
  if (target.product) std::ofstream(file.string() + ".product", std::ios::binary) << target.product(input);
  fmt::print(stderr, "{}: {} after {} inputs; the input is in {}\n  replay: {} --replay {}\n", target.name, ending,
             shared.tried.load(), file.string(), program, file.string());
}

bool is_fault(int status, bool hung) {
  return hung || !WIFEXITED(status) || WEXITSTATUS(status) == 1;
}

int fuzz(const Target& target, const Settings& settings, const char* program) {
  Shared& shared = share();
  const pid_t child = fork();
  if (child == 0) try_inputs(target, settings, shared);
  const auto [status, hung] = watch(child, shared);
  if (is_fault(status, hung)) {
    report(target, settings, shared, ending(status, hung), program);
    return 1;
  }
  fmt::print("{}: {} inputs in {} s, {} of them kept for news, nothing found\n", target.name, shared.tried.load(),
             settings.seconds, shared.kept.load());
  return WEXITSTATUS(status);
}

int count(const Target& target, const Settings& settings, const char* program) {
  Shared& shared = share();
  std::uint64_t findings = 0;
  while (shared.next < settings.count) {
    const pid_t child = fork();
    if (child == 0) try_seeds(target, settings, shared);
    const auto [status, hung] = watch(child, shared);
    if (!is_fault(status, hung)) continue;
    report(target, settings, shared, ending(status, hung), program);
    ++findings;
  }
  fmt::print("{}: {} inputs from seed {} on, {} findings; the slowest, of seed {}, took {:.1f} s\n", target.name,
             settings.count, settings.seed, findings, shared.slowest_seed, shared.slowest);
  for (const Outcome& outcome : shared.outcomes) {
    if (outcome.inputs > 0) fmt::print("  {:<12} {:>7}\n", static_cast<const char*>(outcome.words), outcome.inputs);
  }
  return findings == 0 ? 0 : 1;
}

Settings parse(int argc, char** argv, const Target& target) {
  Settings settings;
  CLI::App app("fuzzes: " + target.name);
  app.add_option("--seconds", settings.seconds, "how long")->check(CLI::NonNegativeNumber);
  app.add_option("--seed", settings.seed, "of the mutations");
  app.add_option("--findings", settings.findings, "folder for inputs that fail");
  app.add_option("--replay", settings.replay, "only try these files, in this process");
  if (target.made) app.add_option("--count", settings.count, "tries the inputs of so many seeds, from --seed on");
  app.add_option("corpus", settings.corpus, "inputs to start from: files, or folders of files");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return settings;
}

}  // namespace

void check(bool holds, std::string_view what) {
  if (holds) return;
  fmt::print(stderr, "this does not hold: {}\n", what);
  std::abort();
}

int fuzz_main(int argc, char** argv, const Target& target) {
  const Settings settings = parse(argc, argv, target);
  if (!settings.replay.empty()) limit_memory(target);
  for (const std::string& file : settings.replay) {
    fmt::print("{}: {}\n", file, attempt(target, read_file(file)));
  }
  if (!settings.replay.empty()) return 0;
  return settings.count > 0 ? count(target, settings, argv[0]) : fuzz(target, settings, argv[0]);
}

}  // namespace kiln::fuzz
