// The main program of every test: emulated devices watch kernels as closely as they can and have the clock that is
// there everywhere, and files go to a folder that no other process uses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "before_tests.h"
#include "kernel_folder.h"

namespace {

/// Folder of testing::TempDir() while the object lives.
class PrivateFolder {
 public:
  PrivateFolder() : path_(testing::TempDir() + "kiln-test-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) {
      std::fprintf(stderr, "cannot make the folder %s: %s\n", path_.c_str(), std::strerror(errno));
      std::exit(1);
    }
    setenv("TEST_TMPDIR", path_.c_str(), 1);
  }
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

 private:
  std::string path_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  // Unless told otherwise; worker processes, too.
  setenv("KILN_EMULATOR_CHECK", "full", 0);
  setenv("KILN_EMULATOR_CLOCK", "ptx", 0);  // the same times whether nvdisasm is installed or not
  setenv("KILN_KERNEL_STORE_MIB", std::to_string(kiln::testing_support::kernel_folder_mib).c_str(), 0);
  // Variables of the person who runs the tests.
  for (const char* const own : {"KILN_CACHE", "KILN_PACK_PATH", "KILN_BUNDLE_PATH", "KILN_RECORD"}) unsetenv(own);
  const PrivateFolder folder;
  for (void (*const prepare)() : kiln::testing_support::before_tests()) prepare();
  return RUN_ALL_TESTS();
}
