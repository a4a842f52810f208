// Programs outside of the tree that use an installed Kiln, on the emulated device.
#include <gmock/gmock.h>

#include <array>

#include "installation.h"

namespace kiln::install {
namespace {

using testing::HasSubstr;

const fs::path consumers = KILN_CONSUMER_DIR;
const std::string expected_output = "kiln " KILN_VERSION ": 0.25 0.25 0.25 0.25\n";

// One language of the consumers: its folder, and how a compiler is called for it.
struct Language {
  const char* name;
  const char* source;
  const char* compile;
};

constexpr std::array<Language, 2> languages = {
    Language{"cpp", "consumer.cpp", KILN_CXX " -std=c++20"},
    Language{"c", "consumer.c", KILN_CC " -std=c11 -Wall -Wextra -Wpedantic -Werror"},
};

void expect_output(const fs::path& program, const fs::path& library_folder) {
  const Outcome outcome = run_on_device("LD_LIBRARY_PATH=" + library_folder.string() + " " + program.string());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_EQ(outcome.text, expected_output);
}

// Builds and runs the consumer by find_package with the Kiln below `prefix`.
void expect_found_by_cmake(const Language& language, const fs::path& prefix, const fs::path& build) {
  const Outcome built =
      run(std::string("CC=" KILN_CC " CXX=" KILN_CXX " ") + KILN_CMAKE + " -S " + (consumers / language.name).string() +
          " -B " + build.string() + " -DCMAKE_PREFIX_PATH=" + prefix.string() + " && " + KILN_CMAKE + " --build " +
          build.string());
  ASSERT_EQ(built.exit_code, 0) << language.name << "\n" << built.text;
  expect_output(build / "consumer", prefix / KILN_LIBDIR);
}

// Builds and runs the consumer with what pkg-config says of the Kiln below `prefix`.
void expect_found_by_pkg_config(const Language& language, const fs::path& prefix, const fs::path& program) {
  const fs::path source = consumers / language.name / language.source;
  const Outcome built = run("flags=$(PKG_CONFIG_LIBDIR=" + (prefix / KILN_LIBDIR / "pkgconfig").string() +
                            " pkg-config --cflags --libs kiln) && " + language.compile + " -o " + program.string() +
                            " " + source.string() + " $flags");
  ASSERT_EQ(built.exit_code, 0) << language.name << "\n" << built.text;
  expect_output(program, prefix / KILN_LIBDIR);
}

TEST_F(Installed, IsFoundByFindPackage) {
  for (const Language& language : languages) {
    expect_found_by_cmake(language, prefix(), work() / ("find_package_" + std::string(language.name)));
  }
}

TEST_F(Installed, IsFoundByPkgConfig) {
  for (const Language& language : languages) {
    expect_found_by_pkg_config(language, prefix(), work() / ("pkg_config_" + std::string(language.name)));
  }
}

TEST_F(Installed, DebianPackageServesConsumersFromWhereItIsUnpacked) {
  const fs::path usr = package_root() / "usr";
  expect_found_by_cmake(languages[0], usr, work() / "deb_find_package");
  expect_found_by_pkg_config(languages[1], usr, work() / "deb_pkg_config");
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
  const Outcome tuned =
      run_on_device(kiln + " tune 'softmax_forward x=f32:1x4' --candidates 2 --db " + (work() / "t.db").string());
  EXPECT_EQ(tuned.exit_code, 0) << tuned.text;
}

}  // namespace
}  // namespace kiln::install
