#include "kiln/runtime/settings.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "kiln/templates/catalogue.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

void append_folder(const fs::path& folder, std::vector<std::string>& paths) {
  std::vector<std::string> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".pack") found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  paths.insert(paths.end(), found.begin(), found.end());
}

}  // namespace

Catalogue catalogue_of(const Environment& environment) {
  return make_catalogue(environment.template_path ? sources_from(*environment.template_path) : embedded_sources());
}

std::optional<std::string> cache_path(const std::optional<std::string>& given, const Environment& environment) {
  std::optional<std::string> path = given ? given : environment.cache;
  if (!path && !environment.cache_home.empty()) path = environment.cache_home + "/kiln/tuning.db";
  if (path && *path == "off") return std::nullopt;
  return path;
}

std::vector<std::string> pack_paths(const std::vector<std::string>& given, const Environment& environment) {
  std::vector<std::string> paths = given;
  for (const std::string& entry : environment.pack_path) {
    std::error_code error;
    if (fs::is_directory(entry, error))
      append_folder(entry, paths);
    else
      paths.push_back(entry);  // one that does not exist is reported where it is read
  }
  return paths;
}

}  // namespace kiln
