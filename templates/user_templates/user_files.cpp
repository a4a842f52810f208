// Reading the files of user templates.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <system_error>

#include "kiln/base/error.h"
#include "kiln/templates/user_templates.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t largest_text = 1 << 20;
constexpr size_t longest_file_name = 64;

std::string read_user_file(const fs::path& path) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (!error && bytes > largest_text) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("user template '{}' has {} bytes, the most is {}", path.string(), bytes, largest_text));
  }
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (error || in.bad() || !in.is_open()) {
    throw Error(ErrorCode::io_error, fmt::format("cannot read user template '{}'", path.string()));
  }
  return text;
}

void require_name(const fs::path& path) {
  const std::string name = path.stem().string();
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  if (!name.empty() && name.size() <= longest_file_name && name[0] >= 'a' && name[0] <= 'z' &&
      std::all_of(name.begin(), name.end(), fits)) {
    return;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("user template '{}' has no usable name", path.string()),
              "use lower-case letters, digits and underscores, a letter first");
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".cu" || path.extension() == ".json") paths.push_back(path);
  }
  if (error) {
    throw Error(ErrorCode::io_error,
                fmt::format("cannot read the folder of user templates '{}': {}", folder.string(), error.message()),
                "KILN_USER_TEMPLATES and ContextOptions::user_templates name folders");
  }
  if (paths.empty()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' holds no user template", folder.string()),
                "a user template is two files, NAME.cu and NAME.json");
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

SourceLibrary read_user_templates(const std::vector<std::string>& folders) {
  std::map<std::string, std::string> files;
  std::set<fs::path> taken;
  for (const std::string& folder : folders) {
    std::error_code unknown;  // then reading it says what is wrong
    const fs::path place = fs::canonical(folder, unknown);
    if (!unknown && !taken.insert(place).second) continue;  // an application and its environment may both name it
    for (const fs::path& path : files_of(folder)) {
      require_name(path);
      for (const char* extension : {".cu", ".json"}) {
        const fs::path partner = fs::path(path).replace_extension(extension);
        std::error_code error;
        if (fs::is_regular_file(partner, error)) continue;
        throw Error(ErrorCode::invalid_argument,
                    fs::exists(fs::symlink_status(partner, error))
                        ? fmt::format("'{}' is not a regular file", partner.string())
                        : fmt::format("'{}' stands without '{}'", path.string(), partner.string()),
                    "a user template is two files, NAME.cu and NAME.json");
      }
      if (files.emplace("user/" + path.filename().string(), read_user_file(path)).second) continue;
      throw Error(ErrorCode::invalid_argument, fmt::format("there are two user templates '{}'", path.stem().string()),
                  "give one of them another name");
    }
  }
  return SourceLibrary(std::move(files));
}

}  // namespace kiln
