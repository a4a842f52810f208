#include "output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "command_line.h"
#include "commands.h"
#include "json.h"
#include "kiln/base/variables.h"

namespace kiln::cli {
namespace {

constexpr size_t usual_width = 80;

size_t terminal_width() {
  if (isatty(STDOUT_FILENO) == 0) return Table::unlimited;
  if (const char* columns = variable("COLUMNS")) {
    const std::string_view text = columns;
    size_t width = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), width);
    if (error == std::errc() && stop == text.data() + text.size() && width > 0) return width;
  }
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return usual_width;
}

}  // namespace

Option Output::add_json_to(Command command) {
  return command.add_flag("--json", json, "print JSON (docs/command-line.md says its shape)");
}

void Output::add_to(Command command) {
  command.add_flag("--wide", wide, "each row on one line, in a terminal of any width").excludes(add_json_to(command));
}

std::string Output::print(const Table& table) const {
  return table.print(wide ? Table::unlimited : terminal_width());
}

void print_json(const Json& value) {
  fmt::print("{}\n", value.text(2));
}

int finish_output(int exit_code) {
  const int error_before = errno;  // that of the print that failed, if one did
  const bool failed_before = std::ferror(stdout) != 0;
  if (!failed_before && std::fflush(stdout) == 0) return exit_code;
  fmt::print(stderr, "kiln: standard output could not be written: {}\n",
             std::strerror(failed_before ? error_before : errno));
  return io;
}

}  // namespace kiln::cli
