// --device: which driver and which of its devices.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command_line.h"
#include "kiln/base/environment.h"
#include "kiln/checking/check.h"
#include "kiln/context.h"
#include "kiln/device/device.h"
#include "kiln/store/file_store.h"
#include "kiln/tuner/laboratory.h"

namespace kiln::cli {

/// `0`, `cuda`, `cuda:1`, `emulator`, `emulator:0`: an ordinal of the default driver, or of a named one. For commands
/// that work on several devices also `all`, `0,2`, `cuda:all`, `cuda:0,2`.
struct DeviceChoice {
  std::string text = "0";
  bool verbose = false;

  /// Adds --device and --verbose to a command.
  void add_to(Command command);
  /// The same, to a command that works on several devices.
  void add_several_to(Command command);
  /// First lines of a command's output: which device, and whether its times are modelled, by what and how well. With
  /// --verbose also by which driver, and why by that one. Ends with a line feed.
  std::string heading(const device::DeviceInfo& device, const std::string& driver) const;
  /// The same, with `modelled` in place of what the device's clock has for all launches: LaunchClocks::text().
  std::string heading(const device::DeviceInfo& device, const std::string& driver, const std::string& modelled) const;
  /// The process environment with the driver that was asked for. Throws Error as read_environment().
  Environment environment() const;
  /// Throws Error(invalid_argument), also for several devices.
  int ordinal() const;
  /// Options of a Context on it, with environment(). Its plans are of a layer's own kernels, whatever KILN_FIRST_CALL
  /// says: commands report times of these. Throws as the two above.
  ContextOptions context_options() const;
  /// Whether it is `all` or a list, be it of one device.
  bool is_list() const;
  /// Each of its devices. `all` asks the driver, and so does a list, which may not name one that is not there. Throws
  /// Error(invalid_argument), and as device::Driver::open().
  std::vector<DeviceChoice> each() const;
  /// Each as in WorkerPoolOptions if it is not given; seconds but for the last.
  struct Limits {
    /// Whatever runs on the device for more is taken for hung: the trusted variant, a check, a sample.
    std::optional<double> run{};
    std::optional<double> open{};  ///< A worker that does not start within it has failed.
    size_t compile_lanes = 0;      ///< 0: as many as there are hardware threads.
  };
  /// Worker processes on that device, which keep what they compile in `kernels`. Throws Error(missing_library,
  /// driver_error) if there is no worker or device.
  std::unique_ptr<tuner::Laboratory> laboratory(const checking::CheckOptions& check,
                                                const std::optional<store::StoreOptions>& kernels,
                                                const Limits& limits) const;
};

/// Adds --run-limit to a command; see DeviceChoice::Limits::run.
void add_run_limit_to(Command command, std::optional<double>& seconds);

}  // namespace kiln::cli
