// Programs outside of the tree that use an installed Kiln, on the emulated device.
#include <gmock/gmock.h>

#include <array>
#include <fstream>
#include <string>

#include "installation.h"
#include "small_model.h"

namespace kiln::install::consumer_test {
namespace {

using testing::HasSubstr;
using testing::Not;

const fs::path consumers = KILN_CONSUMER_DIR;
const std::string expected_output = "kiln " KILN_VERSION ": 0.25 0.25 0.25 0.25\n";

// One consumer: its folder, how a compiler is called for it, and pkg-config's name of what it links to.
struct Consumer {
  const char* name;
  const char* source;
  const char* compile;
  const char* package;
};

constexpr std::array<Consumer, 4> all_consumers = {
    Consumer{"cpp", "consumer.cpp", KILN_CXX " -std=c++20", "kiln"},
    Consumer{"c", "consumer.c", KILN_CC " -std=c11 -Wall -Wextra -Wpedantic -Werror", "kiln"},
    Consumer{"c_model", "consumer.c", KILN_CC " -std=c11 -Wall -Wextra -Wpedantic -Werror", "kiln_model"},
    Consumer{"model", "consumer.cpp", KILN_CXX " -std=c++20 -Wall -Wextra -Wpedantic -Werror", "kiln_model"},
};

// The file of a model that consumers may run.
fs::path model_file(const fs::path& folder) {
  const fs::path file = folder / "softmax.onnx";
  std::ofstream(file, std::ios::binary) << testing_support::softmax_model();
  return file;
}

void expect_output(const fs::path& program, const fs::path& library_folder) {
  const Outcome outcome = run_on_device("LD_LIBRARY_PATH=" + library_folder.string() + " " + program.string() + " " +
                                        model_file(program.parent_path()).string());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_EQ(outcome.text, expected_output);
}

// Builds and runs the consumer by find_package with the Kiln below `prefix`.
void expect_found_by_cmake(const Consumer& consumer, const fs::path& prefix, const fs::path& build) {
  const Outcome built =
      run(std::string("CC=" KILN_CC " CXX=" KILN_CXX " ") + KILN_CMAKE + " -S " + (consumers / consumer.name).string() +
          " -B " + build.string() + " -DCMAKE_PREFIX_PATH=" + prefix.string() + " && " + KILN_CMAKE + " --build " +
          build.string());
  ASSERT_EQ(built.exit_code, 0) << consumer.name << "\n" << built.text;
  expect_output(build / "consumer", prefix / KILN_LIBDIR);
}

// Builds and runs the consumer with what pkg-config says of the Kiln below `prefix`.
void expect_found_by_pkg_config(const Consumer& consumer, const fs::path& prefix, const fs::path& program) {
  const fs::path source = consumers / consumer.name / consumer.source;
  const Outcome built = run("flags=$(PKG_CONFIG_LIBDIR=" + (prefix / KILN_LIBDIR / "pkgconfig").string() +
                            " pkg-config --cflags --libs " + consumer.package + ") && " + consumer.compile + " -o " +
                            program.string() + " " + source.string() + " $flags");
  ASSERT_EQ(built.exit_code, 0) << consumer.name << "\n" << built.text;
  expect_output(program, prefix / KILN_LIBDIR);
}

TEST_F(Installed, IsFoundByFindPackage) {
  for (const Consumer& consumer : all_consumers) {
    expect_found_by_cmake(consumer, prefix(), work() / ("find_package_" + std::string(consumer.name)));
  }
}

TEST_F(Installed, IsFoundByPkgConfig) {
  for (const Consumer& consumer : all_consumers) {
    expect_found_by_pkg_config(consumer, prefix(), work() / ("pkg_config_" + std::string(consumer.name)));
  }
}

TEST_F(Installed, HeadersSayFirstThatTheyNeedCxx20) {
  for (const char* header : {"kiln/kiln.hpp", "kiln/conv.h", "kiln/tensor.h", "kiln/model.h"}) {
    const Outcome refused =
        run(std::string("echo '#include \"") + header + "\"' | " KILN_CXX " -std=c++17 -fsyntax-only -x c++ -I" +
            (prefix() / "include").string() + " - 2>&1" + " | grep -m 1 error");
    EXPECT_THAT(refused.text, HasSubstr("Kiln's C++ headers need C++20: compile with -std=c++20")) << header;
  }
  const Outcome c_header =
      run(std::string("echo '#include \"kiln/kiln.h\"' | " KILN_CXX " -std=c++11 -fsyntax-only -x c++ -I") +
          (prefix() / "include").string() + " -");
  EXPECT_EQ(c_header.exit_code, 0) << c_header.text;
}

// As docs/install.md has it, to the letter, but for the places.
TEST_F(Installed, CExampleIsBuiltByTheLineOfThePage) {
  const fs::path page = prefix() / KILN_DOCDIR / "docs" / "install.md";
  std::ifstream stream(page);
  std::string line;
  while (std::getline(stream, line) && !line.starts_with("cc ")) continue;
  ASSERT_TRUE(stream) << "no line of the page begins with cc";
  const fs::path folder = work() / "c_example";
  fs::create_directories(folder);
  fs::copy_file(fs::path(KILN_EXAMPLES) / "c_conv_forward" / "main.c", folder / "engine.c");
  const Outcome built =
      run("cd " + folder.string() + " && export PKG_CONFIG_PATH=" + (prefix() / KILN_LIBDIR / "pkgconfig").string() +
          " && " + line.substr(0, line.find('#')));
  EXPECT_EQ(built.exit_code, 0) << line << "\n" << built.text;  // the build's own example is run by another test
}

// By the lines of docs/engines.md, from the folder of examples that is installed. Its results are another test's.
TEST_F(Installed, LibraryForOnnxRuntimeIsBuiltFromTheInstalledExamples) {
  const fs::path source = prefix() / KILN_DOCDIR / "examples" / "onnxruntime";
  const fs::path build = work() / "onnxruntime";
  const Outcome built =
      run(std::string("CXX=" KILN_CXX " ") + KILN_CMAKE + " -S " + source.string() + " -B " + build.string() +
          " -DCMAKE_PREFIX_PATH=" + prefix().string() + " && " + KILN_CMAKE + " --build " + build.string());
  ASSERT_EQ(built.exit_code, 0) << built.text;
  const Outcome entry = run("nm -D --defined-only " + (build / "libkiln_onnxruntime.so").string());
  EXPECT_THAT(entry.text, HasSubstr(" T RegisterCustomOps\n"));
  const Outcome loaded = run("ldd " + (build / "libkiln_onnxruntime.so").string());
  EXPECT_THAT(loaded.text, HasSubstr(libraries().string() + "/libkiln.so.0"));
}

// Where nobody named a driver and there is no GPU, whoever waits is told why, once. The program shows it anyway.
TEST_F(Installed, ApplicationsSayThatTheEmulatorStandsInForAGpu) {
  const fs::path program = work() / "stand_in";
  expect_found_by_pkg_config(all_consumers[1], prefix(), program);
  const std::string command = "LD_LIBRARY_PATH=" + (prefix() / KILN_LIBDIR).string() + " " + program.string();
  const std::string notice = "kiln: no GPU is used: ";
  const Outcome forbidden = run_on_device("env KILN_DRIVER=cuda " + command);
  if (forbidden.exit_code == 0) GTEST_SKIP() << "there is a GPU";
  const Outcome unnamed = run_on_device("env -u KILN_DRIVER " + command);
  EXPECT_THAT(unnamed.text, HasSubstr(notice));
  EXPECT_EQ(unnamed.text.find(notice), unnamed.text.rfind(notice)) << "twice: " << unnamed.text;
  EXPECT_THAT(unnamed.text, HasSubstr("KILN_DRIVER=cuda makes this an error"));
  EXPECT_THAT(run_on_device("env KILN_DRIVER=emulator " + command).text, Not(HasSubstr(notice)));
  EXPECT_THAT(forbidden.text, HasSubstr("the CUDA driver could not be loaded"));
  const Outcome shown = run_on_device("env -u KILN_DRIVER " + (prefix() / "bin" / "kiln").string() +
                                      " explain 'softmax_forward x=f32:1x4'");
  EXPECT_THAT(shown.text, Not(HasSubstr(notice)));
}

TEST_F(Installed, DebianPackageServesConsumersFromWhereItIsUnpacked) {
  const fs::path usr = package_root() / "usr";
  expect_found_by_cmake(all_consumers[0], usr, work() / "deb_find_package");
  expect_found_by_pkg_config(all_consumers[1], usr, work() / "deb_pkg_config");
  expect_found_by_pkg_config(all_consumers[2], usr, work() / "deb_model");
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
}  // namespace kiln::install::consumer_test
