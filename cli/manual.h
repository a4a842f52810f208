// The manual page and the completions of shells, made of the commands and options as the program itself knows them.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace kiln::cli {

/// The page kiln(1), for man.
std::string manual_page(const CLI::App& app);
/// A script for bash-completion: commands, options, the words that an option takes; else files.
std::string bash_completion(const CLI::App& app);
/// The same as `_kiln` for zsh.
std::string zsh_completion(const CLI::App& app);

}  // namespace kiln::cli
