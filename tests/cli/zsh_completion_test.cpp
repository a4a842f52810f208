// The completion of zsh, as zsh itself executes it. Skipped where there is no zsh.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "program.h"

namespace kiln::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::SizeIs;

// Types each of its arguments and a tab into a zsh on a terminal, and prints what that offers: a word a line, after
// every argument a line `%end%`.
const char* const typist = R"zsh(
zmodload zsh/zpty || exit 1
zpty shell zsh -f -i
zpty -w shell "source ./shell.zsh"
zpty -r shell output '*%ready%*' || exit 1
for line in "$@"; do
  zpty -n -w shell "$line"$'\t'
  zpty -r shell output '*%end%*' || exit 1
  print -r -- "${${output#*%begin%}//$'\r'/}"
  zpty -n -w shell $'\x15'
done
zpty -d shell
)zsh";

// The shell that is typed into. compadd() is what every completion hands its words to.
const char* const shell = R"zsh(
PS1=
fpath=($PWD $fpath)
autoload -Uz compinit
compinit -u -D
zstyle ':completion:*' insert-tab false
bindkey '^I' complete-word
# A completion takes these out of their lists.
before() { print; print '%begin%'; compprefuncs=(before) }
after() { print; print '%end%'; comppostfuncs=(after) }
compprefuncs=(before)
comppostfuncs=(after)
compadd() {
  [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]] && { builtin compadd "$@"; return }
  local -a offered
  builtin compadd -A offered "$@"
  print -l -- '' $offered
}
print '%ready%'
)zsh";

class ZshCompletion : public ProgramTest {
 protected:
  void SetUp() override {
    if (run("/bin/sh", {"-c", "command -v zsh"}).exit_code != 0) GTEST_SKIP() << "there is no zsh on the path";
    write("typist.zsh", typist);
    write("shell.zsh", shell);
    write("_kiln", kiln({"completion", "zsh"}).out);
    write("layers.txt", "");
  }

  // What is offered for each line.
  std::vector<std::vector<std::string>> offers(const std::vector<std::string>& lines) {
    std::string command = "cd '" + path("") + "' && exec timeout 60 zsh -f typist.zsh";
    for (const std::string& line : lines) command += " '" + line + "'";
    const Outcome typed = run("/bin/sh", {"-c", command});
    EXPECT_EQ(typed.exit_code, 0) << typed.err;
    std::vector<std::vector<std::string>> result(1);
    std::string word;
    for (const char c : typed.out) {
      if (c != '\n') {
        word += c;
        continue;
      }
      if (word == "%end%")
        result.emplace_back();
      else if (!word.empty() && std::count(result.back().begin(), result.back().end(), word) == 0)
        result.back().push_back(word);
      word.clear();
    }
    result.pop_back();
    return result;
  }
};

TEST_F(ZshCompletion, OffersCommandsOptionsTheirWordsAndFiles) {
  const auto offered = offers({"kiln ", "kiln cache st", "kiln help cache d", "kiln tune --se", "kiln tune --search ",
                               "kiln tune --search=mod", "kiln tune --no-fuse --se", "kiln tune lay",
                               "kiln tune --wide --db lay", "kiln cache diff --c"});
  ASSERT_THAT(offered, SizeIs(10));
  EXPECT_THAT(offered[0], testing::IsSupersetOf({"tune", "run", "cache", "bundle", "help"}));
  EXPECT_THAT(offered[1], ElementsAre("stats"));
  EXPECT_THAT(offered[2], ElementsAre("diff"));
  EXPECT_THAT(offered[3], testing::UnorderedElementsAre("--search", "--seed"));
  EXPECT_THAT(offered[4], testing::UnorderedElementsAre("model", "random", "exhaustive", "local"));
  EXPECT_THAT(offered[5], ElementsAre("model"));
  EXPECT_THAT(offered[6], testing::UnorderedElementsAre("--search", "--seed")) << "a flag is followed by no value";
  EXPECT_THAT(offered[7], ElementsAre("layers.txt"));
  EXPECT_THAT(offered[8], ElementsAre("layers.txt"));
  EXPECT_THAT(offered[9], ElementsAre("--current"));
}

}  // namespace
}  // namespace kiln::cli
