// Says what it knows of itself and of its environment, a line each: started by tests as another program would be, under
// a name, in a folder and with rights of their choice.
#include <fmt/format.h>

#include "kiln/base/environment.h"
#include "kiln/base/own_folders.h"
#include "kiln/base/variables.h"
#include "own_library.h"

int main() {
  using namespace kiln;
  fmt::print("privileged {}\n", is_privileged());
  for (const auto& folder : own_folders()) fmt::print("folder {}\n", folder.string());
  for (const auto& folder : folders_of_the_library()) fmt::print("library {}\n", folder.string());
  for (const char* name : {"KILN_DRIVER", "PATH", "CUDA_HOME", "VIRTUAL_ENV", "TMPDIR", "COLUMNS"}) {
    if (const char* const value = variable(name)) fmt::print("variable {}={}\n", name, value);
  }
  for (const std::string& name : variables_that_begin_with("KILN_")) fmt::print("named {}\n", name);
  for (char* const* entry = environment_of_children(); *entry != nullptr; ++entry) fmt::print("child's {}\n", *entry);
  try {
    const Environment environment = Environment::read();
    fmt::print("driver {}\n", environment.driver.value_or("none"));
    fmt::print("cache {}\n", environment.cache_home.empty() ? "none" : environment.cache_home);
    for (const std::string& folder : environment.data_dirs) fmt::print("data {}\n", folder);
    fmt::print("database {}\n", environment.cache.value_or("none"));
    fmt::print("kernels {}\n", environment.kernel_store.value_or("none"));
    fmt::print("refused {}\n", environment.cache_not_trusted ? "database" : "none");
    for (const Error& error : environment.not_trusted) fmt::print("left out {}\n", error.what());
    for (const std::string& name : environment.unknown) fmt::print("unknown {}\n", name);
  } catch (const Error& error) {
    fmt::print("error {}\n", error.what());
  }
  return 0;
}
