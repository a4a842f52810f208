// Messages about a command line that is wrong, and `kiln help`.
#pragma once

#include <string>

#include "command_line.h"

namespace kiln::cli {

/// Message about a parse that failed: an option or command that nobody knows, with the one that was probably meant, or
/// an argument too many; else `what`.
std::string usage_message(Command app, const std::string& what);

/// Message about the first word of a command line, where that is no command of `app`.
std::string unknown_command_message(Command app, const std::string& word);

/// `kiln help [COMMAND...]`.
void add_help(Command app, int& exit_code);

}  // namespace kiln::cli
