// Help, the manual page and completion know every command and option.
#include "manual.h"

#include <gmock/gmock.h>

#include <functional>

#include "command_line.h"
#include "commands.h"
#include "exit_codes.h"

namespace kiln::cli::manual_test {
namespace {

using testing::HasSubstr;

class ManualTest : public testing::Test {
 protected:
  ManualTest() { add_commands(app_, exit_code_); }

  using Visit = std::function<void(Command command, const std::string& path)>;
  void for_each_command(const Visit& visit) const { descend(app_, "", visit); }

  CommandLine line_{"kiln", std::string(program_description)};
  const Command app_ = line_.program();
  int exit_code_ = 0;

 private:
  static void descend(Command parent, const std::string& above, const Visit& visit) {
    for (const Command command : parent.visible_commands()) {
      visit(command, above + command.name());
      descend(command, above + command.name() + " ", visit);
    }
  }
};

std::string with_roff_hyphens(std::string text) {
  for (size_t at = 0; (at = text.find('-', at)) != std::string::npos; at += 2) text.insert(at, 1, '\\');
  return text;
}

TEST_F(ManualTest, PageHasEveryCommandOptionAndExitCode) {
  const std::string page = manual_page(app_);
  size_t commands = 0;
  for_each_command([&](Command command, const std::string& path) {
    ++commands;
    const size_t at = page.find(".SS \\&kiln " + path);
    ASSERT_NE(at, std::string::npos) << path;
    const std::string section = page.substr(at, page.find("\n.S", at + 1) - at);
    for (const Option option : command.visible_options()) {
      for (const std::string& name : option.spellings()) {
        EXPECT_THAT(section, HasSubstr(with_roff_hyphens(name))) << path;
      }
    }
    EXPECT_EQ(section.find(".nf") != std::string::npos, !command.footer().empty()) << path;
  });
  EXPECT_GE(commands, 18U);
  for (const ExitMeaning& meaning : exit_meanings()) EXPECT_THAT(page, HasSubstr(std::string(meaning.words)));
}

TEST_F(ManualTest, CompletionsHaveEveryCommandAndOption) {
  for (const std::string& script : {bash_completion(app_), zsh_completion(app_)}) {
    for_each_command([&](Command command, const std::string& path) {
      EXPECT_THAT(script, HasSubstr("    '" + path + "')")) << path;
      for (const Option option : command.visible_options()) {
        for (const std::string& name : option.spellings()) EXPECT_THAT(script, HasSubstr(name)) << path;
      }
    });
    EXPECT_THAT(script, HasSubstr("model random exhaustive local"));
    EXPECT_THAT(script, HasSubstr("conv_forward conv_backward_data")) << "the operations, of describe";
  }
}

TEST_F(ManualTest, EveryOptionIsDescribed) {
  for_each_command([&](Command command, const std::string& path) {
    EXPECT_NE(command.description(), "") << path;
    for (const Option option : command.visible_options()) EXPECT_NE(option.description(), "") << path;
    for (const Option argument : command.arguments()) EXPECT_NE(argument.description(), "") << path;
  });
}

}  // namespace
}  // namespace kiln::cli::manual_test
