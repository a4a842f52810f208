#include "engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/generator/roofline.h"

namespace kiln::tuner {
namespace {

// The longest that the engine sleeps before it looks at the budget and at stop() again.
constexpr double patience_seconds = 0.2;

// Programs per compile lane that may be compiled or wait to be checked: enough that no lane ever waits for the device,
// few enough that little is thrown away when the budget ends.
constexpr size_t ahead_per_lane = 3;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Engine::Engine(const Catalogue& catalogue, Laboratory& laboratory, const Apparatus& apparatus,
               const SessionOptions& options, const SessionCallbacks& callbacks, Quarantine& quarantine,
               const std::atomic<bool>& stop)
    : catalogue_(catalogue),
      laboratory_(laboratory),
      options_(options),
      callbacks_(callbacks),
      quarantine_(quarantine),
      stop_(stop),
      apparatus_(apparatus),
      clock_(options.clock ? options.clock : steady_seconds) {}

std::vector<JobResult> Engine::run(const std::vector<Job>& jobs, const std::vector<size_t>& order) {
  started_ = clock_();
  for (const size_t index : order) {
    runs_.push_back(std::make_unique<JobRun>(jobs[index], options_.timing, apparatus_.deterministic_time));
  }
  for (current_ = 0; current_ < runs_.size(); ++current_) {
    JobRun& run = *runs_[current_];
    JobRun* next = current_ + 1 < runs_.size() ? runs_[current_ + 1].get() : nullptr;
    const double share = budget_left() / static_cast<double>(runs_.size() - current_);
    tune(run, next, elapsed() + share);
    conclude(run);
  }
  std::vector<JobResult> results(jobs.size());
  for (size_t i = 0; i < order.size(); ++i) results[order[i]] = std::move(runs_[i]->result);
  return results;
}

void Engine::prepare(JobRun& run) {
  const Request& request = run.job.request;
  try {
    run.heuristic = catalogue_.heuristic(request, apparatus_.target, apparatus_.figures);
    run.result.roofline_seconds = roofline_seconds(request, apparatus_.target, apparatus_.figures);
    Candidates candidates = catalogue_.candidates(request, apparatus_.target, apparatus_.figures);
    run.result.refused = std::move(candidates.refused);
    run.search = make_search(options_.search, candidates.ranked, *run.heuristic);
  } catch (const Error& error) {
    fail(run, error.what());
  }
}

void Engine::fail(JobRun& run, std::string error) {
  abandon(run, JobStatus::failed);
  run.result.error = std::move(error);
}

bool Engine::out_of_time(const JobRun& run, double deadline) const {
  if (budget_left() <= 0) return true;
  if (elapsed() < deadline) return false;
  // However small its share, a request gets the trial of its default choice: without it no gain is known.
  return std::any_of(run.result.trials.begin(), run.result.trials.end(),
                     [&](const Trial& trial) { return trial.choice == run.heuristic; });
}

void Engine::tune(JobRun& run, JobRun* next, double deadline) {
  if (stopped() || budget_left() <= 0) {
    abandon(run, stopped() ? JobStatus::stopped : JobStatus::out_of_time);
    return;
  }
  if (!run.prepared()) prepare(run);
  report(run, nullptr);
  while (run.result.status == JobStatus::finished) {
    if (stopped() || out_of_time(run, deadline)) {
      abandon(run, stopped() ? JobStatus::stopped : JobStatus::out_of_time);
      return;
    }
    if (!step(run, next)) return;
  }
}

// Does the next thing there is to do for `run`; false if there is nothing left. What occupies the device comes before
// what waits for compilers, and long measurements come last, when all candidates are there to be compared.
bool Engine::step(JobRun& run, JobRun* next) {
  const bool fed = feed(run);
  if (!fed && next != nullptr && run.compiling.size() < laboratory_.compile_lanes()) {
    if (!next->prepared()) prepare(*next);
    feed(*next);
  }
  receive(0);
  if (run.result.status == JobStatus::failed) return false;
  if (!run.ready.empty() && run.trusted_state != JobRun::Trusted::compiling) {
    check_next(run);
  } else if (const std::optional<size_t> newcomer = run.race.next_newcomer()) {
    sample(run, *newcomer, options_.timing.screening_samples);
  } else if (!run.compiling.empty() || !run.ready.empty()) {
    receive(patience_seconds);
  } else if (const std::optional<size_t> candidate = run.race.next()) {
    sample(run, *candidate, 1);
  } else {
    // A search that waited for results may go on now.
    return finish_survivors(run) || fed;
  }
  return true;
}

void Engine::abandon(JobRun& run, JobStatus status) {
  run.result.status = status;
  for (const auto& [id, specimen] : run.compiling) laboratory_.discard(id);
  for (const Specimen& specimen : run.ready) laboratory_.discard(specimen.id);
  run.compiling.clear();
  run.ready.clear();
}

void Engine::conclude(JobRun& run) {
  finish_survivors(run);
  for (const Specimen& specimen : run.racing) laboratory_.discard(specimen.id);
  if (run.trusted) laboratory_.discard(run.trusted->id);
  if (const Trial* best = winner(run.result.trials)) run.result.best = *best;
  for (const Trial& trial : run.result.trials) {
    if (run.heuristic && trial.choice == *run.heuristic) run.result.heuristic = trial;
  }
}

void Engine::report(const JobRun& run, const Trial* last) const {
  if (!callbacks_.progress) return;
  Progress progress;
  progress.job = current_;
  progress.jobs = runs_.size();
  progress.request = run.job.request.key();
  progress.candidates = run.result.trials.size();
  progress.planned = run.search ? run.search->planned() : 0;
  progress.elapsed = elapsed();
  progress.remaining = remaining(run);
  progress.last = last;
  progress.best = winner(run.result.trials);
  callbacks_.progress(progress);
}

std::optional<double> Engine::remaining(const JobRun& run) const {
  if (finished_trials_ == 0) return std::nullopt;
  const size_t planned = run.search ? run.search->planned() : options_.search.candidates;
  const size_t here = planned - std::min(planned, run.result.trials.size());
  const size_t later = planned * (runs_.size() - current_ - 1);
  const double each = elapsed() / static_cast<double>(finished_trials_);
  return std::max(std::min(each * static_cast<double>(here + later), budget_left()), 0.0);
}

// ---- compiling ahead ----

// Whether another program of `run` may be compiled. What is ahead for the next request never holds up this one.
bool Engine::has_room(const JobRun& run) const {
  const JobRun& current = *runs_[current_];
  const size_t held = &run == &current ? run.held() : run.held() + current.held();
  return held < ahead_per_lane * laboratory_.compile_lanes() + 1;
}

// Keeps the compilers busy with candidates of `run`. True if the search still gave a choice.
bool Engine::feed(JobRun& run) {
  bool gave = false;
  while (run.search && run.result.status == JobStatus::finished && has_room(run)) {
    const std::optional<Choice> choice = run.search->next();
    if (!choice) break;
    gave = true;
    if (propose(run, *choice)) submit_trusted(run);
  }
  return gave;
}

std::optional<std::string> Engine::make_program(const JobRun& run, Specimen& specimen) const {
  const Request& request = run.job.request;
  Trial& draft = specimen.draft;
  draft.request = request.key();
  draft.device_id = apparatus_.device.id();
  draft.modelled = apparatus_.deterministic_time;
  draft.driver_version = apparatus_.driver_version;
  draft.nvrtc_version = apparatus_.nvrtc_version;
  draft.algorithm_digest = catalogue_.digest(draft.choice.algorithm).value_or("");
  try {
    draft.estimate = catalogue_.estimate(request, apparatus_.target, apparatus_.figures, draft.choice).seconds;
    specimen.program = catalogue_.program(request, apparatus_.target, draft.choice);
  } catch (const Error& error) {
    return error.what();
  }
  draft.source_digest = specimen.program.digest();
  draft.workspace_bytes = specimen.program.workspace_bytes;
  draft.deterministic = specimen.program.deterministic;
  for (const Step& step : specimen.program.steps) {
    const auto* launch = std::get_if<Launch>(&step);
    if (launch == nullptr) continue;
    draft.dynamic_shared = std::max(draft.dynamic_shared, static_cast<int>(launch->dynamic_shared_bytes));
  }
  if (request.arithmetic.deterministic && !specimen.program.deterministic) {
    return "its result is not bitwise reproducible, which the request demands";
  }
  return std::nullopt;
}

// Takes a choice of the search up; true if it goes to the compilers.
bool Engine::propose(JobRun& run, const Choice& choice) {
  Specimen specimen;
  specimen.id = next_id_++;
  specimen.draft.choice = choice;
  if (const std::optional<std::string> refusal = make_program(run, specimen)) {
    finish_failed(run, std::move(specimen), {Outcome::refused, *refusal});
    return false;
  }
  const Trial& draft = specimen.draft;
  if (callbacks_.known) {
    std::optional<Trial> known = callbacks_.known(run.job.request, choice, draft.algorithm_digest, draft.source_digest);
    if (known) {
      known->estimate = draft.estimate;  // this library's, not stored
      finish(run, std::move(*known), false);
      return false;
    }
  }
  if (quarantine_.contains({draft.source_digest, draft.device_id, draft.driver_version, draft.nvrtc_version})) {
    finish_failed(run, std::move(specimen),
                  {Outcome::quarantined, "the same source crashed or hung twice before on this device"});
    return false;
  }
  laboratory_.submit(specimen.id, specimen.program);
  run.compiling.emplace(specimen.id, std::move(specimen));
  return true;
}

void Engine::submit_trusted(JobRun& run) {
  if (run.trusted_state != JobRun::Trusted::not_submitted) return;
  run.trusted_state = JobRun::Trusted::compiled;
  if (!laboratory_.needs_trusted(run.job.request)) return;
  const Request& request = run.job.request;
  Specimen& specimen = run.trusted.emplace();
  specimen.id = next_id_++;
  specimen.draft.choice.algorithm = catalogue_.trusted(request.operation).name();
  try {
    specimen.program = catalogue_.trusted_program(request, apparatus_.target);
  } catch (const Error& error) {
    fail(run,
         fmt::format("the trusted algorithm {} cannot serve it: {}", specimen.draft.choice.algorithm, error.what()));
    return;
  }
  run.trusted_state = JobRun::Trusted::compiling;
  laboratory_.submit(specimen.id, specimen.program);
}

void Engine::receive(double wait_seconds) {
  while (const std::optional<CompileReport> report = laboratory_.collect(wait_seconds)) {
    for (size_t i = current_; i < runs_.size() && i < current_ + 2; ++i) {
      JobRun& run = *runs_[i];
      if (run.trusted && run.trusted->id == report->id) take_trusted_report(run, *report);
      auto found = run.compiling.extract(report->id);
      if (!found.empty()) take_report(run, std::move(found.mapped()), *report);
    }
    wait_seconds = 0;  // then what else is there already
  }
}

void Engine::take_report(JobRun& run, Specimen specimen, const CompileReport& report) {
  const bool died = report.failure && report.failure->outcome != Outcome::compile_failed;
  if (died && specimen.compiles == 1) {
    ++specimen.compiles;
    laboratory_.submit(specimen.id, specimen.program);
    run.compiling.emplace(specimen.id, std::move(specimen));
    return;
  }
  specimen.draft.compile_seconds = report.seconds;
  specimen.draft.resources = report.resources;
  if (report.failure) {
    finish_failed(run, std::move(specimen), *report.failure);
  } else {
    run.ready.push_back(std::move(specimen));
  }
}

void Engine::take_trusted_report(JobRun& run, const CompileReport& report) {
  if (!report.failure) {
    run.trusted_state = JobRun::Trusted::compiled;
  } else if (report.failure->outcome != Outcome::compile_failed && run.trusted->compiles == 1) {
    ++run.trusted->compiles;
    laboratory_.submit(run.trusted->id, run.trusted->program);
  } else {
    fail(run, fmt::format("the trusted algorithm {} does not compile: {}", run.trusted->draft.choice.algorithm,
                          report.failure->error));
  }
}

}  // namespace kiln::tuner
