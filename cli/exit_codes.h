// Exit codes of the program.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kiln::cli {

enum ExitCode : int {
  success = 0,
  failed_check = 1,
  usage = 2,
  no_device = 3,
  io = 4,
  not_kept = 5,
  interrupted = 130,  ///< 128 + SIGINT, as shells say it
  terminated = 143,   ///< 128 + SIGTERM
};

struct ExitMeaning {
  ExitCode code = success;
  std::string_view words;
};

/// Every code with what it means, for --help, the manual page and docs/command-line.md.
std::span<const ExitMeaning> exit_meanings();

}  // namespace kiln::cli
