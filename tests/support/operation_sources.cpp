#include "operation_sources.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/generator/code_text.h"
#include "kiln/generator/operation.h"

namespace kiln::testing_support {
namespace {

namespace fs = std::filesystem;

std::string room_of(const std::string& path) {
  return path.substr(0, path.find('/'));
}

std::string unit_of(const std::string& room, const fs::path& file) {
  return room + " " + file.stem().string();
}

// The unit of operations that an #include in a file of `room` names.
std::optional<std::string> included_unit(const std::string& room, std::string_view line) {
  for (const std::string_view of_generator : {"#include \"kiln/generator/operations/", "#include \"operations/"}) {
    if (!line.starts_with(of_generator)) continue;
    line.remove_prefix(of_generator.size());
    const bool is_public = of_generator.find("kiln/") != of_generator.npos;
    return unit_of(is_public ? "generator" : room, fs::path(line.substr(0, line.find('"'))));
  }
  return std::nullopt;
}

std::set<std::string> included_units(const std::string& room, const std::string& code) {
  std::set<std::string> units;
  std::istringstream lines(code);
  for (std::string line; std::getline(lines, line);) {
    if (const auto unit = included_unit(room, line)) units.insert(*unit);
  }
  return units;
}

bool is_of_operations(const std::string& path) {
  return std::ranges::any_of(folders_of_operations(),
                             [&](const std::string& folder) { return path.starts_with(folder + "/"); });
}

// Calls visit(path below the root, path) for each source in C++ of that file or folder.
template <typename Visit>
void for_each_source(const fs::path& root, const std::string& part, const Visit& visit) {
  const auto visit_source = [&](const fs::path& path) {
    if (path.extension() == ".cpp" || path.extension() == ".h") {
      visit(path.lexically_relative(root).generic_string(), path);
    }
  };
  if (!fs::is_directory(root / part)) return visit_source(root / part);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / part)) {
    if (entry.is_regular_file()) visit_source(entry.path());
  }
}

}  // namespace

std::string content_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string content(std::istreambuf_iterator<char>(stream), {});
  if (!stream) throw Error(ErrorCode::io_error, "cannot read " + path.string());
  return content;
}

const std::vector<std::string>& folders_of_operations() {
  static const std::vector<std::string> folders = {
      "generator/operations", "generator/include/kiln/generator/operations", "reference/operations"};
  return folders;
}

OperationSources::OperationSources(const fs::path& root, const std::vector<std::string>& rooms) {
  for (const std::string& folder : folders_of_operations()) {
    if (fs::is_directory(root / folder)) read(root, folder);
  }
  std::set<Unit> by_others;
  for (const std::string& room : rooms) {
    for_each_source(root, room, [&](const std::string& path, const fs::path& file) {
      if (!is_of_operations(path)) by_others.merge(included_units(room_of(path), content_of(file)));
    });
  }
  of_all_ = needed_by(by_others);
  std::set<Unit> needed = of_all_;
  for (const Operation* operation : operations()) {
    for (const auto& [path, code] : code_) {
      const std::string name(operation->name());
      const bool is_definition = code.find("Operation& " + name + "_operation()") != code.npos;
      const bool is_reference = code.find("Reference " + name + "_reference()") != code.npos;
      if (is_definition || is_reference) defines_[name].insert(unit_of(room_of(path), path));
    }
    needed.merge(units_of(std::string(operation->name())));
  }
  for (const auto& [unit, files] : files_) {
    if (!needed.contains(unit)) of_all_.insert(unit);
  }
}

void OperationSources::read(const fs::path& root, const std::string& folder) {
  for_each_source(root, folder, [&](const std::string& path, const fs::path& file) {
    const std::string& code = code_.emplace(path, code_of(content_of(file))).first->second;
    const Unit unit = unit_of(room_of(path), path);
    files_[unit].insert(path);
    includes_[unit].merge(included_units(room_of(path), code));
  });
}

std::set<OperationSources::Unit> OperationSources::needed_by(const std::set<Unit>& units) const {
  std::vector<Unit> open(units.begin(), units.end());
  std::set<Unit> needed;
  while (!open.empty()) {
    const Unit unit = open.back();
    open.pop_back();
    if (!needed.insert(unit).second) continue;
    if (const auto found = includes_.find(unit); found != includes_.end()) {
      open.insert(open.end(), found->second.begin(), found->second.end());
    }
  }
  return needed;
}

std::set<OperationSources::Unit> OperationSources::units_of(const std::string& operation) const {
  const auto found = defines_.find(operation);
  return found == defines_.end() ? std::set<Unit>() : needed_by(found->second);
}

std::set<std::string> OperationSources::of(const std::string& operation) const {
  std::set<Unit> units = units_of(operation);
  units.insert(of_all_.begin(), of_all_.end());
  std::set<std::string> paths;
  for (const Unit& unit : units) {
    if (const auto found = files_.find(unit); found != files_.end()) {
      paths.insert(found->second.begin(), found->second.end());
    }
  }
  return paths;
}

std::string OperationSources::digest_of(const std::string& operation) const {
  Digest digest;
  for (const std::string& path : of(operation)) digest.add(path).add(code_.at(path));
  return digest.hex();
}

}  // namespace kiln::testing_support
