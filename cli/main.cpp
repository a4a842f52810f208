// The `kiln` program.
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <system_error>

#include "command_line.h"
#include "commands.h"
#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "output.h"
#include "usage.h"

namespace kiln::cli {
namespace {

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::parse_error:
      return usage;
    case ErrorCode::missing_library:
    case ErrorCode::driver_error:
      return no_device;
    case ErrorCode::io_error:
      return io;
    case ErrorCode::unsupported:
    case ErrorCode::out_of_memory:
    case ErrorCode::compile_failed:
    case ErrorCode::internal:
    case ErrorCode::not_finite:
      return failed_check;
  }
  return failed_check;
}

int run(int argc, char** argv) {
  CommandLine line("kiln", std::string(program_description));
  const Command program = line.program();
  int exit_code = success;
  add_commands(program, exit_code);
  if (argc > 1 && argv[1][0] != '-' && !program.command(argv[1])) {
    fmt::print(stderr, "kiln: {}\n", printable(unknown_command_message(program, argv[1])));
    return usage;
  }
  try {
    if (const std::optional<std::string> text = line.run(argc, argv)) fmt::print("{}", *text);
    return exit_code;
  } catch (const UsageError& error) {
    fmt::print(stderr, "kiln: {}\n", printable(usage_message(program, error.what())));
    return usage;
  } catch (const Error& error) {
    fmt::print(stderr, "kiln: {}: {}\n", to_string(error.code()), error.message());
    if (!error.hint().empty()) fmt::print(stderr, "      {}\n", error.hint());
    return exit_code_of(error.code());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "kiln: out of memory on this machine\n");
    return failed_check;
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) throw;
    fmt::print(stderr, "kiln: internal error: {}\n", printable(error.what()));
    return failed_check;
  }
}

}  // namespace
}  // namespace kiln::cli

int main(int argc, char** argv) {
  // A file that may grow no further is an error like a full disk, here and in workers.
  (void)std::signal(SIGXFSZ, SIG_IGN);
  try {
    return kiln::cli::finish_output(kiln::cli::run(argc, argv));
  } catch (const std::system_error& error) {  // from {fmt}, which could not print
    errno = error.code().value();
    return kiln::cli::finish_output(kiln::cli::io);
  }
}
