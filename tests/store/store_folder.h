// A folder for one test, and short ways to use a store in it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kiln/store/file_store.h"

namespace kiln::store {

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string path(const std::string& name = "store") const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

/// A key for a name.
std::string key_of(const std::string& name);
/// The file of a key.
std::filesystem::path file_of(const std::string& folder, const std::string& key);
/// Names of the entries in a folder, sorted.
std::vector<std::string> entries(const std::string& folder);
/// Files in a folder that are neither entries nor the lock.
std::vector<std::string> leftovers(const std::string& folder);
uint64_t bytes_in(const std::string& folder);

/// Entry stored under `key`, or `made` after storing that.
std::string obtain(FileStore& store, const std::string& key, const std::string& made);

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& bytes);

}  // namespace kiln::store
