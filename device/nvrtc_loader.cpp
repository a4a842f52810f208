#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "dynamic_library.h"
#include "nvrtc_table.h"

namespace kiln::device {
namespace {

/// The sonames of CUDA 13, 12 and 11.2 to 11.8, and the name without a version of a toolkit's developer package.
constexpr std::array<std::string_view, 4> nvrtc_names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                                         "libnvrtc.so"};

constexpr std::string_view install_hint =
    "install the CUDA toolkit's NVRTC or run scripts/setup, or name the library by KILN_NVRTC";

DynamicLibrary load_chosen(const std::string& path) {
  DynamicLibrary library(path);
  if (library.loaded()) return library;
  throw Error(ErrorCode::missing_library, fmt::format("NVRTC could not be loaded: {}", library.error()),
              "KILN_NVRTC must be the path of libnvrtc.so");
}

DynamicLibrary load_any() {
  std::vector<std::string> reasons;
  if (auto own = first_in_folders(nvrtc_names, own_library_folders(), reasons)) return *std::move(own);
  for (const std::string_view name : nvrtc_names) {
    DynamicLibrary library{std::string(name)};
    if (library.loaded()) return library;
    reasons.push_back(library.error());
  }
  const std::array<std::filesystem::path, 1> toolkit = {"/usr/local/cuda/lib64"};
  if (auto found = first_in_folders(nvrtc_names, toolkit, reasons)) return *std::move(found);
  throw Error(ErrorCode::missing_library, fmt::format("NVRTC could not be loaded: {}", fmt::join(reasons, "; ")),
              std::string(install_hint));
}

void load_nvrtc_entry(const DynamicLibrary& library, const char* symbol, void** entry) {
  *entry = library.find(symbol);
  if (*entry != nullptr) return;
  throw Error(ErrorCode::missing_library, fmt::format("{} lacks the entry point {}", library.path(), symbol),
              "it is no NVRTC, or one older than 11.8");
}

/// When it compiles, NVRTC asks the loader for its second library by name alone, and gets one that is loaded already.
/// So one that stands beside it serves also where that folder is not on the loader's path. Where there is none, NVRTC
/// says so when it compiles. An NVRTC without a folder is one that the loader found, as it will the other.
void load_builtins_beside(const std::string& nvrtc, NvrtcVersion version) {
  if (nvrtc.find('/') == std::string::npos) return;
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::canonical(nvrtc, failed);
  if (failed) return;
  const std::string name = fmt::format("libnvrtc-builtins.so.{}.{}", version.major, version.minor);
  DynamicLibrary((real.parent_path() / name).string());
}

}  // namespace

std::shared_ptr<const Nvrtc> Nvrtc::open(const NvrtcChoice& choice) {
  const DynamicLibrary library = choice.library ? load_chosen(*choice.library) : load_any();
  auto table = std::make_unique<Table>();
#define KILN_LOAD_ENTRY(symbol, ...) load_nvrtc_entry(library, #symbol, reinterpret_cast<void**>(&table->symbol));
  KILN_NVRTC_ENTRY_POINTS(KILN_LOAD_ENTRY)
#undef KILN_LOAD_ENTRY
  std::shared_ptr<const Nvrtc> nvrtc(new Nvrtc(std::move(table), library.path()));
  load_builtins_beside(library.path(), nvrtc->version());
  return nvrtc;
}

}  // namespace kiln::device
