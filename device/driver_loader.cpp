#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <type_traits>
#include <utility>
#include <vector>

#include "dynamic_library.h"
#include "kiln/device/driver.h"

namespace kiln::device {

using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the list spells its types unqualified

namespace {

constexpr std::string_view cuda_library = "libcuda.so.1";
constexpr std::string_view emulator_library = "libkiln_emulator.so";
/// Exported by the emulator besides the driver API; that is how it is told from a real driver.
constexpr const char* last_fault_symbol = "kiln_emulator_last_fault";

void load_driver_entry(const DynamicLibrary& library, const char* symbol, void** entry) {
  *entry = library.find(symbol);
  if (*entry != nullptr) return;
  throw Error(ErrorCode::missing_library, fmt::format("{} lacks the entry point {}", library.path(), symbol),
              "it is no CUDA driver, or one too old for Kiln: install the NVIDIA driver 520 (CUDA 11.8) or later");
}

DriverTable load_table(const DynamicLibrary& library) {
  DriverTable table;
#define KILN_LOAD_ENTRY(symbol, ...) load_driver_entry(library, #symbol, reinterpret_cast<void**>(&table.symbol));
  KILN_CUDA_DRIVER_ENTRY_POINTS(KILN_LOAD_ENTRY)
#undef KILN_LOAD_ENTRY
#define KILN_FIND_ENTRY(symbol, ...) table.symbol = reinterpret_cast<decltype(table.symbol)>(library.find(#symbol));
  KILN_CUDA_DRIVER_OPTIONAL_ENTRY_POINTS(KILN_FIND_ENTRY)
#undef KILN_FIND_ENTRY
  return table;
}

}  // namespace

/// The steps of Driver::open.
class DriverLoader {
 public:
  static std::shared_ptr<const Driver> cuda() {
    const DynamicLibrary library{std::string(cuda_library)};
    if (!library.loaded()) {
      throw Error(
          ErrorCode::missing_library, fmt::format("the CUDA driver could not be loaded: {}", library.error()),
          "install the NVIDIA driver (a container is given it: docs/environment.md), or use the emulated device "
          "with KILN_DRIVER=emulator");
    }
    return initialised(library, std::string(cuda_library));
  }

  /// `why` is empty or tells why the emulator stands in for a GPU.
  static std::shared_ptr<const Driver> emulator(const std::string& why) {
    std::vector<std::string> reasons;
    const std::array<std::string_view, 1> names = {emulator_library};
    const std::vector<std::filesystem::path> folders = own_library_folders();
    std::optional<DynamicLibrary> library = first_in_folders(names, folders, reasons);
    if (!library) {
      library.emplace(std::string(emulator_library));
      reasons.push_back(library->error());
    }
    if (!library->loaded()) {
      throw Error(ErrorCode::missing_library,
                  fmt::format("{}the emulator could not be loaded: {}", why.empty() ? "" : why + ", and ",
                              fmt::join(reasons, "; ")),
                  fmt::format("{} belongs beside the program or in ../lib from there; KILN_DRIVER may name its path",
                              emulator_library));
    }
    return initialised(
        *library, fmt::format("the emulator at {}{}", library->path(), why.empty() ? "" : ", because " + why), why);
  }

  static std::shared_ptr<const Driver> at_path(const std::string& path) {
    const DynamicLibrary library(path);
    if (!library.loaded()) {
      throw Error(ErrorCode::missing_library,
                  fmt::format("the driver library could not be loaded: {}", library.error()),
                  R"(give "cuda", "emulator" or the path of a driver library: ContextOptions::driver or KILN_DRIVER)");
    }
    return initialised(library, path);
  }

  static std::shared_ptr<const Driver> best() {
    try {
      return cuda();
    } catch (const Error& error) {
      return emulator(error.message());
    }
  }

 private:
  // Throws where the emulated device refuses a setting: otherwise it says so on standard error and gives cuInit a
  // number.
  static void require_settings(const DynamicLibrary& library) {
    auto* const refused_setting = reinterpret_cast<Driver::Tell*>(library.find("kiln_emulator_refused_setting"));
    const std::string refused = refused_setting == nullptr ? "" : refused_setting();
    if (refused.empty()) return;
    throw Error(ErrorCode::invalid_argument, refused,
                "docs/emulator.md has the variables that the emulated device reads");
  }

  static std::shared_ptr<const Driver> initialised(const DynamicLibrary& library, std::string description,
                                                   std::string stands_in_because = {}) {
    const DriverTable table = load_table(library);
    auto* const last_fault = reinterpret_cast<Driver::Tell*>(library.find(last_fault_symbol));
    std::shared_ptr<Driver> driver(new Driver(table, std::move(description), last_fault != nullptr));
    driver->last_fault_ = last_fault;
    driver->launches_ = reinterpret_cast<Driver::Tell*>(library.find("kiln_emulator_launches_json"));
    driver->not_timed_ = reinterpret_cast<Driver::Tell*>(library.find("kiln_emulator_not_timed"));
    driver->time_only_ = reinterpret_cast<int (*)(int)>(library.find("kiln_emulator_time_only"));
    driver->trace_launches_ = reinterpret_cast<void (*)(uint64_t)>(library.find("kiln_emulator_trace_launches"));
    driver->stands_in_because_ = std::move(stands_in_because);
    require_settings(library);
    if (const CUresult result = table.cuInit(0); result != CUDA_SUCCESS) {
      driver->fail(result, "cuInit", driver->description_, {},
                   driver->emulated_ ? "its message on standard error says why (docs/emulator.md)"
                                     : "nvidia-smi tells whether the driver works; KILN_DRIVER=emulator does without");
    }
    if (driver->device_count() == 0) {
      driver->fail(CUDA_ERROR_NO_DEVICE, "cuDeviceGetCount", driver->description_, {},
                   "no GPU is visible (see CUDA_VISIBLE_DEVICES); KILN_DRIVER=emulator uses the emulated device");
    }
    driver->description_ = fmt::format("CUDA {} by {}", cuda_version_text(driver->version()), driver->description_);
    return driver;
  }
};

std::shared_ptr<const Driver> Driver::open(const DriverChoice& choice) {
  if (!choice.library) return DriverLoader::best();
  if (*choice.library == "cuda") return DriverLoader::cuda();
  if (*choice.library == "emulator") return DriverLoader::emulator("");
  return DriverLoader::at_path(*choice.library);
}

}  // namespace kiln::device
