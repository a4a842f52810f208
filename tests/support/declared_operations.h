// The operations of the C++ API, read from the text of its headers.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace kiln {

/// The names of the functions in the folder `headers` that call an operation.
inline std::set<std::string> declared_operations(const std::filesystem::path& headers) {
  std::set<std::string> names;
  const std::regex declaration("\nvoid (\\w+)\\(Context& context,");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(headers)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream stream(entry.path());
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it) names.insert((*it)[1]);
  }
  return names;
}

}  // namespace kiln
