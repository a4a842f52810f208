#include "kiln/base/trusted_place.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <vector>

namespace kiln {
namespace {

namespace fs = std::filesystem;

// Users that the namespace of the process has no number for show as this one; nothing where every user has a number.
std::optional<uid_t> unmapped_user() {
  constexpr uint64_t all = 0xFFFFFFFF;
  uint64_t inside = 0, outside = 0, count = 0;
  std::ifstream("/proc/self/uid_map") >> inside >> outside >> count;
  uid_t unmapped = 0;
  if (count == 0 || count == all || !(std::ifstream("/proc/sys/kernel/overflowuid") >> unmapped)) return std::nullopt;
  return unmapped;
}

std::optional<std::string> why_not_owner(const struct stat& info) {
  if (info.st_uid == 0 || info.st_uid == ::geteuid()) return std::nullopt;
  return fmt::format("belongs to user {}", info.st_uid);
}

std::optional<std::string> why_writable(const struct stat& info) {
  if ((info.st_mode & S_IWOTH) != 0) return "can be written by others";
  if ((info.st_mode & S_IWGRP) != 0 && info.st_gid != info.st_uid) return "can be written by its group";
  return std::nullopt;
}

// The names of `path`, the first one last.
void push_names(const fs::path& path, std::vector<fs::path>& names) {
  const fs::path relative = path.relative_path();
  const std::vector<fs::path> parts(relative.begin(), relative.end());
  names.insert(names.end(), parts.rbegin(), parts.rend());
}

}  // namespace

std::optional<std::string> why_not_own(const struct stat& info) {
  std::optional<std::string> why = why_not_owner(info);
  return why ? why : why_writable(info);
}

std::optional<std::string> why_not_trusted(const fs::path& path, PlaceKind kind) {
  std::error_code failed;
  const fs::path whole = fs::absolute(path, failed);
  std::vector<fs::path> names;  // to come, the next one last
  push_names(whole, names);
  fs::path at = "/";
  struct stat info {};
  if (failed || ::lstat(at.c_str(), &info) != 0) return std::nullopt;
  constexpr int most_links = 40;  // as Linux itself
  for (int links = 0; !names.empty();) {
    const fs::path name = names.back();
    names.pop_back();
    if (name.empty() || name == ".") continue;
    // `at` is the folder that `name` is looked for in, and `info` is about it.
    if (const auto why = why_not_owner(info); why && info.st_uid != unmapped_user())
      return fmt::format("{} {}", at.string(), *why);
    const bool entries_are_safe = (info.st_mode & S_ISVTX) != 0 && !(kind == PlaceKind::file && names.empty());
    if (const auto why = why_writable(info); why && !entries_are_safe) return fmt::format("{} {}", at.string(), *why);
    const fs::path next = name == ".." ? at.parent_path() : at / name;
    if (::lstat(next.c_str(), &info) != 0) return std::nullopt;
    if (!S_ISLNK(info.st_mode)) {
      at = next;
      continue;
    }
    if (const auto why = why_not_owner(info)) return fmt::format("the link {} {}", next.string(), *why);
    const fs::path target = fs::read_symlink(next, failed);
    if (failed || ++links > most_links) return std::nullopt;
    if (target.is_absolute()) at = "/";
    if (::lstat(at.c_str(), &info) != 0) return std::nullopt;
    push_names(target, names);
  }
  if (const auto why = why_not_own(info)) return fmt::format("{} {}", at.string(), *why);
  return std::nullopt;
}

std::optional<std::string> make_folders(const fs::path& folder, mode_t mode) {
  std::error_code failed;
  if (folder.empty() || fs::is_directory(folder, failed)) return std::nullopt;
  if (auto why = make_folders(folder.parent_path(), mode)) return why;
  if (::mkdir(folder.c_str(), mode) == 0 || errno == EEXIST) return std::nullopt;
  return std::strerror(errno);
}

}  // namespace kiln
