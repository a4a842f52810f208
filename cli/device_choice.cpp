#include "device_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "checks.h"
#include "command_line.h"
#include "database.h"
#include "kiln/base/error.h"
#include "kiln/tuner/worker.h"
#include "modelled_times.h"
#include "short_forms.h"

namespace kiln::cli {
namespace {

[[noreturn]] void refuse(const std::string& text) {
  throw Error(ErrorCode::invalid_argument, fmt::format("--device {} is not a device", text),
              "write an ordinal (0), a driver (cuda, emulator) or both (cuda:1); for several devices all, or ordinals "
              "with commas (0,2); `kiln devices` lists them");
}

struct Parts {
  std::optional<std::string> driver;
  bool all = false, is_list = false;
  std::vector<int> ordinals;
};

int parse_ordinal(const std::string& whole, std::string_view text) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < 0) refuse(whole);
  return value;
}

Parts parse(const std::string& text) {
  std::string_view rest = text;
  const size_t colon = rest.find(':');
  const std::string_view head = rest.substr(0, colon);
  Parts parts;
  if (head == "cuda" || head == "emulator") {
    parts.driver = std::string(head);
    rest = colon == std::string_view::npos ? "0" : rest.substr(colon + 1);
  }
  parts.all = rest == "all";
  parts.is_list = parts.all || rest.find(',') != std::string_view::npos;
  while (!parts.all) {
    const size_t comma = rest.find(',');
    const int ordinal = parse_ordinal(text, rest.substr(0, comma));
    if (std::find(parts.ordinals.begin(), parts.ordinals.end(), ordinal) != parts.ordinals.end()) {
      throw Error(ErrorCode::invalid_argument, fmt::format("--device {} names device {} twice", text, ordinal),
                  "name each device once");
    }
    parts.ordinals.push_back(ordinal);
    if (comma == std::string_view::npos) break;
    rest = rest.substr(comma + 1);
  }
  return parts;
}

void add_options(Command command, DeviceChoice& choice, const std::string& help) {
  command.add_option("--device", choice.text, help).type_name("DEVICE");
  command.add_flag("--verbose", choice.verbose,
                   "also print the device's identity, the driver, and the reason for this driver");
}

}  // namespace

void DeviceChoice::add_to(Command command) {
  add_options(command, *this, "device: an ordinal, cuda, cuda:1, emulator (default: the first GPU, else the emulator)");
}

void DeviceChoice::add_several_to(Command command) {
  add_options(command, *this,
              "device: an ordinal, cuda, cuda:1, emulator (default: the first GPU, else the emulator); or several at "
              "once: all, 0,2, cuda:all");
}

std::string DeviceChoice::heading(const device::DeviceInfo& device, const std::string& driver) const {
  return heading(device, driver, modelled_text(device.name));
}

std::string DeviceChoice::heading(const device::DeviceInfo& device, const std::string& driver,
                                  const std::string& modelled) const {
  std::string lines = device_text(device) + "\n";
  if (device.emulated) lines += modelled + "\n";
  if (verbose) lines += fmt::format("{}\n{}\n", device.id(), driver);
  return lines;
}

Environment DeviceChoice::environment() const {
  Environment environment = read_environment();
  if (const Parts parts = parse(text); parts.driver) environment.driver = parts.driver;
  environment.shows_device = true;
  return environment;
}

int DeviceChoice::ordinal() const {
  const Parts parts = parse(text);
  if (parts.is_list) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--device {} is not one device", text),
                "this command works on one: give its ordinal; `kiln tune` takes several");
  }
  return parts.ordinals.front();
}

ContextOptions DeviceChoice::context_options() const {
  ContextOptions options;
  options.environment = environment();
  options.device = ordinal();
  options.first_call = FirstCall::exact;
  return options;
}

bool DeviceChoice::is_list() const {
  return parse(text).is_list;
}

std::vector<DeviceChoice> DeviceChoice::each() const {
  Parts parts = parse(text);
  if (!parts.is_list) return {*this};
  const int count = device::Driver::open({environment().driver})->device_count();
  if (parts.all) {
    for (int ordinal = 0; ordinal < count; ++ordinal) parts.ordinals.push_back(ordinal);
  }
  std::vector<DeviceChoice> choices;
  for (const int ordinal : parts.ordinals) {
    if (ordinal >= count) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--device {}: there is no device {}, the driver has {}", text, ordinal, count),
                  "`kiln devices` lists them");
    }
    choices.push_back({parts.driver ? fmt::format("{}:{}", *parts.driver, ordinal) : std::to_string(ordinal), verbose});
  }
  return choices;
}

std::unique_ptr<tuner::Laboratory> DeviceChoice::laboratory(const checking::CheckOptions& check,
                                                            const std::optional<store::StoreOptions>& kernels,
                                                            const Limits& limits) const {
  const Environment environment = this->environment();
  tuner::WorkerPoolOptions pool;
  pool.worker = tuner::find_worker(environment.worker);
  pool.driver = environment.driver;
  pool.nvrtc = environment.nvrtc;
  pool.kernels = kernels;
  pool.device = ordinal();
  pool.check = check;
  pool.compile_lanes = limits.compile_lanes;
  if (limits.run) pool.run_limit = pool.begin_limit = *limits.run;
  if (limits.open) pool.open_limit = std::min(pool.open_limit, *limits.open);
  return tuner::make_worker_pool(std::move(pool));
}

void add_run_limit_to(Command command, std::optional<double>& seconds) {
  command
      .add_option("--run-limit", seconds,
                  "seconds after which a run on the device counts as hung (60; 300 for operands and the "
                  "trusted variant)")
      .check(number_above_zero());
}

}  // namespace kiln::cli
