// Tables of values that no other test compares: what a program finds is held against a file of the repository.
#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace kiln::test {

/// Nothing where `found` has the lines of the file. Else leaves `found` beside the program under the file's name, and
/// gives a text for people: where it is, and up to 20 lines that are gone and 20 that are new, each behind the last
/// line before it that is not indented.
inline std::string difference_from_table(const std::string& file_name, const std::string& found) {
  const auto lines_of = [](std::istream&& stream) {
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  };
  const std::vector<std::string> before = lines_of(std::ifstream(file_name)),
                                 after = lines_of(std::istringstream(found));
  if (before == after) return {};
  const std::string fresh = std::filesystem::path(file_name).filename();
  std::ofstream(fresh) << found;
  std::string text = "all of it is in " + std::filesystem::absolute(fresh).string() +
                     "; if that is what the change was to do, put it in the place of " + file_name + ":\n";
  const auto add_missing = [&](const std::vector<std::string>& lines, const std::vector<std::string>& others,
                               char sign) {
    const std::multiset<std::string> known(others.begin(), others.end());
    std::string heading;
    int shown = 0;
    for (const std::string& line : lines) {
      if (!line.starts_with(' ')) heading = " " + line + "\n";
      if (known.contains(line) || ++shown > 20) continue;
      text += std::exchange(heading, "") + sign + line + "\n";
    }
  };
  add_missing(before, after, '-');
  add_missing(after, before, '+');
  return text;
}

}  // namespace kiln::test
