// kiln devices: what there is to run on.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate.h"
#include "command_line.h"
#include "commands.h"
#include "database.h"
#include "json.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/device/device.h"
#include "kiln/device/nvrtc.h"
#include "kiln/runtime/settings.h"
#include "modelled_times.h"
#include "output.h"
#include "table.h"

namespace kiln::cli {
namespace {

std::string gib(size_t bytes) {
  return fmt::format("{:.0f} GiB", static_cast<double>(bytes) / (1 << 30));
}

// A driver with its devices, or why there are none.
struct Listing {
  std::string driver;  // "cuda", "emulator"
  std::string remark;  // what was loaded, or why nothing was
  bool usable = false;
  std::vector<device::DeviceInfo> devices;
};

Listing list(const std::string& library) {
  Listing listing{library, {}, false, {}};
  try {
    const auto driver = device::Driver::open({library});
    for (int ordinal = 0; ordinal < driver->device_count(); ++ordinal) {
      listing.devices.push_back(device::Device(driver, ordinal).info());
    }
    listing.remark = driver->description();
    listing.usable = true;
  } catch (const Error& error) {
    listing.remark = fmt::format("none: {}", error.what());
  }
  return listing;
}

std::string_view time_kind_of(const device::DeviceInfo& info) {
  return info.emulated ? "modelled" : "measured";
}

// Driver of a command that names no device, and the reason.
std::string default_driver(const Environment& environment) {
  try {
    return device::Driver::open({environment.driver})->description();
  } catch (const Error& error) {
    return std::string("none: ") + error.what();
  }
}

Json json_of(const std::vector<Listing>& listings) {
  Json devices = Json::array();
  for (const Listing& listing : listings) {
    for (size_t i = 0; i < listing.devices.size(); ++i) {
      const device::DeviceInfo& info = listing.devices[i];
      devices.push_back({{"device", fmt::format("{}:{}", listing.driver, i)},
                         {"name", info.name},
                         {"compute_capability", fmt::format("{}.{}", info.cc_major, info.cc_minor)},
                         {"sms", info.sms},
                         {"memory_bytes", info.memory_bytes},
                         {"time", time_kind_of(info)},
                         {"modelled_by", modelled_json(info.name)},
                         {"id", info.id()}});
    }
  }
  return devices;
}

void print_devices(const std::vector<Listing>& listings, const Output& output) {
  Table table({"--device", "name", ">compute", ">SMs", ">memory", "times are"});
  for (const Listing& listing : listings) {
    for (size_t i = 0; i < listing.devices.size(); ++i) {
      const device::DeviceInfo& info = listing.devices[i];
      table.add({fmt::format("{}:{}", listing.driver, i), info.name, fmt::format("{}.{}", info.cc_major, info.cc_minor),
                 std::to_string(info.sms), gib(info.memory_bytes), std::string(time_kind_of(info))});
    }
  }
  if (!table.empty()) fmt::print("{}\n", output.print(table));
  for (const Listing& listing : listings) {
    for (const device::DeviceInfo& info : listing.devices) {
      if (info.emulated) fmt::print("{}: times are {}\n", info.name, modelled_text(info.name));
    }
  }
  for (const Listing& listing : listings) fmt::print("{}: {}\n", listing.driver, listing.remark);
}

int devices(const Output& output, bool verbose) {
  const Environment environment = read_environment();
  const KeptPlans kept = kept_plans(environment);
  const std::vector<Listing> listings = {list("cuda"), list("emulator")};
  const bool any = listings[0].usable || listings[1].usable;
  const std::string chosen = default_driver(environment);
  if (!output.json) {
    print_devices(listings, output);
    fmt::print("used unless --device says otherwise: {}\n", chosen);
  }
  const auto nvrtc = device::Nvrtc::open({environment.nvrtc});
  const std::string nvrtc_version = fmt::format("{}.{}", nvrtc->version().major, nvrtc->version().minor);
  if (output.json) {
    Json drivers = Json::object();
    for (const Listing& listing : listings) drivers.set(listing.driver, listing.remark);
    print_json({{"devices", json_of(listings)},
                {"drivers", drivers},
                {"default_driver", chosen},
                {"kept_plans", kept.plans},
                {"kept_plan_bytes", kept.bytes},
                {"nvrtc", {{"version", nvrtc_version}, {"path", nvrtc->path()}, {"archs", nvrtc->supported_archs()}}}});
  } else {
    fmt::print("NVRTC {}: {}\n", nvrtc_version, nvrtc->path());
    if (verbose) {
      fmt::print(
          "a Context keeps {} plans that nobody holds, with {} MiB of compiled code (KILN_KEPT_PLANS, "
          "KILN_KEPT_PLANS_MIB)\n",
          kept.plans, kept.bytes >> 20);
    }
  }
  return any ? success : no_device;
}

}  // namespace

void add_devices(Command app, int& exit_code) {
  struct Options {
    bool calibrate = false;
    CalibrateOptions calibration;
  };
  auto options = std::make_shared<Options>();
  const Command command = app.add_command("devices", "list the devices, the drivers behind them, and the compiler");
  const Option calibrate = command.add_flag("--calibrate", options->calibrate,
                                            "measure a device's bandwidths and rates, the basis of predictions");
  options->calibration.device.add_to(command);
  command
      .add_option("--db", options->calibration.database,
                  "database for the results (default: KILN_CACHE, else the user's cache folder)")
      .type_name("FILE");
  command
      .add_option("--card", options->calibration.card,
                  "write a card of the results, for emulated devices (KILN_EMULATOR_CARD)")
      .type_name("FILE");
  options->calibration.output.add_to(command);
  for (const char* name : {"--device", "--db", "--card"}) command.option(name).needs(calibrate);
  command.footer("Example: kiln devices --calibrate --device cuda:0");
  command.on_chosen([options, &exit_code] {
    exit_code = options->calibrate ? calibrate_device(options->calibration)
                                   : devices(options->calibration.output, options->calibration.device.verbose);
  });
}

}  // namespace kiln::cli
