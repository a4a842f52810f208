#include "deep_tests.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/generator/code_text.h"
#include "kiln/generator/operation.h"
#include "operation_sources.h"

namespace kiln::testing_support {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view heading =
    "# What the last deep run passed, each with a digest of what was tested. scripts/test --deep writes it, nobody "
    "else:\n"
    "# docs/testing.md says what it is for.\n";
constexpr std::string_view seal = "all lines above";
constexpr size_t digest_letters = 32;
constexpr const char* state_file = "sources";

bool is_digest(std::string_view text) {
  return text.size() == digest_letters && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// Subjects of a text of lines "DIGEST NAME".
std::vector<DeepSubject> subjects_in(std::string_view text) {
  std::vector<DeepSubject> subjects;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == text.npos) throw Error(ErrorCode::parse_error, "the last line has no end");
    const std::string_view line = text.substr(0, end);
    if (line.size() < digest_letters + 2 || line[digest_letters] != ' ' || !is_digest(line.substr(0, digest_letters))) {
      throw Error(ErrorCode::parse_error, fmt::format("'{}' is not a digest and a name", line));
    }
    subjects.push_back({std::string(line.substr(digest_letters + 1)), std::string(line.substr(0, digest_letters))});
    text.remove_prefix(end + 1);
  }
  return subjects;
}

// The result of `reason`, or the error where a file cannot be read.
template <typename Reason>
std::optional<std::string> unless_unreadable(const Reason& reason) {
  try {
    return reason();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io_error) throw;
    return error.message();
  }
}

// Sources of operations, which count for each operation alone, and the list of their names.
std::set<std::string> of_operations() {
  std::set<std::string> places(folders_of_operations().begin(), folders_of_operations().end());
  places.insert("generator/include/kiln/generator/operation_list.h");
  return places;
}

bool is_in(const std::string& path, const std::set<std::string>& places) {
  return std::any_of(places.begin(), places.end(), [&](const std::string& place) {
    return path.starts_with(place) && (path.size() == place.size() || path[place.size()] == '/');
  });
}

bool is_ignored(const fs::path& path) {
  return path.extension() == ".pyc";
}

bool has_comments_of_cpp(const fs::path& path) {
  static const std::set<std::string> extensions = {".cpp", ".h", ".cu", ".cuh"};
  return extensions.contains(path.extension());
}

}  // namespace

DeepList DeepList::parse(std::string_view text) {
  if (!text.starts_with(heading)) throw Error(ErrorCode::parse_error, "the heading is not that of a list");
  std::vector<DeepSubject> subjects = subjects_in(text.substr(heading.size()));
  if (subjects.empty() || subjects.back().name != seal) {
    throw Error(ErrorCode::parse_error, "the last line, a digest of all before, is missing");
  }
  subjects.pop_back();
  DeepList list;
  for (const DeepSubject& subject : subjects) list.add(subject);
  if (list.print() != text) throw Error(ErrorCode::parse_error, "it was changed by something else than a deep run");
  return list;
}

std::string DeepList::print() const {
  std::string text(heading);
  for (const auto& [name, digest] : digests_) text += fmt::format("{} {}\n", digest, name);
  return fmt::format("{}{} {}\n", text, digest_of(text), seal);
}

void DeepList::add(const DeepSubject& subject) {
  if (!is_digest(subject.digest) || subject.name.empty() || subject.name == seal ||
      subject.name.find('\n') != std::string::npos) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{} {}' is no subject", subject.digest, subject.name));
  }
  const auto [place, is_new] = digests_.emplace(subject.name, subject.digest);
  if (is_new || place->second == subject.digest) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' was tested in two states", subject.name));
}

bool DeepList::holds(const DeepSubject& subject) const {
  const auto found = digests_.find(subject.name);
  return found != digests_.end() && found->second == subject.digest;
}

std::string digest_of_sources(const fs::path& root, const std::vector<std::string>& parts,
                              const std::set<std::string>& without) {
  std::map<std::string, fs::path> files;  // by their paths below the root, in an order that no file system decides
  const auto take = [&](const fs::path& path) {
    const std::string name = path.lexically_relative(root).generic_string();
    if (!is_in(name, without)) files[name] = path;
  };
  for (const std::string& part : parts) {
    const fs::path path = root / part;
    if (fs::is_regular_file(path)) {
      take(path);
      continue;
    }
    if (!fs::is_directory(path)) throw Error(ErrorCode::io_error, "there is no " + path.string());
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file() && !is_ignored(entry.path())) take(entry.path());
    }
  }
  Digest digest;
  for (const auto& [name, path] : files) {
    const std::string content = content_of(path);
    digest.add(name).add(has_comments_of_cpp(path) ? code_of(content) : content);
  }
  return digest.hex();
}

// Not timing/: tests have the clock that reads PTX.
const std::vector<std::string>& sources_of_sweeps() {
  static const std::vector<std::string> sources = {"base",
                                                   "checking",
                                                   "cuda_abi",
                                                   "device",
                                                   "emulator",
                                                   "execution",
                                                   "generator",
                                                   "reference",
                                                   "store",
                                                   "tests/support/main.cpp",
                                                   "tests/support/pairwise.cpp",
                                                   "tests/support/pairwise.h",
                                                   "tests/support/variant_check.cpp",
                                                   "tests/support/variant_check.h",
                                                   "tests/templates/algorithm_cases.cpp",
                                                   "tests/templates/algorithm_cases.h"};
  return sources;
}

const std::map<std::string, std::vector<std::string>>& sources_of_tests() {
  static const std::map<std::string, std::vector<std::string>> sources = {
      // All that `kiln tune` and `kiln cache` are made of but the kernels, which are the same in one process and in
      // many.
      {"slurm_test",
       {"base",
        "cache",
        "calibration",
        "checking",
        "cli",
        "cuda_abi",
        "device",
        "emulator",
        "execution",
        "frontends",
        "generator",
        "graph",
        "include",
        "models",
        "reference",
        "runtime",
        "store",
        "timing",
        "tuner",
        "examples/slurm",
        "examples/models",
        "tests/cluster",
        "tests/python/deep.py",
        "tests/python/reports.py"}},
      // The page, and all whose names and words are on it.
      {"ReportTest.FitsEveryWindowInARealBrowser",
       {"cache", "cli", "generator", "runtime", "templates", "tuner", "tests/cli/report_browser_test.cpp"}},
      {"TorchTable.IsWhatPyTorchWrites",
       {"tests/reference", "tests/examples/lenet_torch.txt", "examples/train_lenet/lenet_torch.py"}}};
  return sources;
}

DeepTests::DeepTests(Options options) : options_(std::move(options)) {
  try {
    list_ = DeepList::parse(content_of(list_path()));
  } catch (const Error& error) {
    fault_ = fmt::format("tests/deep.txt does not count: {}", error.message());
  }
}

const DeepTests& DeepTests::of_project() {
  static const DeepTests tests = [] {
    const char* const records = std::getenv("TEST_DEEP_RECORDS");
    return DeepTests(
        {.root = KILN_SOURCE_DIR, .records = records == nullptr ? "" : records, .everything = KILN_ALL_DEEP});
  }();
  return tests;
}

std::optional<std::string> DeepTests::why_all_is_due() const {
  if (is_deep_run()) return "this is a deep run";
  if (options_.everything) return "tests/deep.txt says nothing of this build";
  if (!fault_.empty()) return fault_;
  return std::nullopt;
}

std::optional<std::string> DeepTests::why_due(const DeepSubject& subject) const {
  if (auto reason = why_all_is_due()) return reason;
  if (list_.holds(subject)) return std::nullopt;
  return fmt::format("'{}' is not as the deep run had it that tests/deep.txt records", subject.name);
}

std::optional<std::string> DeepTests::why_all_sweeps_are_due() const {
  if (auto reason = why_all_is_due()) return reason;
  return unless_unreadable([&]() -> std::optional<std::string> {
    for (const DeepSubject& subject : subjects_of_sweeps()) {
      if (auto reason = why_due(subject)) return reason;
    }
    return std::nullopt;
  });
}

std::set<std::string> DeepTests::changed_operations() const {
  std::set<std::string> changed;
  for (const auto& [name, subject] : subjects_of_operations()) {
    if (why_due(subject)) changed.insert(name);
  }
  return changed;
}

std::vector<DeepSubject> DeepTests::subjects_of_sweeps() const {
  std::vector<DeepSubject> subjects;
  for (const std::string& source : sources_of_sweeps()) {
    subjects.push_back({"sources " + source, digest_of_sources(root(), {source}, of_operations())});
  }
  return subjects;
}

// By the operation's name.
std::map<std::string, DeepSubject> DeepTests::subjects_of_operations() const {
  const OperationSources sources(root(), sources_of_sweeps());
  std::map<std::string, DeepSubject> subjects;
  for (const Operation* operation : operations()) {
    const std::string name(operation->name());
    subjects[name] = {"operation " + name, sources.digest_of(name)};
  }
  return subjects;
}

std::optional<std::string> DeepTests::why_test_is_due(const std::string& name) const {
  return unless_unreadable([&] { return why_due(subject_of_test(name)); });
}

DeepSubject DeepTests::subject_of_test(const std::string& name) const {
  const auto found = sources_of_tests().find(name);
  if (found == sources_of_tests().end()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no deep test with sources of its own", name));
  }
  return {"test " + name, digest_of_sources(root(), found->second)};
}

void DeepTests::passed(const DeepSubject& subject) const {
  if (!is_deep_run()) return;
  const fs::path path = options_.records / fmt::format("{}.passed", getpid());
  std::ofstream stream(path, std::ios::app);
  stream << subject.digest << ' ' << subject.name << std::endl;
  if (!stream) throw Error(ErrorCode::io_error, "cannot write " + path.string());
}

std::string DeepTests::state_of_sources() const {
  Digest state;
  state.add(digest_of_sources(root(), sources_of_sweeps()));
  state.add(digest_of_sources(root(), {"templates"}));
  for (const auto& [name, sources] : sources_of_tests()) state.add(digest_of_sources(root(), sources));
  return state.hex();
}

void DeepTests::start() const {
  const fs::path path = options_.records / state_file;
  std::ofstream stream(path);
  stream << state_of_sources() << std::endl;
  if (!stream) throw Error(ErrorCode::io_error, "cannot write " + path.string());
}

void DeepTests::write_list() const {
  if (content_of(options_.records / state_file) != state_of_sources() + "\n") {
    throw Error(ErrorCode::invalid_argument,
                "sources changed while the deep run went on: tests/deep.txt stays as it is");
  }
  DeepList list;
  for (const DeepSubject& subject : subjects_of_sweeps()) list.add(subject);
  for (const auto& [name, subject] : subjects_of_operations()) list.add(subject);
  for (const fs::directory_entry& entry : fs::directory_iterator(options_.records)) {
    if (entry.path().extension() != ".passed") continue;
    for (const DeepSubject& subject : subjects_in(content_of(entry.path()))) list.add(subject);
  }
  const fs::path fresh = list_path().string() + ".new";
  std::ofstream stream(fresh, std::ios::binary);
  stream << list.print();
  stream.close();
  if (!stream) throw Error(ErrorCode::io_error, "cannot write " + fresh.string());
  fs::rename(fresh, list_path());
}

}  // namespace kiln::testing_support
