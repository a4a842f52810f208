#include "kiln/runtime/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "kiln/templates/catalogue.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

void append_folder(const fs::path& folder, std::string_view extension, std::vector<std::string>& paths) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == extension) found.push_back(entry->path().string());
  }
  std::sort(found.begin(), found.end());
  paths.insert(paths.end(), found.begin(), found.end());
}

// `given`, then `listed`, where a folder stands for its files with that extension.
std::vector<std::string> joined(const std::vector<std::string>& given, const std::vector<std::string>& listed,
                                std::string_view extension) {
  std::vector<std::string> paths = given;
  for (const std::string& entry : listed) {
    std::error_code error;
    if (fs::is_directory(entry, error))
      append_folder(entry, extension, paths);
    else
      paths.push_back(entry);  // one that does not exist is reported where it is read
  }
  return paths;
}

// `named`, else `name` in Kiln's part of the user's cache folder; nothing for "off" and where there is no such folder.
std::optional<std::string> user_path(std::optional<std::string> named, std::string_view name,
                                     const Environment& environment) {
  if (!named && !environment.cache_home.empty()) named = fmt::format("{}/kiln/{}", environment.cache_home, name);
  if (named == "off") return std::nullopt;
  return named;
}

}  // namespace

Catalogue catalogue_of(const Environment& environment) {
  return make_catalogue(environment.template_path ? sources_from(*environment.template_path) : embedded_sources(),
                        environment.user_templates);
}

KeptPlans kept_plans(const Environment& environment) {
  return {environment.kept_plans.value_or(4096), environment.kept_plans_mib.value_or(512) << 20};
}

std::optional<std::string> cache_path(const std::optional<std::string>& given, const Environment& environment) {
  return user_path(given ? given : environment.cache, "tuning.db", environment);
}

std::optional<store::StoreOptions> kernel_store(const std::optional<std::string>& given,
                                                const Environment& environment) {
  const auto folder = user_path(given ? given : environment.kernel_store, "kernels", environment);
  if (!folder) return std::nullopt;
  store::StoreOptions options;
  options.folder = *folder;
  options.shared = given.has_value() || environment.kernel_store_shared;
  if (environment.kernel_store_mib) options.limit_bytes = *environment.kernel_store_mib << 20;
  return options;
}

std::vector<std::string> pack_paths(const std::vector<std::string>& given, const Environment& environment) {
  return joined(given, environment.pack_path, ".pack");
}

std::vector<std::string> bundle_paths(const std::vector<std::string>& given, const Environment& environment) {
  return joined(given, environment.bundle_path, ".kiln");
}

std::vector<std::string> system_packs(const Environment& environment) {
  std::vector<std::string> paths;
  for (const std::string& folder : environment.data_dirs)
    append_folder(fs::path(folder) / "kiln" / "packs", ".pack", paths);
  return paths;
}

}  // namespace kiln
