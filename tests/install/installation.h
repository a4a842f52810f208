// An installation of this build and its Debian package, made once for all tests of the program.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace kiln::install {

namespace fs = std::filesystem;

struct Outcome {
  int exit_code = -1;
  std::string text;  ///< Standard output and error together.
};

/// Runs a command line by the shell, in the root folder so that nothing of the build tree is found by chance.
Outcome run(const std::string& command);
/// As run(), on the emulated device, without the caches and packs of the person who runs the tests.
Outcome run_on_device(const std::string& command);

/// Everything installed that the tests look at. Their products stay in the build folder until the next run.
class Installed : public testing::Test {
 protected:
  /// Installs, packages and unpacks the package.
  static void SetUpTestSuite();

  /// A folder for the products of the tests.
  static fs::path work();
  /// Where `cmake --install` put everything.
  static fs::path prefix() { return work() / "prefix"; }
  static fs::path libraries() { return prefix() / KILN_LIBDIR; }
  /// The root folder into which the Debian package was unpacked.
  static fs::path package_root() { return work() / "package"; }
  static fs::path package_file();
};

}  // namespace kiln::install
