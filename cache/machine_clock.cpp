#include "kiln/cache/machine_clock.h"

#include <charconv>

namespace kiln::cache {
namespace {

constexpr std::string_view emulated_prefix = "Kiln emulated ";
constexpr std::string_view clock_prefix = "machine-code clock ";

void drop(std::string_view& text, std::string_view prefix) {
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
}

// "A100" of "NVIDIA A100", "T4" of "Tesla T4", "A100-SXM4-80GB" of "NVIDIA A100-SXM4-80GB".
std::string_view model_in(std::string_view name) {
  for (const std::string_view maker : {"NVIDIA ", "Tesla "}) drop(name, maker);
  return name;
}

}  // namespace

std::optional<MachineClock> machine_clock_of(std::string_view name) {
  if (name.starts_with("name=\"")) {
    name.remove_prefix(6);
    name = name.substr(0, name.find('"'));
  }
  if (!name.starts_with(emulated_prefix) || !name.ends_with(')')) return std::nullopt;
  name.remove_prefix(emulated_prefix.size());
  const size_t open = name.find(" (");
  if (open == std::string_view::npos) return std::nullopt;
  MachineClock clock;
  clock.card = name.substr(0, open);
  clock.text = name.substr(open + 2, name.size() - open - 3);
  if (clock.card.empty() || !clock.text.starts_with(clock_prefix)) return std::nullopt;
  const char* const end = clock.text.data() + clock.text.size();
  const auto [rest, error] = std::from_chars(clock.text.data() + clock_prefix.size(), end, clock.version);
  const bool read = error == std::errc() && clock.version > 0 && (rest == end || *rest == ' ');
  return read ? std::optional(clock) : std::nullopt;
}

std::optional<MachineClock> machine_clock_of(const DeviceEntry& device) {
  return device.emulated ? machine_clock_of(device.name) : std::nullopt;
}

bool predicts(const DeviceEntry& model, const DeviceEntry& device) {
  if (model.id == device.id || model.sms != device.sms) return false;
  if (model.cc_major != device.cc_major || model.cc_minor != device.cc_minor) return false;
  const std::optional<MachineClock> clock = machine_clock_of(model);
  if (!clock) return false;
  std::string_view name = device.name;
  if (device.emulated) {
    const std::optional<MachineClock> theirs = machine_clock_of(name);
    if (theirs && theirs->text == clock->text) return false;
    drop(name, emulated_prefix);
  }
  const std::string_view card = model_in(clock->card);
  name = model_in(name);
  if (!name.starts_with(card)) return false;
  const std::string_view rest = name.substr(card.size());  // "-SXM4-80GB", " PCIe": a variant; "G": another card
  return rest.empty() || rest.front() == ' ' || rest.front() == '-';
}

}  // namespace kiln::cache
