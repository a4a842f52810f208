// The half of a Session that measures: check, then time, then hand out the trial.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "session_impl.h"

namespace kiln::tuner {
namespace {

// So many variants of an algorithm that hang are enough: each costs twice the time limit.
constexpr int most_hangs = 2;

}  // namespace

// Calls the laboratory once, or twice if it fails in a way that deserves it; no more once the session is over.
template <class Call>
auto Session::Impl::attempt(const std::string& task, double patience, const Call& call) {
  const auto once = [&] {
    task_.clear();
    wait_for(task);
    patience_ = patience;
    is_out_of_patience_ = false;
    auto report = call();
    task_.clear();
    patience_ = std::numeric_limits<double>::infinity();
    if (report.failure && is_out_of_patience_) {
      report.failure->error =
          fmt::format("{} took more than {:.0f} s, which the budget does not allow", task, patience);
    }
    return report;
  };
  return in_two_attempts(once, [&] { return !is_cut_off_; });
}

// How long a variant may take within a budget: others of the request show what is usual, and one that hangs must not
// use it all up. Without a budget, or before one of them passed, the laboratory's own limits hold.
double Session::Impl::patience_with(const JobRun& run) const {
  constexpr double least = 5, times_the_longest = 20;
  if (!has_budget() || run.longest_check == 0) return std::numeric_limits<double>::infinity();
  return std::max(least, times_the_longest * run.longest_check);
}

// Makes `run` the one that the laboratory works on; false if that failed.
bool Session::Impl::begin(JobRun& run) {
  if (on_device_ == &run) return true;
  constexpr double least = 5;  // seconds; else, for both attempts, half of what is left, so that others get a turn
  std::optional<SpecimenId> trusted;
  if (run.trusted) trusted = run.trusted->id;
  const std::string task =
      run.trusted ? fmt::format("making operands and running the trusted {}", run.trusted->draft.choice.algorithm)
                  : "making operands";
  const CheckReport report =
      attempt(task, std::max(least, budget_left() / 4), [&] { return laboratory_.begin(run.subject(), trusted); });
  on_device_ = report.failure ? nullptr : &run;
  if (!report.failure) return true;
  if (is_cut_off_) return false;
  fail(run, run.trusted ? fmt::format("the trusted algorithm {} failed: {}", run.trusted->draft.choice.algorithm,
                                      report.failure->error)
                        : fmt::format("its operands could not be made: {}", report.failure->error));
  return false;
}

void Session::Impl::check_next(JobRun& run) {
  if (!begin(run)) return;
  Specimen specimen = std::move(run.ready.front());
  run.ready.pop_front();
  const std::string algorithm = specimen.draft.choice.algorithm;
  if (run.hangs[algorithm] >= most_hangs) {
    finish_failed(run, std::move(specimen),
                  {Outcome::quarantined, fmt::format("{} others of {} hung before", most_hangs, algorithm)});
    return;
  }
  const double began = elapsed();
  const CheckReport report =
      attempt("checking " + name_of(specimen), patience_with(run), [&] { return laboratory_.check(specimen.id); });
  specimen.draft.check = report.verdict;
  if (report.failure && is_cut_off_) {
    laboratory_.discard(specimen.id);  // nothing is known of it
    return;
  }
  if (report.failure) {
    finish_failed(run, std::move(specimen), *report.failure);
    return;
  }
  run.longest_check = std::max(run.longest_check, elapsed() - began);
  const size_t entrant = run.race.enter();
  run.racing.push_back(std::move(specimen));
  run.finished.push_back(false);
  if (apparatus_.deterministic_time) {
    sample(run, {entrant, 1});
    if (!run.finished[entrant] && !run.race.samples(entrant).empty()) finish_entrant(run, entrant, Outcome::timed);
  }
}

void Session::Impl::sample(JobRun& run, const Race::Turn& turn) {
  if (!begin(run)) return;
  const size_t candidate = turn.candidate;
  const SpecimenId id = run.racing[candidate].id;
  const SampleReport report = attempt("timing " + name_of(run.racing[candidate]), patience_with(run),
                                      [&] { return laboratory_.sample(id, turn.samples); });
  if (report.failure && is_cut_off_) return;  // the samples that it has count
  if (report.failure) {
    run.race.withdraw(candidate);
    run.finished[candidate] = true;
    finish_failed(run, run.racing[candidate], *report.failure);
    return;
  }
  for (const double seconds : report.seconds) run.race.add(candidate, seconds);
  finish_rejected(run);
}

void Session::Impl::finish_rejected(JobRun& run) {
  for (size_t i = 0; i < run.racing.size(); ++i) {
    if (!run.finished[i] && run.race.is_rejected(i)) finish_entrant(run, i, Outcome::rejected_early);
  }
}

// Hands out everything that was timed and is not out yet; true if there was any.
bool Session::Impl::finish_survivors(JobRun& run) {
  bool any = false;
  for (size_t i = 0; i < run.racing.size(); ++i) {
    if (run.finished[i] || run.race.samples(i).empty()) continue;
    finish_entrant(run, i, Outcome::timed);
    any = true;
  }
  return any;
}

void Session::Impl::finish_entrant(JobRun& run, size_t candidate, Outcome outcome) {
  Trial trial = run.racing[candidate].draft;
  const Summary summary = run.race.summary(candidate);
  trial.outcome = outcome;
  trial.samples = run.race.samples(candidate);
  trial.seconds = summary.median;
  trial.spread = summary.half_width();
  run.finished[candidate] = true;
  // The leader stays loaded: later candidates are compared with it.
  finish(run, std::move(trial));
}

void Session::Impl::finish_failed(JobRun& run, Specimen specimen, const Failure& failure) {
  laboratory_.discard(specimen.id);
  specimen.draft.outcome = failure.outcome;
  specimen.draft.error = failure.error;
  quarantine_.learn(specimen.draft);
  finish(run, std::move(specimen.draft));
}

void Session::Impl::finish(JobRun& run, Trial trial, bool is_new) {
  if (is_new && trial.outcome != Outcome::quarantined && callbacks_.sink) callbacks_.sink(trial);
  const bool was_tried = is_new && trial.outcome != Outcome::quarantined && trial.outcome != Outcome::refused;
  run.measured += was_tried ? 1 : 0;
  run.search->observe(trial, was_tried);
  const std::string& algorithm = trial.choice.algorithm;
  if (trial.outcome == Outcome::timed_out && ++run.hangs[algorithm] == most_hangs) run.search->drop(algorithm);
  run.result.trials.push_back(std::move(trial));
  ++finished_trials_;
  report(run, &run.result.trials.back());
}

}  // namespace kiln::tuner
