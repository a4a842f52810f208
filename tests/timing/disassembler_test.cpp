#include "kiln/timing/disassembler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "kiln/base/error.h"
#include "kiln/timing/sass.h"
#include "support.h"

namespace kiln::timing {
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
  const Variables variables({{"PATH", "/first:/second:/first"}, {"CUDA_HOME", "/second/.."}, {"VIRTUAL_ENV", nullptr}});
  try {
    const Disassembler disassembler{DisassemblerOptions{}};
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "nvdisasm was not found in /first, /second, /second/../bin, /usr/local/cuda/bin");
  }
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
  }
}

INSTANTIATE_TEST_SUITE_P(Disassembler, BrokenProgram,
                         testing::Values("#!/bin/sh\necho something else\n", "#!/bin/sh\nexit 1\n", "#!/bin/sh\n",
                                         "#!/bin/sh\nkill -9 $$\n", "no program", "#!/bin/sh\nexec sleep 60\n"));

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
}  // namespace kiln::timing
