// Compiling ahead: how candidates of a session become programs that can be checked.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/checking/trusted_program.h"
#include "session_impl.h"

namespace kiln::tuner {
namespace {

// Programs per compile lane that may be compiled or wait to be checked: enough that no lane ever waits for the device,
// few enough that little is thrown away when the budget ends.
constexpr size_t ahead_per_lane = 3;

}  // namespace

// Whether another program of `run` may be compiled. What is ahead for the next request never holds up this one.
bool Session::Impl::has_room(const JobRun& run) const {
  if (run.submitted >= run.allowed) return false;
  size_t held = run.held();
  if (&run != current_)
    held = std::accumulate(runs_.begin(), runs_.end(), size_t{0},
                           [](size_t sum, const auto& each) { return sum + each->held(); });
  return held < ahead_per_lane * laboratory_.compile_lanes() + 1;
}

// Keeps the compilers busy with candidates of `run`. True if the search still gave a choice.
bool Session::Impl::feed(JobRun& run) {
  bool gave = false;
  while (!run.ended && has_room(run)) {
    const std::optional<Choice> choice = run.search->next();
    if (!choice) break;
    gave = true;
    if (propose(run, *choice)) submit_trusted(run);
  }
  return gave;
}

// Gives compilers that would be idle what is likely to be wanted after the turn of `run`; where nothing else is left,
// more of `run`, and then it is true if the search still gave a choice.
bool Session::Impl::feed_ahead(JobRun& run) {
  const auto at_work = [&] {
    return std::accumulate(runs_.begin(), runs_.end(), size_t{0},
                           [](size_t sum, const auto& each) { return sum + each->compiling.size(); });
  };
  if (is_last()) {
    open_turn(run);
    return feed(run);
  }
  // A job more only when the compilers have all of this one, so that sessions which share the list end together.
  const bool has_all = has_room(run) || run.submitted >= run.allowed;
  if (has_all && open_runs() == 1 && at_work() < laboratory_.compile_lanes()) admit(list_->take());
  std::vector<const JobRun*> served{&run};
  while (at_work() < laboratory_.compile_lanes()) {
    JobRun* next = choose(true, served);
    if (next == nullptr) break;
    open_turn(*next);
    if (!feed(*next)) served.push_back(next);
  }
  return false;
}

std::optional<std::string> Session::Impl::make_program(JobRun& run, Specimen& specimen) const {
  const Request& request = run.item.job.request;
  Trial& draft = specimen.draft;
  draft = begin_trial(apparatus_, catalogue_, request, std::move(draft.choice));
  try {
    draft.estimate = run.variants->estimate(draft.choice, apparatus_.figures).seconds;
    specimen.programs = programs_of(*run.variants, run.result.stand_in, draft.choice);
  } catch (const Error& error) {
    return error.what();
  }
  add_program(draft, specimen.programs.program);
  if (request.arithmetic.deterministic && !specimen.programs.program.deterministic) {
    return "its result is not bitwise reproducible, which the request demands";
  }
  return std::nullopt;
}

// Takes a choice of the search up; true if it goes to the compilers.
bool Session::Impl::propose(JobRun& run, const Choice& choice) {
  Specimen specimen;
  specimen.id = next_id_++;
  specimen.draft.choice = choice;
  if (const std::optional<std::string> refusal = make_program(run, specimen)) {
    finish_failed(run, std::move(specimen), {Outcome::refused, *refusal});
    return false;
  }
  const Trial& draft = specimen.draft;
  if (callbacks_.known) {
    std::optional<Trial> known =
        callbacks_.known(run.item.job.request, choice, draft.algorithm_digest, draft.source_digest);
    if (known) {
      known->estimate = draft.estimate;  // this library's, not stored
      finish(run, std::move(*known), false);
      return false;
    }
  }
  if (quarantine_.contains({draft.source_digest, draft.device, draft.driver_version, draft.nvrtc_version})) {
    finish_failed(run, std::move(specimen),
                  {Outcome::quarantined, "the same source crashed or hung twice before on this device"});
    return false;
  }
  ++run.submitted;
  submit(run, std::move(specimen));
  return true;
}

void Session::Impl::submit(JobRun& run, Specimen specimen) {
  laboratory_.submit(specimen.id, specimen.programs);
  run.compiling.emplace(specimen.id, std::move(specimen));
}

void Session::Impl::submit_trusted(JobRun& run) {
  if (run.trusted_state != JobRun::Trusted::not_submitted) return;
  run.trusted_state = JobRun::Trusted::compiled;
  const Request request = run.subject().checked();
  if (!laboratory_.needs_trusted(request)) return;
  Specimen& specimen = run.trusted.emplace();
  specimen.id = next_id_++;
  specimen.draft.choice.algorithm = catalogue_.trusted(request.operation).name();
  try {
    specimen.programs.program = checking::trusted_program(catalogue_, request, apparatus_.target);
  } catch (const Error& error) {
    fail(run,
         fmt::format("the trusted algorithm {} cannot serve it: {}", specimen.draft.choice.algorithm, error.what()));
    return;
  }
  run.trusted_state = JobRun::Trusted::compiling;
  laboratory_.submit(specimen.id, specimen.programs);
}

void Session::Impl::receive(double wait_seconds) {
  while (const std::optional<CompileReport> report = laboratory_.collect(wait_seconds)) {
    for (const auto& run : runs_) {
      if (run->trusted && run->trusted->id == report->id) take_trusted_report(*run, *report);
      auto found = run->compiling.extract(report->id);
      if (!found.empty()) take_report(*run, std::move(found.mapped()), *report);
    }
    wait_seconds = 0;  // then what else is there already
  }
}

void Session::Impl::take_report(JobRun& run, Specimen specimen, const CompileReport& report) {
  const bool died = report.failure && report.failure->outcome != Outcome::compile_failed;
  if (died && specimen.compiles == 1) {
    ++specimen.compiles;
    submit(run, std::move(specimen));
    return;
  }
  specimen.draft.compile_seconds = report.seconds;
  specimen.draft.resources = report.resources;
  // The default choice is what runs where nothing was measured, and what gains are told by: it gets a time in any case.
  const bool spills = report.resources.spill_stores + report.resources.spill_loads > 0;
  const bool is_default = run.first && specimen.draft.choice == run.first->choice;
  if (report.failure) {
    finish_failed(run, std::move(specimen), *report.failure);
  } else if (spills && !is_default) {
    leave_out(run, std::move(specimen));
  } else {
    run.ready.push_back(std::move(specimen));
  }
}

// Ends the trial of a variant whose registers spill, which another takes the place of, and keeps it in case that none
// has a time.
void Session::Impl::leave_out(JobRun& run, Specimen specimen) {
  const auto& resources = specimen.draft.resources;
  Trial trial = specimen.draft;
  trial.outcome = Outcome::spills;
  trial.error = fmt::format("a thread stores {} bytes of registers to memory and loads {}", resources.spill_stores,
                            resources.spill_loads);
  const auto behind = std::find_if(run.spilling.begin(), run.spilling.end(),
                                   [&](const Specimen& each) { return each.draft.estimate > specimen.draft.estimate; });
  run.spilling.insert(behind, std::move(specimen));
  finish(run, std::move(trial));
}

// Where the search has no more and no variant has a time, the best one of those that were left out becomes a candidate
// again; true if there is one.
bool Session::Impl::take_back(JobRun& run) {
  if (run.spilling.empty() || run.submitted >= run.allowed || winner(run.result.trials) != nullptr) return false;
  const Choice& choice = run.spilling.front().draft.choice;
  std::erase_if(run.result.trials, [&](const Trial& trial) { return trial.choice == choice; });
  run.ready.push_back(std::move(run.spilling.front()));
  run.spilling.pop_front();
  return true;
}

void Session::Impl::take_trusted_report(JobRun& run, const CompileReport& report) {
  if (!report.failure) {
    run.trusted_state = JobRun::Trusted::compiled;
  } else if (report.failure->outcome != Outcome::compile_failed && run.trusted->compiles == 1) {
    ++run.trusted->compiles;
    laboratory_.submit(run.trusted->id, run.trusted->programs);
  } else {
    fail(run, fmt::format("the trusted algorithm {} does not compile: {}", run.trusted->draft.choice.algorithm,
                          report.failure->error));
  }
}

}  // namespace kiln::tuner
