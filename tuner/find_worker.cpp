#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/tuner/worker.h"

namespace kiln::tuner {
namespace {

namespace fs = std::filesystem;

constexpr const char* hint = "install the kiln program, or name it with KILN_WORKER";

bool is_executable(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

// Folders of the binary that contains this code and of the running program.
std::vector<fs::path> homes() {
  std::vector<fs::path> folders;
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&find_worker), &info) != 0 && info.dli_fname != nullptr) {
    folders.push_back(fs::absolute(info.dli_fname).parent_path());
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(program.parent_path());
  return folders;
}

}  // namespace

std::string find_worker(const std::optional<std::string>& named) {
  if (named) {
    if (is_executable(*named)) return *named;
    throw Error(ErrorCode::missing_library, fmt::format("KILN_WORKER={} is no program that can be executed", *named),
                "tuning runs in worker processes; name the kiln program");
  }
  std::vector<std::string> looked;
  for (const fs::path& home : homes()) {
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
