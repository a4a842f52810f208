// The texts that algorithms are made from: built in, or overlaid from a folder.
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "embedded_texts.h"
#include "kiln/base/error.h"
#include "kiln/templates/catalogue.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

bool is_template(std::string_view path) {
  return path.ends_with(".cu");
}
bool is_piece(std::string_view path) {
  return path.ends_with(".cuh");
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) {
    throw Error(ErrorCode::io_error, fmt::format("KILN_TEMPLATE_PATH: cannot read '{}'", path.string()));
  }
  return text;
}

Files read_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw Error(ErrorCode::io_error, fmt::format("KILN_TEMPLATE_PATH: '{}' is not a folder", folder.string()),
                "name a copy of templates/ or unset the variable");
  }
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().lexically_relative(folder).generic_string();
    if (entry.is_regular_file() && (is_template(path) || is_piece(path))) files[path] = read_file(entry.path());
  }
  if (files.empty()) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("KILN_TEMPLATE_PATH: '{}' holds no template (*.cu) and no piece of one (*.cuh)", folder.string()),
        "name a copy of templates/ or unset the variable");
  }
  return files;
}

// Every file that some template is made from. Throws if an include leads nowhere.
std::set<std::string> reachable(const SourceLibrary& library, const fs::path& folder) {
  std::set<std::string> paths;
  for (const auto& [path, text] : library.files()) {
    if (!is_template(path)) continue;
    try {
      for (std::string& file : closure(library, path)) paths.insert(std::move(file));
    } catch (const Error& error) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("KILN_TEMPLATE_PATH: '{}': {}", folder.string(), error.message()),
                  "correct the #include, or add the file");
    }
  }
  return paths;
}

}  // namespace

SourceLibrary embedded_sources() {
  return SourceLibrary(embedded_texts());
}

SourceLibrary sources_from(const fs::path& folder) {
  const Files built_in = embedded_texts();
  const Files overlay = read_folder(folder);
  Files merged = built_in;
  for (const auto& [path, text] : overlay) {
    if (is_template(path) && !built_in.contains(path)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("KILN_TEMPLATE_PATH: no algorithm is made from '{}' in '{}'", path, folder.string()),
                  "a new template needs a descriptor and a line in catalogue.cpp; to edit one keep its path");
    }
    merged[path] = text;
  }
  SourceLibrary library(std::move(merged));
  const std::set<std::string> used = reachable(library, folder);
  for (const auto& [path, text] : overlay) {
    if (!built_in.contains(path) && !used.contains(path)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("KILN_TEMPLATE_PATH: no template includes '{}' in '{}'", path, folder.string()),
                  "check the spelling of the path, which must be that of the built-in file");
    }
  }
  return library;
}

}  // namespace kiln
