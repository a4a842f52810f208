// The commands and options of the program as CLI11 knows them: for help, the manual page and completion.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace kiln::cli {

/// The commands below `command` that people use, in their order.
std::vector<const CLI::App*> visible_commands(const CLI::App& command);
/// The options that people use, arguments by position left out.
std::vector<const CLI::Option*> visible_options(const CLI::App& command);
/// The arguments by position.
std::vector<const CLI::Option*> arguments(const CLI::App& command);
/// "-o", "--output".
std::vector<std::string> spellings(const CLI::Option& option);
/// Whether it is followed by a value.
bool takes_value(const CLI::Option& option);

}  // namespace kiln::cli
