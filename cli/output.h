// How a command prints what it found: tables that fit the terminal, or JSON.
#pragma once

#include <string>

#include "command_line.h"
#include "json.h"
#include "table.h"

namespace kiln::cli {

struct Output {
  bool json = false;
  bool wide = false;

  /// Adds --json and --wide to a command.
  void add_to(Command command);
  /// Adds --json to a command that prints no table.
  Option add_json_to(Command command);
  /// As wide as the terminal that standard output is, by COLUMNS or what the terminal says; where it is none, and with
  /// --wide, a line a row.
  std::string print(const Table& table) const;
};

/// Writes a value to standard output, indented.
void print_json(const Json& value);

/// Sees that all that was printed has left the program: a full disk shows only then. Returns the exit code: as given,
/// or `io` after a message.
int finish_output(int exit_code);

}  // namespace kiln::cli
