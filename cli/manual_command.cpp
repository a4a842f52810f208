// kiln man, kiln completion: what packages install beside the program. Not for people.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>
#include <string>

#include "checks.h"
#include "commands.h"
#include "manual.h"

namespace kiln::cli {

void add_manual(CLI::App& app, int& exit_code) {
  CLI::App* man = app.add_subcommand("man", "print the manual page kiln(1)");
  man->group("");  // hidden
  man->callback([&app, &exit_code] {
    fmt::print("{}", manual_page(app));
    exit_code = success;
  });
  auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "print a script that completes command lines of kiln");
  completion->group("");  // hidden
  completion->add_option("shell", *shell, "bash or zsh")->required()->check(one_of({"bash", "zsh"}));
  completion->callback([&app, shell, &exit_code] {
    fmt::print("{}", *shell == "bash" ? bash_completion(app) : zsh_completion(app));
    exit_code = success;
  });
}

}  // namespace kiln::cli
