#include "device_choice.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "checks.h"
#include "database.h"
#include "kiln/base/error.h"
#include "kiln/tuner/worker.h"
#include "words.h"

namespace kiln::cli {
namespace {

[[noreturn]] void refuse(const std::string& text) {
  throw Error(ErrorCode::invalid_argument, fmt::format("--device {} is not a device", text),
              "write an ordinal (0), a driver (cuda, emulator) or both (cuda:1); `kiln devices` lists them");
}

struct Parts {
  std::optional<std::string> driver;
  int ordinal = 0;
};

int parse_ordinal(const std::string& whole, std::string_view text) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < 0) refuse(whole);
  return value;
}

Parts parse(const std::string& text) {
  const std::string_view view = text;
  const size_t colon = view.find(':');
  const std::string_view head = view.substr(0, colon);
  if (head == "cuda" || head == "emulator") {
    Parts parts{std::string(head), 0};
    if (colon != std::string_view::npos) parts.ordinal = parse_ordinal(text, view.substr(colon + 1));
    return parts;
  }
  return {std::nullopt, parse_ordinal(text, view)};
}

}  // namespace

void DeviceChoice::add_to(CLI::App& command) {
  command
      .add_option("--device", text,
                  "device: an ordinal, cuda, cuda:1, emulator (default: the first GPU, else the emulator)")
      ->type_name("DEVICE");
  command.add_flag("--verbose", verbose, "say more of the device: its identity, the driver, and why that driver");
}

std::string DeviceChoice::heading(const device::DeviceInfo& device, const std::string& driver) const {
  std::string lines = device_text(device) + "\n";
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
  return parse(text).ordinal;
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
  if (limits.run) pool.run_limit = pool.begin_limit = *limits.run;
  if (limits.open) pool.open_limit = std::min(pool.open_limit, *limits.open);
  return tuner::make_worker_pool(std::move(pool));
}

void add_run_limit_to(CLI::App& command, std::optional<double>& seconds) {
  command
      .add_option("--run-limit", seconds,
                  "seconds after which whatever runs on the device is taken for hung (60; 300 for operands and the "
                  "trusted variant)")
      ->check(number_above_zero());
}

}  // namespace kiln::cli
