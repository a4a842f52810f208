// Rules about the sources of tests.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace kiln::test_sources_test {
namespace {

namespace fs = std::filesystem;

// A name that two of them have may meet when a third one is added: CMake makes the batches.
TEST(TestSources, HaveNamespacesOfTheirOwn) {
  int read = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(KILN_SOURCE_DIR) / "tests")) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() != ".cpp" || !name.ends_with("_test")) continue;
    if (name == "cudnn_abi_test") continue;  // a program by itself, in the namespace of the header that it compares
    std::ifstream stream(entry.path());
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    if (text.find("\nnamespace {\n") == text.npos) continue;
    ++read;
    EXPECT_NE(text.find("::" + name + " {\nnamespace {\n"), text.npos)
        << entry.path() << ": write 'namespace kiln::" << name << " {' around 'namespace {' (docs/testing.md)";
  }
  EXPECT_GT(read, 300) << "the tests are not where they were";
}

}  // namespace
}  // namespace kiln::test_sources_test
