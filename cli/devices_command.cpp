// kiln devices: what there is to run on.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "calibrate.h"
#include "commands.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/device/device.h"
#include "kiln/device/nvrtc.h"
#include "table.h"

namespace kiln::cli {
namespace {

std::string gib(size_t bytes) {
  return fmt::format("{:.0f} GiB", static_cast<double>(bytes) / (1 << 30));
}

// Adds the devices of a driver; says why there are none.
void list(const std::string& library, Table& table, std::string& remarks, size_t& found) {
  try {
    const auto driver = device::Driver::open({library});
    for (int ordinal = 0; ordinal < driver->device_count(); ++ordinal) {
      const device::DeviceInfo info = device::Device(driver, ordinal).info();
      table.add({fmt::format("{}:{}", library, ordinal), info.name, fmt::format("{}.{}", info.cc_major, info.cc_minor),
                 std::to_string(info.sms), gib(info.memory_bytes), info.emulated ? "modelled" : "measured"});
      ++found;
    }
    remarks += fmt::format("{}: {}\n", library, driver->description());
  } catch (const Error& error) {
    remarks += fmt::format("{}: none: {}\n", library, error.what());
  }
}

// What a command takes that names no device, and why.
std::string default_driver(const Environment& environment) {
  try {
    return device::Driver::open({environment.driver})->description();
  } catch (const Error& error) {
    return std::string("none: ") + error.what();
  }
}

int devices() {
  const Environment environment = Environment::read();
  Table table({"--device", "name", ">compute", ">SMs", ">memory", "times are"});
  std::string remarks;
  size_t found = 0;
  list("cuda", table, remarks, found);
  list("emulator", table, remarks, found);
  if (found > 0) fmt::print("{}\n", table.print());
  fmt::print("{}", remarks);
  fmt::print("used unless --device says otherwise: {}\n", default_driver(environment));
  const auto nvrtc = device::Nvrtc::open({environment.nvrtc});
  fmt::print("NVRTC {}.{}: {}\n", nvrtc->version().major, nvrtc->version().minor, nvrtc->path());
  return found > 0 ? success : no_device;
}

}  // namespace

void add_devices(CLI::App& app, int& exit_code) {
  struct Options {
    bool calibrate = false;
    CalibrateOptions calibration;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("devices", "list the devices, the drivers behind them, and the compiler");
  CLI::Option* calibrate = command->add_flag("--calibrate", options->calibrate,
                                             "measure what a device reaches, for predictions to be drawn from");
  options->calibration.device.add_to(*command);
  command->add_option("--db", options->calibration.database,
                      "where to keep it (default: KILN_CACHE, else the user's cache folder)");
  command->add_flag("--json", options->calibration.json, "print the figures as JSON");
  for (const char* name : {"--device", "--db", "--json"}) command->get_option(name)->needs(calibrate);
  command->footer("Example: kiln devices --calibrate --device cuda:0");
  command->callback(
      [options, &exit_code] { exit_code = options->calibrate ? calibrate_device(options->calibration) : devices(); });
}

}  // namespace kiln::cli
