// kiln man, kiln completion: what packages install beside the program. Not for people.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "checks.h"
#include "command_line.h"
#include "commands.h"
#include "manual.h"

namespace kiln::cli {

void add_manual(Command app, int& exit_code) {
  const Command man = app.add_command("man", "print the manual page kiln(1)");
  man.hide();
  man.on_chosen([app, &exit_code] {
    fmt::print("{}", manual_page(app));
    exit_code = success;
  });
  auto shell = std::make_shared<std::string>();
  const Command completion = app.add_command("completion", "print a script that completes command lines of kiln");
  completion.hide();
  completion.add_option("shell", *shell, "bash or zsh").required().check(one_of({"bash", "zsh"}));
  completion.on_chosen([app, shell, &exit_code] {
    fmt::print("{}", *shell == "bash" ? bash_completion(app) : zsh_completion(app));
    exit_code = success;
  });
}

}  // namespace kiln::cli
