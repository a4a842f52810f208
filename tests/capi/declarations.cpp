#include "declarations.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

namespace kiln::capi {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The last word of each of `parameters`: "kiln_context* context, float alpha" -> context, alpha.
std::vector<std::string> names_in(const std::string& parameters) {
  std::vector<std::string> names;
  const std::regex name("(\\w+)\\s*(,|$)");
  for (std::sregex_iterator it(parameters.begin(), parameters.end(), name), end; it != end; ++it) {
    names.push_back((*it)[1]);
  }
  return names;
}

}  // namespace

Declarations declared_functions() {
  Declarations functions;
  const std::regex declaration("KILN_API\\s+kiln_status\\s+(kiln_\\w+)\\(([^)]*)\\);");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(KILN_PUBLIC_HEADERS)) {
    if (!entry.is_regular_file()) continue;
    const std::string text = text_of(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it) {
      functions[(*it)[1]] = names_in((*it)[2]);
    }
  }
  return functions;
}

}  // namespace kiln::capi
