// Deep tests: those that run only where their subject has changed since the deep run that tests/deep.txt records
// (docs/testing.md).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::testing_support {

/// A thing that a deep test tests, with a digest of it.
struct DeepSubject {
  std::string name;    ///< One line: "test slurm_test", "sources emulator".
  std::string digest;  ///< As Digest::hex() gives it.
};

/// The content of tests/deep.txt: subjects as the last deep run had them.
class DeepList {
 public:
  /// Throws Error(parse_error) if `text` is not, to the byte, what print() gives of some list.
  static DeepList parse(std::string_view text);
  /// A line for each subject, sorted by name, between a heading and a digest of all lines before.
  std::string print() const;

  /// Throws Error(invalid_argument) if the name is in the list with another digest, or is not one line.
  void add(const DeepSubject& subject);
  bool holds(const DeepSubject& subject) const;

 private:
  std::map<std::string, std::string> digests_;  // by name
};

/// A digest of the files, and of those in the folders, that `parts` names below `root`: of their paths and contents;
/// of C++ and CUDA without comments. Files that git ignores everywhere (*.pyc) do not count, nor do files and folders
/// out of `without`. Throws Error(io_error) if there is no such file or folder.
std::string digest_of_sources(const std::filesystem::path& root, const std::vector<std::string>& parts,
                              const std::set<std::string>& without = {});

/// Sources by the name of the subject that they make. First those that every sweep over kernels rests on, one subject
/// for each room that the tests of templates link to, but for templates/, where the digest of each algorithm counts,
/// and for what generator/ and reference/ have for one operation alone, which counts for its kernels.
const std::vector<std::string>& sources_of_sweeps();
/// Then those of the tests that are named: slurm_test, the report in a browser, the tables of PyTorch.
const std::map<std::string, std::vector<std::string>>& sources_of_tests();

/// Decides which deep tests of a process run, and keeps account of those that pass in a deep run.
class DeepTests {
 public:
  struct Options {
    std::filesystem::path root;     ///< Root of the sources; the list is its tests/deep.txt.
    std::filesystem::path records;  ///< Folder that a deep run collects what passed in; empty: no deep run.
    bool everything = false;        ///< All are due: a build for which the list says nothing.
  };
  explicit DeepTests(Options options);
  /// The instance for the project's sources. TEST_DEEP_RECORDS names the folder of records. With sanitizers everything
  /// is due.
  static const DeepTests& of_project();

  const std::filesystem::path& root() const { return options_.root; }
  bool is_deep_run() const { return !options_.records.empty(); }

  /// Why the test of this subject has to run; nothing if the list has the subject as it is.
  std::optional<std::string> why_due(const DeepSubject& subject) const;
  /// The same for sources_of_sweeps(). Sources that cannot be read are a reason, too.
  std::optional<std::string> why_all_sweeps_are_due() const;
  /// The operations whose definition or reference has changed: the sweeps over their kernels have to run. Throws
  /// Error(io_error) for sources that cannot be read.
  std::set<std::string> changed_operations() const;
  /// The same for a test out of sources_of_tests(). Throws Error(invalid_argument) if it is not there.
  std::optional<std::string> why_test_is_due(const std::string& name) const;
  /// The subject of a test out of sources_of_tests(). Throws Error(invalid_argument) if it is not there.
  DeepSubject subject_of_test(const std::string& name) const;

  /// Records in a deep run that the test of this subject passed; otherwise does nothing.
  void passed(const DeepSubject& subject) const;
  /// Notes the state of all sources, before the first test of a deep run.
  void start() const;
  /// Makes tests/deep.txt of what passed in the deep run. Throws Error(invalid_argument), and leaves the file as it is,
  /// if the sources are not those that start() saw, or a subject passed in two states.
  void write_list() const;

 private:
  std::filesystem::path list_path() const { return options_.root / "tests/deep.txt"; }
  std::optional<std::string> why_all_is_due() const;
  std::vector<DeepSubject> subjects_of_sweeps() const;
  std::map<std::string, DeepSubject> subjects_of_operations() const;
  std::string state_of_sources() const;

  Options options_;
  DeepList list_;
  std::string fault_;  // why the list says nothing; empty if it is right
};

/// The reason that a test gives when it is left out.
inline constexpr const char* unchanged_since_deep_run =
    "unchanged since the deep run that tests/deep.txt records (scripts/test --deep runs it)";

}  // namespace kiln::testing_support
