// Exports of a shared library: which functions it has, asked of the file that applications link to.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace kiln {

/// The symbols that `library` defines, demangled, each with "@@" and its version behind it.
inline std::vector<std::string> exported_symbols(const std::string& library) {
  const std::string command = "nm --dynamic --demangle --defined-only --with-symbol-versions '" + library + "'";
  FILE* listed = popen(command.c_str(), "r");
  std::string text;
  for (char buffer[4096]; listed != nullptr && std::fgets(buffer, sizeof buffer, listed) != nullptr;) text += buffer;
  EXPECT_EQ(listed == nullptr ? -1 : pclose(listed), 0) << command;
  std::vector<std::string> symbols;
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);         // address, kind, symbol
    const bool is_node = line.find(" A KILN_") != std::string::npos;  // the definition of a version itself
    if (line.size() > 19 && !is_node) symbols.push_back(line.substr(19));
  }
  return symbols;
}

/// The functions of the C++ API that call an operation, by their names: those whose first argument is a Context.
inline std::set<std::string> exported_operations(const std::string& library) {
  const std::string begin = "kiln::", arguments = "(kiln::Context&";
  std::set<std::string> names;
  for (const std::string& symbol : exported_symbols(library)) {
    const size_t end = symbol.find('(');
    if (end == std::string::npos || !symbol.starts_with(begin) || symbol.find(arguments) != end) continue;
    const std::string name = symbol.substr(begin.size(), end - begin.size());
    const bool is_member = name.find(':') != std::string::npos;
    const bool runs_nothing = name == "plan_of_call" || name == "is_captured" || name == "order";
    if (!is_member && !runs_nothing) names.insert(name);
  }
  return names;
}

/// Names that `names` has to have and has not: all that a failure should show of two long lists.
inline std::set<std::string> missing_of(const std::set<std::string>& names, const std::set<std::string>& needed) {
  std::set<std::string> missing;
  std::ranges::set_difference(needed, names, std::inserter(missing, missing.end()));
  return missing;
}

}  // namespace kiln
