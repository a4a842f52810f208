// Dealings of a process with the world outside are written once, where it is done with care: nothing else may do them.
#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::one_place_test {
namespace {

namespace fs = std::filesystem;

struct Place {
  std::vector<std::string_view> names;  // of functions and variables
  std::string_view file;
  std::string_view why;
};

void PrintTo(const Place& place, std::ostream* out) {
  *out << place.file;
}

bool holds_word(std::string_view line, std::string_view word) {
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (size_t at = line.find(word); at != line.npos; at = line.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !in_word(line[at - 1])) && (end == line.size() || !in_word(line[end]))) return true;
  }
  return false;
}

class OnePlace : public testing::TestWithParam<Place> {};

TEST_P(OnePlace, IsTheOnlyOneThatDoesIt) {
  constexpr std::array rooms = {"base",      "generator", "templates", "reference",   "device", "store",
                                "execution", "cache",     "checking",  "calibration", "tuner",  "runtime",
                                "capi",      "graph",     "frontends", "models",      "cli",    "timing",
                                "emulator",  "include",   "python/src"};
  const auto& [names, file, why] = GetParam();
  int read = 0;
  for (const char* room : rooms) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(KILN_SOURCE_DIR) / room)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".h") continue;
      ++read;
      if (entry.path() == fs::path(KILN_SOURCE_DIR) / file) continue;
      std::ifstream stream(entry.path());
      int number = 0;
      for (std::string line; std::getline(stream, line);) {
        ++number;
        const std::string_view code = std::string_view(line).substr(0, line.find("//"));
        for (const std::string_view name : names) {
          EXPECT_FALSE(holds_word(code, name)) << entry.path() << ":" << number << ": " << line << "\n"
                                               << why << ": use " << file;
        }
      }
    }
  }
  EXPECT_GT(read, 200) << "the sources are not where they were";
}

INSTANTIATE_TEST_SUITE_P(Sources, OnePlace,
                         testing::Values(Place{{"getenv", "secure_getenv", "environ"},
                                               "base/variables.cpp",
                                               "a privileged program believes no variable"},
                                         Place{{"posix_spawn", "posix_spawnp", "fork", "vfork", "popen", "execv",
                                                "execve", "execvp", "execl", "execlp", "execle"},
                                               "base/child.cpp",
                                               "a child inherits neither descriptors nor signal masks"},
                                         Place{{"dladdr", "dladdr1", "current_path"},
                                               "base/own_folders.cpp",
                                               "nothing is executed or loaded by way of the working directory"}));

}  // namespace
}  // namespace kiln::one_place_test
