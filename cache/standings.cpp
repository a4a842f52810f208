#include "standings.h"

#include <cstdlib>

#include "kiln/cache/machine_clock.h"

namespace kiln::cache {

bool Standings::is_same_architecture(const DeviceEntry& device) const {
  return device.emulated == device_.emulated && device.cc_major == device_.cc_major &&
         device.cc_minor == device_.cc_minor;
}

// Times that another clock gave are predictions at most.
bool Standings::has_same_clock(const DeviceEntry& device) const {
  if (!device.emulated) return true;
  const auto text = [](const DeviceEntry& one) {
    const std::optional<MachineClock> clock = machine_clock_of(one.name);
    return clock ? clock->text : std::string_view();
  };
  return text(device) == text(device_);
}

std::optional<Standing> Standings::standing_of(const DeviceEntry& device) const {
  if (device.id == device_.id) return Standing::measured_here;
  if (is_same_architecture(device) && has_same_clock(device)) return Standing::same_architecture;
  return predicts(device, device_) ? std::optional(Standing::predicted) : std::nullopt;
}

Precedence Standings::precedence(Standing standing, const WinnerSource& source, const DeviceEntry& device) const {
  const int clock = standing == Standing::predicted ? machine_clock_of(device.name)->version : 0;
  return {standing, source.origin, source.order, std::abs(device.sms - device_.sms), -clock, device.id};
}

Standing Standings::authority_of(const DeviceEntry& device) const {
  if (device.id == device_.id) return Standing::measured_here;
  return is_same_architecture(device) ? Standing::same_architecture : Standing::predicted;
}

bool Standings::serves(const DeviceEntry& device) const {
  return device.id == device_.id || is_same_architecture(device) || predicts(device, device_);
}

}  // namespace kiln::cache
