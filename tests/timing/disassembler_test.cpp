#include "kiln/timing/disassembler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "kiln/base/error.h"
#include "kiln/timing/sass.h"
#include "machine_code_texts.h"

namespace kiln::timing::disassembler_test {
namespace {

TEST(Disassembler, SaysWhereItLookedAndWhatToInstall) {
  DisassemblerOptions options;
  options.program = "/nowhere/nvdisasm";
  EXPECT_THROW(Disassembler{options}, Error);
}

// Environment variables as they were, at the end.
class Variables {
 public:
  explicit Variables(const std::map<std::string, const char*>& values) {
    for (const auto& [name, value] : values) {
      const char* const was = std::getenv(name.c_str());
      before_[name] = was != nullptr ? std::optional<std::string>(was) : std::nullopt;
      set(name, value);
    }
  }
  ~Variables() {
    for (const auto& [name, value] : before_) set(name, value ? value->c_str() : nullptr);
  }

 private:
  static void set(const std::string& name, const char* value) {
    if (value != nullptr)
      setenv(name.c_str(), value, 1);
    else
      unsetenv(name.c_str());
  }

  std::map<std::string, std::optional<std::string>> before_;
};

TEST(Disassembler, NamesEachFolderWhereItLookedOnce) {
  if (std::filesystem::exists("/usr/local/cuda/bin/nvdisasm")) GTEST_SKIP() << "it is found here";
  const Variables variables(
      {{"PATH", "/first:.:relative/bin:/second:/first"}, {"CUDA_HOME", "/second/.."}, {"VIRTUAL_ENV", nullptr}});
  try {
    const Disassembler disassembler{DisassemblerOptions{}};
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "nvdisasm was not found in /first, /second, /second/../bin, /usr/local/cuda/bin");
  }
}

// Installs a program in a folder that stands in for nvdisasm and prints the folder's name for each cubin.
void install(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "nvdisasm") << "#!/bin/sh\n[ \"$1\" = --version ] && echo disassembler && exit\nprintf %s "
                                     << folder << "\n";
  std::filesystem::permissions(folder / "nvdisasm", std::filesystem::perms::owner_all);
}

TEST(Disassembler, IsTheFirstThatStandsInOneOfThePlaces) {
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / "places";
  std::filesystem::remove_all(root);
  const std::string first = root / "first", second = root / "second", home = root / "home", machine = root / "machine";
  const std::string path = first + ":" + second;
  const Variables variables({{"PATH", path.c_str()}, {"CUDA_HOME", home.c_str()}, {"VIRTUAL_ENV", machine.c_str()}});
  const auto found = [] { return Disassembler(DisassemblerOptions{}).text_of("a cubin"); };
  std::filesystem::create_directories(first + "/nvdisasm");  // a folder of that name
  const bool is_installed = std::filesystem::exists("/usr/local/cuda/bin/nvdisasm");
  for (const char* wheel : {"cuda_nvdisasm/bin", "cu13/bin"}) {
    const std::string place = machine + "/lib/python3.11/site-packages/nvidia/" + wheel;
    install(place);
    EXPECT_TRUE(is_installed || found() == place) << wheel;
  }
  install(home + "/bin");
  EXPECT_EQ(found(), home + "/bin");
  install(second);
  EXPECT_EQ(found(), second);
  std::ofstream(second + "/nvdisasm").close();
  std::filesystem::permissions(second + "/nvdisasm", std::filesystem::perms::owner_read);
  EXPECT_EQ(found(), home + "/bin") << "what cannot be run is no program";
  std::filesystem::remove(first + "/nvdisasm");
  install(first);
  EXPECT_EQ(found(), first);
}

class BrokenProgram : public testing::TestWithParam<const char*> {};

TEST_P(BrokenProgram, IsRefusedAtOnce) {
  DisassemblerOptions options;
  options.program = testing::TempDir() + "nvdisasm";
  std::ofstream(*options.program) << GetParam();
  std::filesystem::permissions(*options.program, std::filesystem::perms::owner_all);
  try {
    const Disassembler disassembler(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::missing_library);
    EXPECT_THAT(error.message(), testing::HasSubstr(*options.program));
    EXPECT_THAT(error.hint(), testing::HasSubstr("pip install"));
    const bool sleeps = std::string(GetParam()).find("sleep") != std::string::npos;
    EXPECT_EQ(error.message().find("did not end within 5 s") != std::string::npos, sleeps) << error.message();
  }
}

INSTANTIATE_TEST_SUITE_P(Disassembler, BrokenProgram,
                         testing::Values("#!/bin/sh\necho something else\n", "#!/bin/sh\nexit 1\n", "#!/bin/sh\n",
                                         "#!/bin/sh\nkill -9 $$\n", "no program", "#!/bin/sh\nexec sleep 60\n"));

// A program that stands in for nvdisasm, and does `work` when it is to disassemble.
DisassemblerOptions program_that(const std::string& work) {
  DisassemblerOptions options;
  options.program = testing::TempDir() + "nvdisasm";
  std::ofstream(*options.program) << "#!/bin/sh\n[ \"$1\" = --version ] && echo disassembler && exit\n" << work << "\n";
  std::filesystem::permissions(*options.program, std::filesystem::perms::owner_all);
  return options;
}

// A store keeps the text of each cubin, as each version of the program prints it.
TEST(Disassembler, RunsOnceForEachCubinThatItsStoreLacks) {
  const std::string folder = testing::TempDir() + "kept_texts", runs = testing::TempDir() + "runs";
  std::filesystem::remove_all(folder);
  const auto runs_of = [&](DisassemblerOptions options, const std::string& store, const char* cubin) {
    options.store_folder = store;
    Disassembler disassembler(options);
    std::filesystem::remove(runs);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(disassembler.text_of(cubin), std::string("text of ") + cubin);
    std::ifstream file(runs);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const DisassemblerOptions program = program_that("echo -n x >> " + runs + "; printf 'text of '; cat \"$3\"");
  EXPECT_EQ(runs_of(program, folder, "one"), "x");
  EXPECT_EQ(runs_of(program, folder, "one"), "") << "from the disk";
  EXPECT_EQ(runs_of(program, folder, "another"), "x");
  EXPECT_EQ(runs_of(program, "", "one"), "xx") << "without a store";
  std::ofstream(*program.program) << "#!/bin/sh\n[ \"$1\" = --version ] && echo a later disassembler && exit\n"
                                  << "echo -n y >> " << runs << "; printf 'text of '; cat \"$3\"\n";
  EXPECT_EQ(runs_of(program, folder, "one"), "y");
}

ErrorCode failure_of(Disassembler& disassembler, const std::string& cubin) {
  try {
    disassembler.text_of(cubin);
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::internal;
}

// A signal every five milliseconds that interrupts system calls, as a profiler sends.
class Ticks {
 public:
  Ticks() {
    struct sigaction ignoring {};
    ignoring.sa_handler = [](int) {};
    sigaction(SIGALRM, &ignoring, &before_);
    const itimerval often{{0, 5000}, {0, 5000}};
    setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~Ticks() {
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
};

TEST(Disassembler, SeesAFailureThoughSignalsArrive) {
  Disassembler disassembler(program_that("echo half of it; exec >&- 2>&-; sleep 0.2; exit 1"));
  const Ticks ticks;
  EXPECT_EQ(failure_of(disassembler, "a cubin"), ErrorCode::compile_failed);
}

// An application that ignores SIGCHLD: what was printed may be half of it.
TEST(Disassembler, TakesNoProgramThatEndedNobodyKnowsHowForOneThatSucceeded) {
  Disassembler disassembler(program_that("echo half of it; exit 1"));
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(failure_of(disassembler, "a cubin"), ErrorCode::compile_failed);
  std::signal(SIGCHLD, before);
}

TEST(Disassembler, LeavesNoFileWhereTheDiskIsFull) {
  Disassembler disassembler(program_that("echo code"));
  const std::string folder = testing::TempDir() + "full_disk";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const Variables variables(std::map<std::string, const char*>{{"TMPDIR", folder.c_str()}});
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{100, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const ErrorCode failure = failure_of(disassembler, std::string(1000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(failure, ErrorCode::io_error);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

// With the program itself, where the machine has it.
class Nvdisasm : public testing::Test {
 protected:
  void SetUp() override {
    try {
      DisassemblerOptions options;
      options.store_folder = testing::TempDir() + "timing_disassembly";
      std::filesystem::remove_all(options.store_folder);
      disassembler_.emplace(options);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  std::optional<Disassembler> disassembler_;
};

TEST_F(Nvdisasm, PrintsWhatTheTestsWereWrittenWith) {
  const std::string cubin = read_data("kernels_sm_80.cubin");
  const std::string text = disassembler_->text_of(cubin);
  EXPECT_EQ(disassembler_->text_of(cubin), text) << "from the store";
  const Sass now = parse_sass(text, "exchange"), then = parse_sass(read_data("kernels_sm_80.sass"), "exchange");
  ASSERT_EQ(now.instructions.size(), then.instructions.size());
  for (size_t i = 0; i < now.instructions.size(); ++i) {
    EXPECT_EQ(now.instructions[i].high, then.instructions[i].high);
    EXPECT_EQ(now.instructions[i].opcode, then.instructions[i].opcode);
  }
}

TEST_F(Nvdisasm, SaysWhatItDoesNotRead) {
  try {
    disassembler_->text_of("no cubin");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile_failed);
    EXPECT_THAT(error.what(), testing::HasSubstr("nvdisasm"));
  }
}

}  // namespace
}  // namespace kiln::timing::disassembler_test
