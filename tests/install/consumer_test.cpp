// Programs outside of the tree that use an installed Kiln, on the emulated device.
#include <gmock/gmock.h>

#include "installation.h"

namespace kiln::install {
namespace {

using testing::HasSubstr;

const std::string consumer_folder = KILN_CONSUMER_DIR;
const std::string expected_output = "kiln " KILN_VERSION ": 0.25 0.25 0.25 0.25\n";

void expect_output(const std::string& program, const fs::path& library_folder) {
  const Outcome outcome = run_on_device("LD_LIBRARY_PATH=" + library_folder.string() + " " + program);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_EQ(outcome.text, expected_output);
}

// Configures and builds the consumer by find_package against a Kiln below `prefix`.
Outcome build_by_find_package(const fs::path& prefix, const fs::path& build) {
  return run(std::string(KILN_CMAKE) + " -S " + consumer_folder + " -B " + build.string() + " -DCMAKE_CXX_COMPILER=" +
             KILN_CXX + " -DCMAKE_PREFIX_PATH=" + prefix.string() + " && " + KILN_CMAKE + " --build " + build.string());
}

// Builds the consumer as `program` with what pkg-config says of the Kiln whose kiln.pc is in `folder`.
Outcome build_by_pkg_config(const fs::path& folder, const fs::path& program) {
  return run("flags=$(PKG_CONFIG_LIBDIR=" + folder.string() + " pkg-config --cflags --libs kiln) && " + KILN_CXX +
             " -std=c++20 -o " + program.string() + " " + consumer_folder + "/consumer.cpp $flags");
}

TEST_F(Installed, IsFoundByFindPackage) {
  const fs::path build = work() / "find_package";
  const Outcome built = build_by_find_package(prefix(), build);
  ASSERT_EQ(built.exit_code, 0) << built.text;
  expect_output((build / "consumer_cpp").string(), libraries());
}

TEST_F(Installed, IsFoundByPkgConfig) {
  const fs::path program = work() / "pkg_config_cpp";
  const Outcome built = build_by_pkg_config(libraries() / "pkgconfig", program);
  ASSERT_EQ(built.exit_code, 0) << built.text;
  expect_output(program.string(), libraries());
}

TEST_F(Installed, DebianPackageServesConsumersFromWhereItIsUnpacked) {
  const fs::path usr = package_root() / "usr";
  const fs::path build = work() / "deb_find_package", program = work() / "deb_pkg_config_cpp";
  const Outcome by_cmake = build_by_find_package(usr, build);
  ASSERT_EQ(by_cmake.exit_code, 0) << by_cmake.text;
  expect_output((build / "consumer_cpp").string(), usr / KILN_LIBDIR);
  const Outcome by_pkg_config = build_by_pkg_config(usr / KILN_LIBDIR / "pkgconfig", program);
  ASSERT_EQ(by_pkg_config.exit_code, 0) << by_pkg_config.text;
  expect_output(program.string(), usr / KILN_LIBDIR);
}

TEST_F(Installed, DebianPackageDependsOnTheLibrariesThatItsBinariesNeed) {
  const Outcome fields = run("dpkg-deb -f " + package_file().string());
  EXPECT_THAT(fields.text, HasSubstr("Package: kiln\n"));
  EXPECT_THAT(fields.text, HasSubstr("Version: " KILN_VERSION));
  for (const char* needed : {"libc6 (>=", "libfmt", "libsqlite3-0", "libonnx", "libstdc++6 (>="}) {
    EXPECT_THAT(fields.text, HasSubstr(needed));
  }
}

TEST_F(Installed, ProgramFindsTheEmulatorAndItsWorkers) {
  const std::string kiln = (prefix() / "bin" / "kiln").string();
  const Outcome devices = run_on_device(kiln + " devices");
  EXPECT_EQ(devices.exit_code, 0) << devices.text;
  EXPECT_THAT(devices.text, HasSubstr((libraries() / "libkiln_emulator.so").string()));
  const Outcome tuned = run_on_device(kiln + " tune 'softmax_forward x=f32:1x4' --db " + (work() / "t.db").string());
  EXPECT_EQ(tuned.exit_code, 0) << tuned.text;
}

}  // namespace
}  // namespace kiln::install
