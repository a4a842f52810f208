#include "kiln/base/variables.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace kiln {

bool is_privileged() {
  return ::getauxval(AT_SECURE) != 0;
}

const char* variable(const char* name) {
  return ::secure_getenv(name);
}

std::vector<std::string> variables_that_begin_with(std::string_view prefix) {
  std::vector<std::string> names;
  if (is_privileged()) return names;
  for (char* const* entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    if (line.starts_with(prefix)) names.emplace_back(line.substr(0, line.find('=')));
  }
  return names;
}

char* const* environment_of_children() {
  static const std::array<char*, 1> nothing = {nullptr};
  return is_privileged() ? nothing.data() : environ;
}

}  // namespace kiln
