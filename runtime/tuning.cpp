#include "kiln/runtime/tuning.h"

#include <fmt/format.h>
#include <unistd.h>

#include <random>
#include <utility>

#include "kiln/base/digest.h"
#include "kiln/runtime/records.h"
#include "kiln/version.h"

namespace kiln {
namespace {

// Unique though several sessions of a process may begin at the same time.
std::string new_session_id() {
  return fmt::format("{}-{}-{:08x}", cache::utc_now_ms(), getpid(), std::random_device{}());
}

tuner::SessionOptions with_calibration(tuner::SessionOptions options, const std::optional<Calibration>& calibration) {
  options.calibration = calibration;
  return options;
}

// Digest of the jobs that a session tunes: equal plans can resume each other.
std::string plan_of(const std::vector<tuner::Job>& jobs) {
  Digest digest;
  for (const tuner::Job& job : jobs) digest.add(job.request.key()).add(std::to_string(job.count));
  return digest.hex();
}

}  // namespace

Tuning::Tuning(const Catalogue& catalogue, tuner::Laboratory& laboratory, cache::Database& database,
               tuner::SessionOptions options, std::function<void(const tuner::Progress&)> progress)
    : catalogue_(catalogue),
      database_(database),
      apparatus_(laboratory.apparatus()),
      session_id_(new_session_id()),
      calibration_(options.calibration ? options.calibration : calibration_in(database, apparatus_.device.id())),
      journal_(database, session_id_),
      session_(catalogue, laboratory, with_calibration(std::move(options), calibration_),
               {.sink = [this](const tuner::Trial& trial) { store_trial(database_, trial, session_id_); },
                .known = [this](const Request& request, const Choice& choice, const std::string& algorithm,
                                const std::string& source) { return known(request, choice, algorithm, source); },
                .progress =
                    [this, shown = std::move(progress)](const tuner::Progress& now) {
                      journal_.heard(now);
                      if (shown) shown(now);
                    },
                .concluded = [this](const tuner::JobResult& result) { journal_.concluded(result); },
                .idle = [this](std::optional<double> seconds_left) { journal_.idle(seconds_left); }}) {
  database_.put_device(device_entry(apparatus_.device));
  for (const cache::Quarantine& entry : database_.quarantine()) {
    session_.quarantine().add({entry.source_digest, entry.device, entry.driver_version, entry.nvrtc_version});
  }
}

std::vector<tuner::JobResult> Tuning::run(const std::vector<tuner::Job>& jobs, const std::optional<RunLabel>& label) {
  tuner::WorkList list(jobs);
  run(list, label);
  std::vector<tuner::JobResult> results = list.take_results();
  for (tuner::JobResult& result : results) consider_stored(result);
  return results;
}

void Tuning::run(tuner::WorkList& list, const std::optional<RunLabel>& label) {
  cache::Session session;
  session.id = session_id_;
  session.device = apparatus_.device.id();
  session.plan = plan_of(list.jobs());
  session.kiln_version = std::string(version());
  session.started_ms = cache::utc_now_ms();
  database_.begin_session(session);
  if (label) journal_.begin(*label, list.jobs());
  session_.run(list);
  journal_.end();
  database_.end_session(session_id_, cache::utc_now_ms());
}

// Takes the best of what this session tried and of what is stored and still valid.
void Tuning::consider_stored(tuner::JobResult& result) const {
  std::vector<tuner::Trial> trials = result.trials;
  for (const cache::Record& record : database_.records(result.request.key(), apparatus_.device.id())) {
    if (catalogue_.digest(record.algorithm) != record.algorithm_digest) continue;
    std::optional<tuner::Trial> trial = trial_of(record);
    if (trial && tuner::has_time(trial->outcome)) trials.push_back(std::move(*trial));
  }
  if (const tuner::Trial* best = tuner::winner(trials)) result.best = *best;
}

// Whether it crashed or hung, and was then taken out of quarantine to be tried again.
bool Tuning::was_let_go(const tuner::Trial& trial) {
  return tuner::is_suspect(trial.outcome) &&
         !session_.quarantine().contains(
             {trial.source_digest, trial.device, trial.driver_version, trial.nvrtc_version});
}

std::optional<tuner::Trial> Tuning::known(const Request& request, const Choice& choice,
                                          const std::string& algorithm_digest, const std::string& source_digest) {
  const std::string key = request.key();
  if (key != request_) {
    request_ = key;
    stored_.clear();
    for (const cache::Record& record : database_.records(key, apparatus_.device.id())) {
      if (std::optional<tuner::Trial> trial = trial_of(record)) {
        stored_.push_back({std::move(*trial), !record.session.empty()});
      }
    }
  }
  const Algorithm* algorithm = catalogue_.find(choice.algorithm);
  for (const StoredTrial& stored : stored_) {
    const tuner::Trial& trial = stored.trial;
    // Nobody has tested a user template but for its check, so a time counts only where this database's tuning took it.
    if (!stored.is_own && algorithm != nullptr && algorithm->user_template()) continue;
    const bool same = trial.choice == choice && trial.algorithm_digest == algorithm_digest &&
                      trial.source_digest == source_digest && trial.driver_version == apparatus_.driver_version &&
                      trial.nvrtc_version == apparatus_.nvrtc_version;
    if (!same || !tuner::is_conclusive(trial.outcome) || was_let_go(trial)) continue;
    ++reused_;
    return trial;
  }
  return std::nullopt;
}

}  // namespace kiln
