// Which sources of generator/ and reference/ are those of one operation: for sweeps over its kernels
// (docs/testing.md).
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kiln::testing_support {

/// Content of a file. Throws Error(io_error) if it cannot be read.
std::string content_of(const std::filesystem::path& path);

/// Folders with the definitions and references of operations, below the root.
const std::vector<std::string>& folders_of_operations();

/// The files in these folders, and who needs them. What a file includes, it needs whole: the header, and the source of
/// that name. So a function that several operations call is defined in the source that has its header's name.
class OperationSources {
 public:
  /// Reads the folders, and what the code of `rooms` (files and folders below `root`) includes of them. Throws
  /// Error(io_error) for a file that cannot be read.
  OperationSources(const std::filesystem::path& root, const std::vector<std::string>& rooms);

  /// The paths that kernels of an operation rest on: its definition and its reference with all that they include, what
  /// the rooms' other code includes, and what no operation includes.
  std::set<std::string> of(const std::string& operation) const;
  /// A digest of their paths and contents, without comments.
  std::string digest_of(const std::string& operation) const;

 private:
  // "generator conv_forward", "reference window": the files of one stem.
  using Unit = std::string;

  void read(const std::filesystem::path& root, const std::string& folder);
  std::set<Unit> needed_by(const std::set<Unit>& units) const;
  std::set<Unit> units_of(const std::string& operation) const;

  std::map<std::string, std::string> code_;        // by path
  std::map<Unit, std::set<std::string>> files_;    // paths
  std::map<Unit, std::set<Unit>> includes_;        // what its files include
  std::map<std::string, std::set<Unit>> defines_;  // of each operation, what defines it and its reference
  std::set<Unit> of_all_;
};

}  // namespace kiln::testing_support
