#include "fuzz_driver.h"

#include <fmt/format.h>
#include <sys/mman.h>
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
constexpr double seconds_per_input = 10;

struct Settings {
  double seconds = 10;
  std::uint64_t seed = 1;
  std::string findings = ".";
  std::vector<std::string> corpus;
  std::vector<std::string> replay;
};

// What the trying process tells its parent: memory that both see.
struct Shared {
  std::atomic<std::uint64_t> tried;
  std::atomic<std::uint64_t> kept;
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

[[noreturn]] void try_inputs(const Target& target, const Settings& settings, Shared& shared) {
  std::vector<std::string> pool = read_corpus(settings.corpus);
  std::set<std::string> seen;
  const auto attempt_one = [&](const std::string& input) {
    shared.size = input.size();
    std::memcpy(shared.input, input.data(), input.size());
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

// Waits for the trying process; ends it if one input takes too long. Its status, and whether it hung.
std::pair<int, bool> watch(pid_t child, const Shared& shared) {
  std::uint64_t last = 0;
  auto since = Clock::now();
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (shared.tried != last) {
      last = shared.tried;
      since = Clock::now();
    } else if (Clock::now() - since > std::chrono::duration<double>(seconds_per_input)) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return {status, true};
    }
  }
  return {status, false};
}

int report(const Target& target, const Settings& settings, const Shared& shared, bool hung, const char* program) {
  const std::string_view input(shared.input, std::min(shared.size, max_input));
  fs::create_directories(settings.findings);
  const fs::path file = fs::path(settings.findings) / fmt::format("{}-{}", target.name, digest_of(input).substr(0, 16));
  std::ofstream(file, std::ios::binary).write(input.data(), static_cast<std::streamsize>(input.size()));
  fmt::print(stderr, "{}: {} after {} inputs; the input is in {}\n  replay: {} --replay {}\n", target.name,
             hung ? fmt::format("more than {} s on one input", seconds_per_input) : std::string("it died"),
             shared.tried.load(), file.string(), program, file.string());
  return 1;
}

Settings parse(int argc, char** argv, const Target& target) {
  Settings settings;
  CLI::App app("fuzzes: " + target.name);
  app.add_option("--seconds", settings.seconds, "how long")->check(CLI::NonNegativeNumber);
  app.add_option("--seed", settings.seed, "of the mutations");
  app.add_option("--findings", settings.findings, "folder for inputs that fail");
  app.add_option("--replay", settings.replay, "only try these files, in this process");
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
  for (const std::string& file : settings.replay) {
    fmt::print("{}: {}\n", file, attempt(target, read_file(file)));
  }
  if (!settings.replay.empty()) return 0;
  Shared& shared = share();
  const pid_t child = fork();
  if (child == 0) try_inputs(target, settings, shared);
  const auto [status, hung] = watch(child, shared);
  if (hung || !WIFEXITED(status) || WEXITSTATUS(status) == 1) return report(target, settings, shared, hung, argv[0]);
  fmt::print("{}: {} inputs in {} s, {} of them kept for news, nothing found\n", target.name, shared.tried.load(),
             settings.seconds, shared.kept.load());
  return WEXITSTATUS(status);
}

}  // namespace kiln::fuzz
