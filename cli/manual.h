// The manual page and the completions of shells, made of the commands and options as the program itself knows them.
#pragma once

#include <string>

#include "command_line.h"

namespace kiln::cli {

/// The page kiln(1), for man.
std::string manual_page(Command app);
/// A script for bash-completion: commands, options, the words that an option takes; else files.
std::string bash_completion(Command app);
/// The same as `_kiln` for zsh.
std::string zsh_completion(Command app);

}  // namespace kiln::cli
