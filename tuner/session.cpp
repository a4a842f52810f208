#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/generator/roofline.h"
#include "session_impl.h"

namespace kiln::tuner {
namespace {

// The longest that a session sleeps before it looks at the budget and at stop() again.
constexpr double patience_seconds = 0.2;

// How long the task at work may go on after the session is over.
constexpr double grace_seconds = 2;

// Between two reports while nothing finishes.
constexpr double report_interval = 1;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Candidates to try for a request.
struct Prospects {
  Candidates candidates;
  Candidate first;
  std::unique_ptr<Search> search;
};

// Throws Error if nothing serves it.
Prospects prospects_of(Variants& variants, const DeviceFigures& figures, const SearchOptions& search) {
  Candidates candidates = variants.candidates(figures);
  if (candidates.ranked.empty()) (void)variants.heuristic(figures);  // why
  const Candidate* fallback = candidates.best_guess();
  Candidate first = fallback != nullptr ? *fallback : candidates.ranked.front();
  std::unique_ptr<Search> made = make_search(search, candidates.ranked, first.choice);
  return {std::move(candidates), std::move(first), std::move(made)};
}

}  // namespace

size_t planned_candidates(const Catalogue& catalogue, const Request& request, const Apparatus& apparatus,
                          const SearchOptions& search) {
  try {
    Variants variants = catalogue.on(request, apparatus.target);
    return prospects_of(variants, apparatus.figures, search).search->planned();
  } catch (const Error&) {
    return 0;  // the session that takes it says why
  }
}

Session::Session(const Catalogue& catalogue, Laboratory& laboratory, SessionOptions options, SessionCallbacks callbacks)
    : impl_(std::make_unique<Impl>(catalogue, laboratory, std::move(options), std::move(callbacks))) {}

Session::~Session() = default;

Quarantine& Session::quarantine() {
  return impl_->quarantine();
}

std::vector<JobResult> Session::run(const std::vector<Job>& jobs) {
  WorkList list(jobs);
  run(list);
  return list.take_results();
}

void Session::run(WorkList& list) {
  impl_->run(list);
}

void Session::stop() {
  impl_->stop();
}

Session::Impl::Impl(const Catalogue& catalogue, Laboratory& laboratory, SessionOptions options,
                    SessionCallbacks callbacks)
    : catalogue_(catalogue),
      laboratory_(laboratory),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      clock_(options_.clock ? options_.clock : steady_seconds) {}

// Gives the list back what this session did not finish, however run() ends.
void Session::Impl::leave() {
  laboratory_.watch({});
  std::vector<WorkList::Item> unfinished;
  for (const auto& run : runs_) {
    if (!run->ended) unfinished.push_back(run->item);
  }
  list_->leave(unfinished);
}

void Session::Impl::run(WorkList& list) {
  struct Leaving {
    Impl& session;
    ~Leaving() { session.leave(); }
  };
  apparatus_ = laboratory_.apparatus();
  if (options_.calibration) apparatus_.figures.calibration = *options_.calibration;
  list_ = &list;
  const Leaving whatever_happens{*this};
  started_ = clock_();
  laboratory_.watch([this] { return go_on(); });
  while (!is_over()) {
    JobRun* run = choose(false, {});
    const bool all_begun = run == nullptr || (has_budget() && run->first_trial() != nullptr);
    if (all_begun && admit(list_->take())) continue;
    if (run != nullptr) {
      take_turn(*run);
    } else if (!list_->wait(patience_seconds)) {
      break;
    } else if (callbacks_.idle && elapsed() - reported_ >= report_interval) {
      reported_ = elapsed();
      callbacks_.idle(remaining(list_->counts()));
    }
  }
  admit(list_->take_rest());  // what nobody got to
  for (const auto& run : runs_) {
    if (run->ended) continue;
    abandon(*run, stopped() ? JobStatus::stopped : JobStatus::out_of_time);
    conclude(*run);
  }
}

// Takes jobs up, those first that save most; ties by key. What nothing serves comes last. False if there are none.
bool Session::Impl::admit(const std::vector<WorkList::Item>& items) {
  if (items.empty()) return false;
  const size_t first = runs_.size();
  for (const WorkList::Item& item : items) {
    runs_.push_back(std::make_unique<JobRun>(item, options_.timing, apparatus_.deterministic_time));
    assess(*runs_.back());
  }
  std::stable_sort(runs_.begin() + static_cast<std::ptrdiff_t>(first), runs_.end(), [&](const auto& a, const auto& b) {
    const double saves_a = a->search ? worth(*a, 0) : -1, saves_b = b->search ? worth(*b, 0) : -1;
    return saves_a != saves_b ? saves_a > saves_b : a->item.job.request.key() < b->item.job.request.key();
  });
  for (size_t i = 0; i < items.size(); ++i) runs_[first + i]->number = items[i].number;
  return true;
}

bool Session::Impl::has_budget() const {
  return std::isfinite(options_.budget_seconds);
}

// Asked by the laboratory while a task takes long: whether to go on.
bool Session::Impl::go_on() {
  if (current_ != nullptr && elapsed() - reported_ >= report_interval) report(*current_, nullptr);
  if (stopped() && !stop_seen_) stop_seen_ = elapsed();
  is_cut_off_ = budget_left() < -grace_seconds || (stop_seen_ && elapsed() - *stop_seen_ > grace_seconds);
  is_out_of_patience_ = !is_cut_off_ && elapsed() - task_began_ > patience_;
  return !is_cut_off_ && !is_out_of_patience_;
}

void Session::Impl::wait_for(std::string task) {
  if (task == task_) return;
  task_ = std::move(task);
  task_began_ = elapsed();
}

void Session::Impl::assess(JobRun& run) {
  const Request& request = run.item.job.request;
  try {
    run.result.roofline_seconds = roofline_seconds(request, apparatus_.target, apparatus_.figures);
    run.variants.emplace(catalogue_, request, apparatus_.target);
    Prospects prospects = prospects_of(*run.variants, apparatus_.figures, options_.search);
    if (const Candidate* fallback = prospects.candidates.best_guess()) run.result.fallback = *fallback;
    run.first = std::move(prospects.first);
    run.search = std::move(prospects.search);
    run.result.refused = std::move(prospects.candidates.refused);
    run.result.stand_in = laboratory_.stand_in(request);
  } catch (const Error& error) {
    fail(run, error.what());
  }
}

void Session::Impl::fail(JobRun& run, std::string error) {
  abandon(run, JobStatus::failed);
  run.result.error = std::move(error);
  conclude(run);
}

// Worth of the next trial behind `trials` of them.
double Session::Impl::worth(const JobRun& run, size_t trials) const {
  Prospect prospect;
  prospect.count = run.item.job.count;
  const Trial* best = winner(run.result.trials);
  prospect.seconds = best != nullptr ? best->seconds : run.first->estimate.seconds;
  prospect.roofline_seconds = run.result.roofline_seconds;
  prospect.trials = trials;
  if (run.measured > 0) {
    prospect.cost = run.spent / static_cast<double>(run.measured);
  } else if (finished_trials_ > 0) {
    prospect.cost = elapsed() / static_cast<double>(finished_trials_);
  }
  constexpr double least_cost = 1e-6;  // a clock may be coarse
  prospect.cost = std::max(prospect.cost, least_cost);
  return worth_of(prospect);
}

// The request to measure next, or, if programs for it are to be compiled `ahead`, to compile for; null if nothing is
// left to do, or no time. `but`: these are not meant.
JobRun* Session::Impl::choose(bool ahead, const std::vector<const JobRun*>& but) {
  if (is_over()) return nullptr;
  JobRun* best = nullptr;
  double most = 0;
  for (const auto& run : runs_) {
    if (run->ended || std::find(but.begin(), but.end(), run.get()) != but.end()) continue;
    // However small its share, a request gets the trial of its default choice: without it no gain is known.
    const bool lacks_default = run->first_trial() == nullptr && !(ahead && run->submitted > 0);
    if (!has_budget() || lacks_default) return run.get();
    const double worth_now = worth(*run, run->result.trials.size() + (ahead ? run->held() : 0));
    if (best != nullptr && worth_now <= most) continue;
    best = run.get();
    most = worth_now;
  }
  return best;
}

// Allows a request as many programs as its turn is long. What was compiled ahead of the turn is part of it; the last
// turn has no end.
void Session::Impl::open_turn(JobRun& run) const {
  if (!has_budget() || is_last()) {
    run.allowed = std::numeric_limits<size_t>::max();
  } else if (run.submitted >= run.allowed && run.held() == 0) {
    run.allowed = run.submitted + std::max<size_t>(run.result.trials.size(), 1);
  }
}

size_t Session::Impl::open_runs() const {
  return static_cast<size_t>(std::count_if(runs_.begin(), runs_.end(), [](const auto& run) { return !run->ended; }));
}

bool Session::Impl::is_last() const {
  return open_runs() == 1 && list_->waiting() == 0;
}

void Session::Impl::take_turn(JobRun& run) {
  current_ = &run;
  const double began = elapsed();
  task_.clear();
  open_turn(run);
  report(run, nullptr);
  while (!run.ended && !is_over()) {
    if (advance(run)) continue;
    if (!run.ended && run.submitted < run.allowed) {  // the search has no more
      run.ended = true;
      conclude(run);
    }
    break;
  }
  run.spent += elapsed() - began;
}

// Does the next thing there is to do for `run`; false if there is nothing left. What occupies the device comes before
// what waits for compilers, and long measurements come last, when all candidates are there to be compared.
bool Session::Impl::advance(JobRun& run) {
  const bool fed = feed(run) || feed_ahead(run);
  receive(0);
  if (run.ended) return false;
  if (!run.ready.empty() && run.trusted_state != JobRun::Trusted::compiling) {
    check_next(run);
  } else if (const std::optional<Race::Turn> screening = run.race.next_of_screening()) {
    sample(run, *screening);
  } else if (!run.compiling.empty() || !run.ready.empty()) {
    const Specimen& first = run.compiling.empty() ? *run.trusted : run.compiling.begin()->second;
    wait_for("compiling " + name_of(first));
    (void)go_on();  // tells where it stands
    receive(patience_seconds);
  } else if (const std::optional<Race::Turn> turn = run.race.next()) {
    sample(run, *turn);
  } else {
    // A search that waited for results may go on now.
    return finish_survivors(run) || fed || take_back(run);
  }
  return true;
}

void Session::Impl::abandon(JobRun& run, JobStatus status) {
  run.ended = true;
  run.result.status = status;
  for (const auto& [id, specimen] : run.compiling) laboratory_.discard(id);
  for (const Specimen& specimen : run.ready) laboratory_.discard(specimen.id);
  run.compiling.clear();
  run.ready.clear();
}

// The last of every run: what is known of it goes to the list.
void Session::Impl::conclude(JobRun& run) {
  run.race.close();
  finish_rejected(run);
  finish_survivors(run);
  for (const Specimen& specimen : run.racing) laboratory_.discard(specimen.id);
  for (const Specimen& specimen : run.spilling) laboratory_.discard(specimen.id);
  if (run.trusted) laboratory_.discard(run.trusted->id);
  if (const Trial* best = winner(run.result.trials)) run.result.best = *best;
  if (const Trial* first = run.first_trial(); first != nullptr && run.result.fallback) run.result.heuristic = *first;
  if (callbacks_.concluded) callbacks_.concluded(run.result);
  list_->deliver(run.item, run.result);
}

void Session::Impl::report(const JobRun& run, const Trial* last) {
  if (!callbacks_.progress) return;
  Progress progress;
  progress.job = run.number;
  progress.jobs = list_->size();
  const WorkList::Count all = count();
  progress.all_candidates = all.tried;
  progress.all_planned = all.planned;
  progress.request = run.item.job.request.key();
  progress.candidates = run.result.trials.size();
  progress.planned = run.search ? run.search->planned() : 0;
  progress.elapsed = reported_ = elapsed();
  progress.remaining = remaining(all);
  progress.waiting_for = task_;
  if (!task_.empty()) progress.waiting_seconds = elapsed() - task_began_;
  progress.last = last;
  progress.best = winner(run.result.trials);
  callbacks_.progress(progress);
}

// Tells the list how far the jobs of this session are, and gives back how far all are.
WorkList::Count Session::Impl::count() {
  std::vector<WorkList::Count> counts;
  for (const auto& run : runs_) {
    const size_t tried = run->result.trials.size();
    const size_t planned = run->ended || !run->search ? tried : std::max(tried, run->search->planned());
    counts.push_back({run->item.index, tried, planned});
  }
  list_->note(counts);
  return list_->counts();
}

// By what the sessions of the list have taken for a candidate together.
std::optional<double> Session::Impl::remaining(const WorkList::Count& all) const {
  if (all.tried == 0) return std::nullopt;
  const double each = elapsed() / static_cast<double>(all.tried);
  return std::max(std::min(each * static_cast<double>(all.planned - all.tried), budget_left()), 0.0);
}

double worth_of(const Prospect& prospect) {
  const double to_gain = std::max(prospect.seconds - prospect.roofline_seconds, 0.0);
  const double chance = 1.0 / (static_cast<double>(prospect.trials) + 1);
  return static_cast<double>(prospect.count) * to_gain * chance / prospect.cost;
}

}  // namespace kiln::tuner
