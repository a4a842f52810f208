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

constexpr uintmax_t largest_file = 1 << 20;
constexpr size_t longest_name = 64;

std::string read_file(const fs::path& path) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (!error && bytes > largest_file) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("user template '{}' has {} bytes, the most is {}", path.string(), bytes, largest_file));
  }
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (error || in.bad() || !in.is_open()) {
    throw Error(ErrorCode::io_error, fmt::format("cannot read user template '{}'", path.string()));
  }
  return text;
}

void require_name(const fs::path& path) {
  const std::string name = path.filename().string();
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  if (!name.empty() && name.size() <= longest_name && name[0] >= 'a' && name[0] <= 'z' &&
      std::all_of(name.begin(), name.end(), fits)) {
    return;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("user template '{}' has no usable name", path.string()),
              "use lower-case letters, digits and underscores, a letter first");
}

// The files of user templates without their extensions, by name.
std::set<fs::path> stems_of(const fs::path& folder) {
  std::set<fs::path> stems;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".cu" || path.extension() == ".json") stems.insert(fs::path(path).replace_extension());
  }
  if (error) {
    throw Error(ErrorCode::io_error,
                fmt::format("cannot read the folder of user templates '{}': {}", folder.string(), error.message()),
                "KILN_USER_TEMPLATES and ContextOptions::user_templates name folders");
  }
  if (stems.empty()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' holds no user template", folder.string()),
                "a user template is two files, NAME.cu and NAME.json");
  }
  return stems;
}

// Adds both files of the user template, or throws and adds none.
void read_template(const fs::path& stem, std::map<std::string, std::string>& files) {
  const auto named = [&](const char* extension) { return fs::path(stem) += extension; };
  require_name(stem);
  for (const char* extension : {".cu", ".json"}) {
    const fs::path path = named(extension), partner = named(extension == std::string_view(".cu") ? ".json" : ".cu");
    std::error_code error;
    if (fs::is_regular_file(path, error)) continue;
    throw Error(ErrorCode::invalid_argument,
                fs::exists(fs::symlink_status(path, error))
                    ? fmt::format("'{}' is not a regular file", path.string())
                    : fmt::format("'{}' stands without '{}'", partner.string(), path.string()),
                "a user template is two files, NAME.cu and NAME.json");
  }
  const std::string key = "user/" + stem.filename().string();
  if (files.contains(key + ".cu")) {
    throw Error(ErrorCode::invalid_argument, fmt::format("there are two user templates '{}'", stem.filename().string()),
                "give one of them another name");
  }
  std::string kernel = read_file(named(".cu")), descriptor = read_file(named(".json"));
  files.emplace(key + ".cu", std::move(kernel));
  files.emplace(key + ".json", std::move(descriptor));
}

}  // namespace

void leave_out_if_faulty(const std::function<void()>& make, const FaultyTemplate& faulty) {
  try {
    make();
  } catch (const Error& error) {
    if (!faulty) throw;
    faulty(error);
  }
}

SourceLibrary read_user_templates(const std::vector<std::string>& folders, const FaultyTemplate& faulty) {
  std::map<std::string, std::string> files;
  std::set<fs::path> taken;
  for (const std::string& folder : folders) {
    std::error_code unknown;  // then reading it says what is wrong
    const fs::path place = fs::canonical(folder, unknown);
    if (!unknown && !taken.insert(place).second) continue;  // an application and its environment may both name it
    for (const fs::path& stem : stems_of(folder)) leave_out_if_faulty([&] { read_template(stem, files); }, faulty);
  }
  return SourceLibrary(std::move(files));
}

}  // namespace kiln
