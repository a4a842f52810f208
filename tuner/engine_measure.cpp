// The half of the Engine that measures: check, then time, then hand out the trial.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine.h"

namespace kiln::tuner {
namespace {

// Failures that may be another's fault: an earlier variant's stray write, a busy machine. Tried again in a fresh
// process before they count.
bool deserves_retry(const std::optional<Failure>& failure) {
  return failure && (failure->outcome == Outcome::crashed || failure->outcome == Outcome::timed_out);
}

}  // namespace

void Engine::begin(JobRun& run) {
  std::optional<SpecimenId> trusted;
  if (run.trusted) trusted = run.trusted->id;
  CheckReport report = laboratory_.begin(run.job.request, trusted);
  if (deserves_retry(report.failure)) report = laboratory_.begin(run.job.request, trusted);
  run.begun = true;
  if (!report.failure) return;
  fail(run, run.trusted ? fmt::format("the trusted algorithm {} failed: {}", run.trusted->draft.choice.algorithm,
                                      report.failure->error)
                        : fmt::format("its operands could not be made: {}", report.failure->error));
}

void Engine::check_next(JobRun& run) {
  if (!run.begun) begin(run);
  if (run.ready.empty()) return;  // the job failed to begin
  Specimen specimen = std::move(run.ready.front());
  run.ready.pop_front();
  CheckReport report = laboratory_.check(specimen.id);
  if (deserves_retry(report.failure)) report = laboratory_.check(specimen.id);
  specimen.draft.check = report.verdict;
  if (report.failure) {
    finish_failed(run, std::move(specimen), *report.failure);
    return;
  }
  const size_t entrant = run.race.enter();
  run.racing.push_back(std::move(specimen));
  run.finished.push_back(false);
  if (apparatus_.deterministic_time) {
    run.race.add(entrant, report.seconds);
    finish_entrant(run, entrant, Outcome::timed);
  }
}

void Engine::sample(JobRun& run, size_t candidate, int count) {
  const SpecimenId id = run.racing[candidate].id;
  SampleReport report = laboratory_.sample(id, count);
  if (deserves_retry(report.failure)) report = laboratory_.sample(id, count);
  if (report.failure) {
    run.race.withdraw(candidate);
    run.finished[candidate] = true;
    finish_failed(run, run.racing[candidate], *report.failure);
    return;
  }
  for (const double seconds : report.seconds) run.race.add(candidate, seconds);
  finish_rejected(run);
}

void Engine::finish_rejected(JobRun& run) {
  for (size_t i = 0; i < run.racing.size(); ++i) {
    if (!run.finished[i] && run.race.is_rejected(i)) finish_entrant(run, i, Outcome::rejected_early);
  }
}

// Hands out everything that was timed and is not out yet; true if there was any.
bool Engine::finish_survivors(JobRun& run) {
  bool any = false;
  for (size_t i = 0; i < run.racing.size(); ++i) {
    if (run.finished[i] || run.race.samples(i).empty()) continue;
    finish_entrant(run, i, Outcome::timed);
    any = true;
  }
  return any;
}

void Engine::finish_entrant(JobRun& run, size_t candidate, Outcome outcome) {
  Trial trial = run.racing[candidate].draft;
  const Summary summary = run.race.summary(candidate);
  trial.outcome = outcome;
  trial.samples = run.race.samples(candidate);
  trial.median = summary.median;
  trial.spread = summary.half_width();
  run.finished[candidate] = true;
  // The leader stays loaded: later candidates are compared with it.
  finish(run, std::move(trial));
}

void Engine::finish_failed(JobRun& run, Specimen specimen, const Failure& failure) {
  laboratory_.discard(specimen.id);
  specimen.draft.outcome = failure.outcome;
  specimen.draft.error = failure.error;
  quarantine_.learn(specimen.draft);
  finish(run, std::move(specimen.draft));
}

void Engine::finish(JobRun& run, Trial trial, bool is_new) {
  if (is_new && trial.outcome != Outcome::quarantined && callbacks_.sink) callbacks_.sink(trial);
  run.search->observe(trial);
  run.result.trials.push_back(std::move(trial));
  ++finished_trials_;
  report(run, &run.result.trials.back());
}

}  // namespace kiln::tuner
