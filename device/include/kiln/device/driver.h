// A loaded CUDA driver: libcuda, the emulator, or a table that a test supplies.
#pragma once

#include <cuda_abi/driver.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kiln/base/error.h"
#include "kiln/device/driver_table.h"

namespace kiln::device {

/// Which driver to load.
struct DriverChoice {
  /// As Environment::driver: "cuda" (libcuda.so.1), "emulator" (libkiln_emulator.so), or the path of a driver library.
  /// Unset: libcuda if it is there and has a device, else the emulator.
  std::optional<std::string> library;
};

/// True for codes after which every call on the context reports the same code, because a kernel faulted (illegal
/// address, misaligned address, assert, ...) or the device did. Only a new process gets a working device again.
bool loses_context(cuda_abi::CUresult result);

/// A driver call that failed. code() is driver_error, or out_of_memory for CUDA_ERROR_OUT_OF_MEMORY.
class DriverError : public Error {
 public:
  DriverError(cuda_abi::CUresult result, std::string message, std::string hint = {});

  cuda_abi::CUresult result() const { return result_; }

  /// loses_context(result()).
  bool is_sticky() const { return loses_context(result_); }

 private:
  cuda_abi::CUresult result_;
};

/// A driver's entry points, ready to call (cuInit is done).
///
/// Immutable, hence safe to use from any thread. One process may hold several, e.g. libcuda and the emulator: each is
/// loaded with local symbols and nothing here is global. Share ownership with whatever uses handles of this driver; the
/// library itself stays mapped until the process ends, because drivers keep threads of their own.
class Driver {
 public:
  /// Loads the chosen driver and initialises it.
  ///
  /// The emulator is looked for beside the binary that contains Kiln and beside the running program, in each place
  /// also in ../lib, then on the loader's path. Throws Error(missing_library) naming the library that could not be
  /// loaded or the symbol that it lacks, and DriverError if cuInit fails or a driver asked for by name has no device.
  static std::shared_ptr<const Driver> open(const DriverChoice& choice);

  /// A driver made of `table`, which is used as it is; cuInit is not called. Entries may be null if never used, but
  /// version(), device_count() and the text of errors use theirs when they are there. `description` names it in errors.
  static std::shared_ptr<const Driver> from_table(const DriverTable& table, std::string description,
                                                  bool emulated = false);

  /// The entry points, for direct calls. Pass results to check().
  const DriverTable& calls() const { return table_; }

  /// An entry point that an older driver may lack: optional_call(calls().cuLaunchKernelEx, "cuLaunchKernelEx"). Throws
  /// Error(unsupported) where it is not there, naming it.
  template <class Entry>
  Entry* optional_call(Entry* entry, std::string_view name) const {
    if (entry == nullptr) refuse_missing(name);
    return entry;
  }

  bool is_emulated() const { return emulated_; }

  /// The loaded driver and the reason for it, for people: "CUDA 13.0 by libcuda.so.1", "CUDA 13.0 by the emulator at
  /// .../lib/ libkiln_emulator.so, because the CUDA driver could not be loaded: ...".
  const std::string& description() const { return description_; }

  /// Why the emulator was taken though nobody asked for it; empty for any other driver.
  const std::string& stands_in_because() const { return stands_in_because_; }

  /// The newest CUDA version that the driver supports, as it reports it: 1000 * major + 10 * minor.
  int version() const;

  int device_count() const;

  /// Throws a DriverError if `result` is not success. `call` is the entry point, `object` what it was called on:
  /// "cuModuleLoadDataEx of 'conv_direct' failed: CUDA_ERROR_INVALID_PTX, a PTX JIT compilation failed".
  /// With the emulator, a kernel's fault is followed by its report.
  void check(cuda_abi::CUresult result, std::string_view call, std::string_view object) const {
    if (result != cuda_abi::CUDA_SUCCESS) fail(result, call, object);
  }

  /// Throws the DriverError that check() throws, with `detail` (a log, say) and `hint` added.
  [[noreturn]] void fail(cuda_abi::CUresult result, std::string_view call, std::string_view object,
                         std::string_view detail = {}, std::string hint = {}) const;

  /// Counters that the emulator reports for the launches in the current context since the last call: a JSON array
  /// (docs/emulator.md, Counters). Empty on a real driver.
  std::string launches_json() const { return launches_ == nullptr ? "[]" : launches_(); }

  /// Why the emulator has no time of a launch in the current context: see Event::elapsed_ms(). Empty on a real driver,
  /// and if all have a time.
  std::string not_timed() const { return not_timed_ == nullptr ? "" : not_timed_(); }

  /// From now on (or no longer) what is enqueued in the current context is timed and not done. A kernel whose time
  /// depends on data is refused with CUDA_ERROR_NOT_SUPPORTED. False, without effect, but on an emulated device that
  /// tells times by machine code. See TimeOnly.
  bool time_only(bool on) const { return time_only_ != nullptr && time_only_(on ? 1 : 0) != 0; }

  /// Has the emulator record, for that text, what one SM does in each launch of the current context, for at most so
  /// many instructions; 0 ends it. Nothing on a real driver.
  void trace_launches(uint64_t instructions) const {
    if (trace_launches_ != nullptr) trace_launches_(instructions);
  }

  /// The driver's name and text for a code: "CUDA_ERROR_NOT_FOUND, named symbol not found".
  std::string describe(cuda_abi::CUresult result) const;

 private:
  friend class DriverLoader;
  /// The emulator's own exports return text: the report of the last fault, empty if there was none; launches.
  using Tell = const char*();

  Driver(const DriverTable& table, std::string description, bool emulated);
  [[noreturn]] void refuse_missing(std::string_view name) const;

  DriverTable table_;
  std::string description_;
  std::string stands_in_because_;
  bool emulated_;
  Tell* last_fault_ = nullptr;
  Tell* launches_ = nullptr;
  Tell* not_timed_ = nullptr;
  int (*time_only_)(int) = nullptr;
  void (*trace_launches_)(uint64_t instructions) = nullptr;
};

/// "13.0" for 13000.
std::string cuda_version_text(int version);

}  // namespace kiln::device
