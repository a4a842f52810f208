#include "driver/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <thread>

#include "kiln/base/nearest.h"
#include "kiln/base/variables.h"

namespace kiln::emulator {
namespace {

constexpr std::string_view prefix = "KILN_EMULATOR_";
constexpr std::array<std::string_view, 9> known_names = {
    "KILN_EMULATOR_DEVICE",         "KILN_EMULATOR_CHECK", "KILN_EMULATOR_THREADS", "KILN_EMULATOR_INSTRUCTION_LIMIT",
    "KILN_EMULATOR_COUNTED_BLOCKS", "KILN_EMULATOR_UNITS", "KILN_EMULATOR_CLOCK",   "KILN_EMULATOR_CARD",
    "KILN_EMULATOR_TENSOR"};

void refuse_unknown_names() {
  for (const std::string& name : variables_that_begin_with(prefix)) {
    if (std::find(known_names.begin(), known_names.end(), name) == known_names.end()) {
      const std::string listed = fmt::format("expected one of {}", fmt::join(known_names, ", "));
      throw SettingsError(
          fmt::format("unknown environment variable {}; {}", name, did_you_mean(name, known_names, listed)));
    }
  }
}

std::vector<const DeviceModel*> parse_devices(std::string_view text) {
  std::vector<const DeviceModel*> devices;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view key = text.substr(0, comma);
    const DeviceModel* model = find_device_model(key);
    if (model == nullptr) {
      std::vector<std::string_view> keys;
      for (const DeviceModel& known : device_models()) keys.push_back(known.key);
      throw SettingsError(
          fmt::format("KILN_EMULATOR_DEVICE: unknown device \"{}\"; expected one of {}, or several with "
                      "commas between",
                      key, fmt::join(keys, ", ")));
    }
    devices.push_back(model);
    if (comma == std::string_view::npos) return devices;
    text.remove_prefix(comma + 1);
  }
}

CheckLevel parse_check(std::string_view text) {
  if (text == "off") return CheckLevel::off;
  if (text == "bounds") return CheckLevel::bounds;
  if (text == "full") return CheckLevel::full;
  throw SettingsError(fmt::format("KILN_EMULATOR_CHECK={} is none of \"off\", \"bounds\" and \"full\"", text));
}

std::string parse_card_file(std::string_view text, ClockChoice clock) {
  if (text.empty()) throw SettingsError("KILN_EMULATOR_CARD is empty: give a file, or leave it unset");
  if (clock == ClockChoice::ptx) {
    throw SettingsError("KILN_EMULATOR_CARD has figures for machine code, which KILN_EMULATOR_CLOCK=ptx does not time");
  }
  return std::string(text);
}

ClockChoice parse_clock(std::string_view text) {
  if (text == "machine") return ClockChoice::machine;
  if (text == "ptx") return ClockChoice::ptx;
  throw SettingsError(fmt::format("KILN_EMULATOR_CLOCK={} is neither \"machine\" nor \"ptx\"", text));
}

TensorArithmetic parse_tensor(std::string_view text) {
  if (text == "chain") return TensorArithmetic::chain;
  if (text == "hardware") return TensorArithmetic::hardware;
  throw SettingsError(fmt::format("KILN_EMULATOR_TENSOR={} is neither \"chain\" nor \"hardware\"", text));
}

const UnitTable* parse_units(std::string_view text) {
  const std::vector<UnitSet> sets = unit_sets();
  const auto named = std::find_if(sets.begin(), sets.end(), [&](const UnitSet& set) { return set.name == text; });
  if (named != sets.end() && named->table != nullptr) return named->table;
  std::vector<std::string_view> runnable;
  for (const UnitTable* units : unit_tables()) runnable.emplace_back(units->name);
  throw SettingsError(fmt::format("KILN_EMULATOR_UNITS={} is {}; expected one of {}", text,
                                  named == sets.end() ? "no instruction set" : named->missing,
                                  fmt::join(runnable, ", ")));
}

const UnitTable* best_units() {
  const std::vector<const UnitTable*> runnable = unit_tables();
  if (!runnable.empty()) return runnable.front();
  throw SettingsError(
      "the emulated device was compiled for instruction sets that this CPU lacks: build it on this machine, or with "
      "CMake's KILN_EMULATOR_INSTRUCTION_SETS empty");
}

uint64_t parse_number(const char* name, std::string_view text, uint64_t lowest, uint64_t highest) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < lowest || value > highest) {
    throw SettingsError(fmt::format("{}={} is not a whole number from {} to {}", name, text, lowest, highest));
  }
  return value;
}

}  // namespace

Settings Settings::read() {
  refuse_unknown_names();
  return read(variable);
}

Settings Settings::read(const Lookup& lookup) {
  constexpr uint64_t most = uint64_t{1} << 62;
  const auto number = [&](const char* name, uint64_t standard, uint64_t lowest, uint64_t highest) {
    const char* text = lookup(name);
    return text == nullptr ? standard : parse_number(name, text, lowest, highest);
  };
  Settings result;
  const char* devices = lookup("KILN_EMULATOR_DEVICE");
  result.devices = devices == nullptr ? std::vector{&device_models().front()} : parse_devices(devices);
  if (const char* check = lookup("KILN_EMULATOR_CHECK")) result.check = parse_check(check);
  if (const char* clock = lookup("KILN_EMULATOR_CLOCK")) result.clock = parse_clock(clock);
  if (const char* card = lookup("KILN_EMULATOR_CARD")) result.card = parse_card_file(card, result.clock);
  if (const char* tensor = lookup("KILN_EMULATOR_TENSOR")) result.tensor = parse_tensor(tensor);
  const char* units = lookup("KILN_EMULATOR_UNITS");
  result.units = units == nullptr ? best_units() : parse_units(units);
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  result.threads = static_cast<unsigned>(number("KILN_EMULATOR_THREADS", cores, 1, 1024));
  result.instruction_limit = number("KILN_EMULATOR_INSTRUCTION_LIMIT", result.instruction_limit, 0, most);
  result.counted_blocks = number("KILN_EMULATOR_COUNTED_BLOCKS", result.counted_blocks, 0, most);
  return result;
}

}  // namespace kiln::emulator
