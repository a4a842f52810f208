// Between the tuner's trials and the cache's records, which do not know each other.
#pragma once

#include <optional>
#include <string>

#include "kiln/cache/record.h"
#include "kiln/device/device.h"
#include "kiln/tuner/trial.h"

namespace kiln {

cache::DeviceEntry device_entry(const device::DeviceInfo& info);

/// What is stored of `trial`; nothing for outcomes that say nothing new (quarantined).
std::optional<cache::Record> record_of(const tuner::Trial& trial, const std::string& session);
/// The trial that `record` was made from, as far as it was stored; nothing if this library cannot read it.
std::optional<tuner::Trial> trial_of(const cache::Record& record);

}  // namespace kiln
