#include "context_tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/tuner/session.h"

namespace kiln {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

ContextTuner::ContextTuner(const TuningPolicy& policy, Tools tools) : policy_(policy), tools_(std::move(tools)) {
  if (policy_.mode == TuningMode::in_background) thread_ = std::thread([this] { work(); });
}

ContextTuner::~ContextTuner() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (running_ != nullptr) running_->stop();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ContextTuner::tune_now(std::span<const Request> requests) {
  // Without a wait for a session of others, which may take minutes.
  if (is_over_for(requests)) return;
  std::vector<tuner::Job> jobs;
  const std::lock_guard session(session_);
  {
    const std::lock_guard lock(mutex_);
    for (const Request& request : requests) {
      if (given_up_) return;
      if (seen_.insert(request.key()).second) jobs.push_back({request, 1});
    }
  }
  if (jobs.empty()) return;
  run_session(jobs);
  const std::lock_guard lock(mutex_);
  for (const tuner::Job& job : jobs) tuned_.insert(job.request.key());
}

// Whether no session of these will come, because each has had its own or there is no budget left.
bool ContextTuner::is_over_for(std::span<const Request> requests) {
  const std::lock_guard lock(mutex_);
  return given_up_ ||
         std::ranges::all_of(requests, [&](const Request& request) { return tuned_.contains(request.key()); });
}

void ContextTuner::enqueue(const Request& request) {
  {
    const std::lock_guard lock(mutex_);
    if (given_up_ || !seen_.insert(request.key()).second) return;
    queue_.push_back(request);
  }
  changed_.notify_all();
}

void ContextTuner::wait_until_idle() {
  std::unique_lock lock(mutex_);
  const auto is_idle = [this] { return queue_.empty() && !at_work_; };
  while (!changed_.wait_for(lock, std::chrono::seconds(1), is_idle)) {
    lock.unlock();
    const bool leave = stop_wanted();
    lock.lock();
    if (leave) return;
  }
}

bool ContextTuner::stop_wanted() const {
  return policy_.stop_wanted && policy_.stop_wanted();
}

// The background thread.
void ContextTuner::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const Request request = std::move(queue_.front());
    queue_.pop_front();
    at_work_ = true;
    lock.unlock();
    {
      const std::lock_guard session(session_);
      if (run_session({{request, 1}})) tools_.tuned(request);
    }
    lock.lock();
    at_work_ = false;
    changed_.notify_all();
  }
}

// True if it ran. Called with session_ held.
bool ContextTuner::run_session(const std::vector<tuner::Job>& jobs) {
  const double left = policy_.budget_seconds - spent_;
  if (left <= 0) {
    const std::lock_guard lock(mutex_);
    given_up_ = true;  // further requests are not even remembered
    return false;
  }
  const Clock::time_point start = Clock::now();
  bool ran = false;
  std::optional<std::string> fault;
  try {
    tuner::WorkerPoolOptions workers = tools_.workers;
    workers.open_limit = std::min(workers.open_limit, left);
    const std::unique_ptr<tuner::Laboratory> laboratory = tuner::make_worker_pool(workers);
    tuner::SessionOptions options;
    options.search.candidates = policy_.candidates;
    options.budget_seconds = left - seconds_since(start);
    Tuning tuning(tools_.catalogue, *laboratory, tools_.database, options, [&](const tuner::Progress&) {
      if (stop_wanted()) tuning.stop();
    });
    if (options.budget_seconds > 0 && set_running(&tuning)) {
      ran = true;  // also if it fails half-way: what it had found wrong by then is taken back
      tuning.run(jobs);
    }
  } catch (const std::exception& error) {
    if (seconds_since(start) < left) fault = error.what();  // else the budget ended, which is no fault
  }
  set_running(nullptr);
  spent_ += seconds_since(start);
  for (const tuner::Job& job : jobs) {
    tools_.learn(job.request);
    tools_.tell_others(job.request);
  }
  // Last: from then on nobody waits for this session, and what it found wrong must be known.
  if (fault) give_up(*fault);
  return ran;
}

// Makes the destructor able to stop the session; false if it must not start any more.
bool ContextTuner::set_running(Tuning* tuning) {
  const std::lock_guard lock(mutex_);
  running_ = tuning;
  return !stopping_;
}

void ContextTuner::give_up(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || std::exchange(given_up_, true)) return;
    queue_.clear();
  }
  tools_.announce(fmt::format("tuning has stopped, the results so far are used: {}", why));
}

}  // namespace kiln
