// Between the tuner's trials and the cache's records, which do not know each other.
#pragma once

#include <optional>
#include <string>

#include "kiln/cache/database.h"
#include "kiln/cache/record.h"
#include "kiln/device/device.h"
#include "kiln/generator/calibration.h"
#include "kiln/tuner/trial.h"

namespace kiln {

/// Share of its nominal figures that a device reaches, as `database` knows it; nothing if it holds nothing that this
/// library can read.
std::optional<Calibration> calibration_in(const cache::Database& database, const std::string& device_id);

cache::DeviceEntry device_entry(const device::DeviceInfo& info);

/// Returns the record of `trial`; nothing for outcomes that say nothing new (quarantined).
std::optional<cache::Record> record_of(const tuner::Trial& trial, const std::string& session);
/// The session of what is found outside of tuning, by checks of what is stored: it counts as this database's own.
inline constexpr const char* check_session = "check";
/// Stores what became of `trial` in `database`, which knows its device: its record and, where it crashed or hung, its
/// source's quarantine. Whether there was anything to store.
bool store_trial(cache::Database& database, const tuner::Trial& trial, const std::string& session = check_session);
/// The trial that `record` was made from, as far as it was stored; nothing if this library cannot read it.
std::optional<tuner::Trial> trial_of(const cache::Record& record);

}  // namespace kiln
