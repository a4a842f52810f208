#include "kiln/runtime/records.h"

#include <algorithm>
#include <array>

#include "kiln/base/error.h"
#include "kiln/version.h"

namespace kiln {
namespace {

cache::Resources resources_of(const tuner::Trial& trial) {
  cache::Resources resources;
  if (trial.source_digest.empty()) return resources;  // nothing was compiled
  resources.registers = trial.resources.registers;
  resources.spill_bytes = trial.resources.spill_stores + trial.resources.spill_loads;
  resources.shared_bytes = trial.resources.static_shared + trial.dynamic_shared;
  return resources;
}

}  // namespace

std::optional<Calibration> calibration_in(const cache::Database& database, const std::string& device_id) {
  const std::optional<cache::DeviceCalibration> stored = database.calibration(device_id);
  return stored ? Calibration::parse(stored->figures) : std::nullopt;
}

cache::DeviceEntry device_entry(const device::DeviceInfo& info) {
  return {info.id(), info.name, info.cc_major, info.cc_minor, info.sms, info.emulated};
}

std::optional<cache::Record> record_of(const tuner::Trial& trial, const std::string& session) {
  if (trial.outcome == tuner::Outcome::quarantined) return std::nullopt;
  cache::Record record;
  static_cast<TrialFacts&>(record) = trial;
  if (record.samples.size() > cache::max_samples) record.samples.resize(cache::max_samples);
  record.algorithm = trial.choice.algorithm;
  record.config = trial.choice.config.print();
  record.outcome = std::string(tuner::to_string(trial.outcome));
  record.kind = trial.modelled ? cache::TimeKind::modelled : cache::TimeKind::measured;
  record.resources = resources_of(trial);
  record.kiln_version = std::string(version());
  record.session = session;
  record.created_ms = cache::utc_now_ms();
  return cache::with_clean_texts(std::move(record));
}

bool store_trial(cache::Database& database, const tuner::Trial& trial, const std::string& session) {
  const std::optional<cache::Record> record = record_of(trial, session);
  if (!record) return false;
  const std::array records = {*record};
  database.insert(records);
  if (tuner::is_suspect(trial.outcome) && !trial.source_digest.empty()) {
    database.add_quarantine({trial.source_digest, trial.device, trial.driver_version, trial.nvrtc_version,
                             record->outcome, record->created_ms});
  }
  return true;
}

std::optional<tuner::Trial> trial_of(const cache::Record& record) {
  const std::optional<tuner::Outcome> outcome = tuner::parse_outcome(record.outcome);
  if (!outcome) return std::nullopt;
  tuner::Trial trial;
  try {
    trial.choice = {record.algorithm, Config::parse(record.config)};
  } catch (const Error&) {
    return std::nullopt;
  }
  static_cast<TrialFacts&>(trial) = record;
  trial.outcome = *outcome;
  trial.modelled = record.kind == cache::TimeKind::modelled;
  const auto known = [](int64_t value) { return static_cast<int>(std::max<int64_t>(value, 0)); };
  trial.resources.registers = known(record.resources.registers);
  trial.resources.spill_stores = known(record.resources.spill_bytes);  // stored as one sum
  trial.resources.static_shared = known(record.resources.shared_bytes);
  return trial;
}

}  // namespace kiln
