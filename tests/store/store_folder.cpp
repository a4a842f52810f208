#include "store_folder.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "kiln/base/digest.h"

namespace kiln::store {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  std::string pattern = (fs::temp_directory_path() / "kiln-store-XXXXXX").string();
  folder_ = mkdtemp(pattern.data());
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string key_of(const std::string& name) {
  return digest_of(name);
}

fs::path file_of(const std::string& folder, const std::string& key) {
  return fs::path(folder) / (key + ".entry");
}

std::vector<std::string> entries(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(folder)) {
    if (file.path().extension() == ".entry") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> leftovers(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(folder)) {
    if (file.path().extension() != ".entry" && file.path().filename() != "lock") names.push_back(file.path().string());
  }
  return names;
}

uint64_t bytes_in(const std::string& folder) {
  uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(folder)) bytes += file.file_size();
  return bytes;
}

std::string obtain(FileStore& store, const std::string& key, const std::string& made) {
  std::string result;
  store.obtain(
      key,
      [&](std::string_view bytes) {
        result = bytes;
        return true;
      },
      [&] { return result = made; });
  return result;
}

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace kiln::store
