#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/base/own_folders.h"
#include "kiln/tuner/worker.h"

namespace kiln::tuner {
namespace {

namespace fs = std::filesystem;

constexpr const char* hint = "install the kiln program, or name it with KILN_WORKER";

bool is_executable(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string find_worker(const std::optional<std::string>& named) {
  if (named) {
    if (is_executable(*named)) return *named;
    throw Error(ErrorCode::missing_library, fmt::format("KILN_WORKER={} is no program that can be executed", *named),
                "tuning runs in worker processes; name the kiln program");
  }
  std::vector<std::string> looked;
  for (const fs::path& home : own_folders()) {
    // Beside the binary, in ../bin as a build has it, and where an installation has it.
    for (const char* place : {".", "../bin", KILN_BINDIR_FROM_LIBDIR}) {
      const fs::path candidate = (home / place / "kiln").lexically_normal();
      if (is_executable(candidate)) return candidate.string();
      if (std::find(looked.begin(), looked.end(), candidate.string()) == looked.end()) {
        looked.push_back(candidate.string());
      }
    }
  }
  throw Error(
      ErrorCode::missing_library,
      fmt::format("tuning needs the kiln program to run as worker, which is not at {}", fmt::join(looked, ", ")), hint);
}

}  // namespace kiln::tuner
