#include "kiln/base/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/base/nearest.h"
#include "kiln/base/trusted_place.h"
#include "kiln/base/variables.h"

namespace kiln {
namespace {

// KILN_EMULATOR_* belong to the emulator, which checks them itself.
constexpr auto known_names = std::to_array<std::string_view>(
    {"KILN_DRIVER", "KILN_NVRTC", "KILN_CACHE", "KILN_PACK_PATH", "KILN_BUNDLE_PATH", "KILN_RECORD", "KILN_LOG",
     "KILN_WORKER", "KILN_TEMPLATE_PATH", "KILN_KERNEL_STORE", "KILN_KERNEL_STORE_MIB", "KILN_KERNEL_STORE_SHARED",
     "KILN_KEPT_PLANS", "KILN_KEPT_PLANS_MIB", "KILN_FIRST_CALL", "KILN_USER_TEMPLATES", "KILN_CHECK_NUMERICS"});

std::vector<std::string> unknown_names() {
  std::vector<std::string> names = variables_that_begin_with("KILN_");
  std::erase_if(names, [](const std::string& name) {
    return name.starts_with("KILN_EMULATOR_") || std::ranges::find(known_names, name) != known_names.end();
  });
  return names;
}

std::optional<std::string> text(const Environment::Lookup& lookup, const char* name) {
  const char* value = lookup(name);
  if (value == nullptr) return std::nullopt;
  if (*value == '\0') {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is set but empty", name), "give it a value or unset it");
  }
  return std::string(value);
}

// A word and the value that it stands for.
template <class Value>
using Word = std::pair<std::string_view, Value>;

template <class Value>
std::optional<Value> one_of(const Environment::Lookup& lookup, const char* name, const Word<Value>& one,
                            const Word<Value>& other) {
  const std::optional<std::string> value = text(lookup, name);
  if (!value) return std::nullopt;
  if (*value == one.first) return one.second;
  if (*value == other.first) return other.second;
  throw Error(ErrorCode::invalid_argument, fmt::format("{}={} is not {} or {}", name, *value, one.first, other.first));
}

bool flag(const Environment::Lookup& lookup, const char* name) {
  return one_of<bool>(lookup, name, {"0", false}, {"1", true}).value_or(false);
}

std::optional<uint64_t> count(const Environment::Lookup& lookup, const char* name, std::string_view what) {
  constexpr uint64_t most = uint64_t{1} << 40;  // as MiB, bytes still fit 64 bits
  const std::optional<std::string> value = text(lookup, name);
  if (!value) return std::nullopt;
  uint64_t number = 0;
  const char* const end = value->data() + value->size();
  const auto [stop, error] = std::from_chars(value->data(), end, number);
  if (error == std::errc() && stop == end && number >= 1 && number <= most) return number;
  throw Error(ErrorCode::invalid_argument, fmt::format("{}={} is not a number of {}", name, *value, what),
              fmt::format("give a whole number from 1 to {}", most));
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::string_view rest = text;
  while (true) {
    const size_t end = rest.find(separator);
    if (end != 0 && !rest.empty()) parts.emplace_back(rest.substr(0, end));
    if (end == std::string_view::npos) return parts;
    rest.remove_prefix(end + 1);
  }
}

std::string user_cache_home(const Environment::Lookup& lookup) {
  const char* xdg = lookup("XDG_CACHE_HOME");
  if (xdg != nullptr && *xdg == '/') return xdg;  // the XDG specification ignores relative paths
  const char* home = lookup("HOME");
  return home != nullptr && *home != '\0' ? std::string(home) + "/.cache" : std::string();
}

// Folders of data for everybody on the machine (XDG Base Directory Specification).
std::vector<std::string> system_data_dirs(const Environment::Lookup& lookup) {
  const char* xdg = lookup("XDG_DATA_DIRS");
  std::vector<std::string> folders = split(xdg != nullptr ? xdg : "", ':');
  std::erase_if(folders, [](const std::string& folder) { return !folder.starts_with('/'); });
  if (folders.empty()) folders = {"/usr/local/share", "/usr/share"};
  return folders;
}

// Leaves out what another user may have put there: a stored kernel runs with the rights of the process, and a database
// says which variants passed their checks.
void keep_trusted_places(Environment& environment) {
  const auto is_refused = [&](const std::string& what, const std::string& path, PlaceKind kind,
                              const std::string& otherwise) {
    const std::optional<std::string> why = why_not_trusted(path, kind);
    if (why) {
      environment.not_trusted.emplace_back(
          ErrorCode::io_error, fmt::format("{} {} is not used, because {}", what, path, *why),
          fmt::format("it and the folders above must belong to {}root, and nobody else may write them; {}",
                      ::geteuid() == 0 ? "" : fmt::format("user {} or ", ::geteuid()), otherwise));
    }
    return why.has_value();
  };
  const std::string own = environment.cache_home + "/kiln";
  const bool home_is_used = !environment.cache_home.empty() && !(environment.cache && environment.kernel_store);
  if (home_is_used && is_refused("the cache folder", own, PlaceKind::folder,
                                 "XDG_CACHE_HOME, or KILN_CACHE and KILN_KERNEL_STORE, name others")) {
    environment.cache_home.clear();
    environment.cache_not_trusted = !environment.cache;
  }
  // Each as it is named, or as it is found in the user's cache folder.
  const auto place = [&](const std::optional<std::string>& named, const char* name) {
    if (!named && !environment.cache_home.empty()) return own + name;
    return named.value_or("off");
  };
  const std::string database = place(environment.cache, "/tuning.db");
  if (database != "off" &&
      is_refused("the tuning database", database, PlaceKind::file, "or name it by --db or in the application")) {
    environment.cache = "off";
    environment.cache_not_trusted = true;
  }
  const std::string kernels = place(environment.kernel_store, "/kernels");
  if (kernels != "off" && !environment.kernel_store_shared &&
      is_refused("the store of compiled kernels", kernels, PlaceKind::folder,
                 "KILN_KERNEL_STORE_SHARED=1 takes the kernels of all who can write it")) {
    environment.kernel_store = "off";
  }
}

}  // namespace

Error unknown_variable(std::string_view name) {
  return {ErrorCode::invalid_argument, fmt::format("unknown environment variable {}", name),
          did_you_mean(name, known_names,
                       "docs/environment.md lists the variables that Kiln reads; unset this one or correct its name")};
}

Environment Environment::read() {
  Environment result = read(variable);
  result.unknown = unknown_names();
  keep_trusted_places(result);
  return result;
}

Environment Environment::read(const Lookup& lookup) {
  Environment result;
  result.driver = text(lookup, "KILN_DRIVER");
  result.nvrtc = text(lookup, "KILN_NVRTC");
  result.cache = text(lookup, "KILN_CACHE");
  if (auto paths = text(lookup, "KILN_PACK_PATH")) result.pack_path = split(*paths, ':');
  if (auto paths = text(lookup, "KILN_BUNDLE_PATH")) result.bundle_path = split(*paths, ':');
  result.record = text(lookup, "KILN_RECORD");
  result.log = flag(lookup, "KILN_LOG");
  result.worker = text(lookup, "KILN_WORKER");
  result.template_path = text(lookup, "KILN_TEMPLATE_PATH");
  result.kernel_store = text(lookup, "KILN_KERNEL_STORE");
  result.kernel_store_mib = count(lookup, "KILN_KERNEL_STORE_MIB", "MiB");
  result.kept_plans = count(lookup, "KILN_KEPT_PLANS", "plans");
  result.kept_plans_mib = count(lookup, "KILN_KEPT_PLANS_MIB", "MiB");
  result.kernel_store_shared = flag(lookup, "KILN_KERNEL_STORE_SHARED");
  if (auto folders = text(lookup, "KILN_USER_TEMPLATES")) result.user_templates = split(*folders, ':');
  result.first_call =
      one_of<FirstCall>(lookup, "KILN_FIRST_CALL", {"exact", FirstCall::exact}, {"at_once", FirstCall::at_once});
  result.check_numerics = one_of<NumericsPolicy>(lookup, "KILN_CHECK_NUMERICS", {"warn", NumericsPolicy::warn},
                                                 {"error", NumericsPolicy::error});
  result.cache_home = user_cache_home(lookup);
  result.data_dirs = system_data_dirs(lookup);
  return result;
}

}  // namespace kiln
