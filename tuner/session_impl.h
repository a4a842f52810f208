// The inside of a Session: keeps the compilers fed, checks and times the compiled variants, hands out trials.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job_run.h"
#include "kiln/tuner/session.h"

namespace kiln::tuner {

class Session::Impl {
 public:
  Impl(const Catalogue& catalogue, Laboratory& laboratory, SessionOptions options, SessionCallbacks callbacks);

  Quarantine& quarantine() { return quarantine_; }
  void run(WorkList& list);
  void stop() { stop_.store(true, std::memory_order_relaxed); }

 private:
  // Time.
  double elapsed() const { return clock_() - started_; }
  double budget_left() const { return options_.budget_seconds - elapsed(); }
  bool has_budget() const;
  bool stopped() const { return stop_.load(std::memory_order_relaxed); }
  bool is_over() const { return stopped() || budget_left() <= 0; }
  bool go_on();
  void wait_for(std::string task);

  void leave();

  // The life of a job.
  bool admit(const std::vector<WorkList::Item>& items);
  void assess(JobRun& run);
  JobRun* choose(bool ahead, const std::vector<const JobRun*>& but);
  double worth(const JobRun& run, size_t trials) const;
  void open_turn(JobRun& run) const;
  size_t open_runs() const;
  bool is_last() const;
  void take_turn(JobRun& run);
  bool advance(JobRun& run);
  void abandon(JobRun& run, JobStatus status);
  void conclude(JobRun& run);
  void fail(JobRun& run, std::string error);

  // Compiling ahead.
  bool feed(JobRun& run);
  bool feed_ahead(JobRun& run);
  void submit_trusted(JobRun& run);
  bool propose(JobRun& run, const Choice& choice);
  void submit(JobRun& run, Specimen specimen);
  std::optional<std::string> make_program(JobRun& run, Specimen& specimen) const;
  void receive(double wait_seconds);
  void take_report(JobRun& run, Specimen specimen, const CompileReport& report);
  void leave_out(JobRun& run, Specimen specimen);
  bool take_back(JobRun& run);
  void take_trusted_report(JobRun& run, const CompileReport& report);
  bool has_room(const JobRun& run) const;

  // Measuring.
  template <class Call>
  auto attempt(const std::string& task, double patience, const Call& call);
  double patience_with(const JobRun& run) const;
  bool begin(JobRun& run);
  void check_next(JobRun& run);
  void sample(JobRun& run, const Race::Turn& turn);
  void finish_rejected(JobRun& run);
  bool finish_survivors(JobRun& run);
  void finish_entrant(JobRun& run, size_t candidate, Outcome outcome);
  void finish(JobRun& run, Trial trial, bool is_new = true);
  void finish_failed(JobRun& run, Specimen specimen, const Failure& failure);

  void report(const JobRun& run, const Trial* last);
  WorkList::Count count();
  std::optional<double> remaining(const WorkList::Count& all) const;

  const Catalogue& catalogue_;
  Laboratory& laboratory_;
  const SessionOptions options_;
  const SessionCallbacks callbacks_;
  Quarantine quarantine_;
  std::atomic<bool> stop_{false};
  const std::function<double()> clock_;

  // There from run() on.
  Apparatus apparatus_;  // with the calibration of the options
  WorkList* list_ = nullptr;
  double started_ = 0;

  std::vector<std::unique_ptr<JobRun>> runs_;  // as they were taken; of those at once, by expected time saved
  JobRun* current_ = nullptr;                  // whose turn it is
  JobRun* on_device_ = nullptr;                // whose operands the laboratory holds
  size_t finished_trials_ = 0;
  SpecimenId next_id_ = 1;

  // The task that is waited for, and how it may end.
  std::string task_;
  double task_began_ = 0;                                      // in elapsed()
  double patience_ = std::numeric_limits<double>::infinity();  // seconds
  bool is_out_of_patience_ = false;
  bool is_cut_off_ = false;  // the session is over, and the task at work was ended
  std::optional<double> stop_seen_;
  double reported_ = 0;
};

}  // namespace kiln::tuner
