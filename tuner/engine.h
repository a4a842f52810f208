// Engine: what a Session does in run(): keeps the compilers fed, checks and times what they deliver, hands out trials.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job_run.h"

namespace kiln::tuner {

class Engine {
 public:
  Engine(const Catalogue& catalogue, Laboratory& laboratory, const Apparatus& apparatus, const SessionOptions& options,
         const SessionCallbacks& callbacks, Quarantine& quarantine, const std::atomic<bool>& stop);

  /// Results in the order of `jobs`; tuned in the order of `order`.
  std::vector<JobResult> run(const std::vector<Job>& jobs, const std::vector<size_t>& order);

 private:
  double elapsed() const { return clock_() - started_; }
  double budget_left() const { return options_.budget_seconds - elapsed(); }
  bool stopped() const { return stop_.load(std::memory_order_relaxed); }

  // The life of a job.
  void prepare(JobRun& run);
  void tune(JobRun& run, JobRun* next, double deadline);
  bool step(JobRun& run, JobRun* next);
  bool out_of_time(const JobRun& run, double deadline) const;
  void abandon(JobRun& run, JobStatus status);
  void conclude(JobRun& run);
  void fail(JobRun& run, std::string error);

  // Compiling ahead.
  bool feed(JobRun& run);
  void submit_trusted(JobRun& run);
  bool propose(JobRun& run, const Choice& choice);
  std::optional<std::string> make_program(const JobRun& run, Specimen& specimen) const;
  void receive(double wait_seconds);
  void take_report(JobRun& run, Specimen specimen, const CompileReport& report);
  void take_trusted_report(JobRun& run, const CompileReport& report);
  bool has_room(const JobRun& run) const;

  // Measuring.
  void begin(JobRun& run);
  void check_next(JobRun& run);
  void sample(JobRun& run, size_t candidate, int count);
  void finish_rejected(JobRun& run);
  bool finish_survivors(JobRun& run);
  void finish_entrant(JobRun& run, size_t candidate, Outcome outcome);
  void finish(JobRun& run, Trial trial, bool is_new = true);
  void finish_failed(JobRun& run, Specimen specimen, const Failure& failure);

  void report(const JobRun& run, const Trial* last) const;
  std::optional<double> remaining(const JobRun& run) const;

  const Catalogue& catalogue_;
  Laboratory& laboratory_;
  const SessionOptions& options_;
  const SessionCallbacks& callbacks_;
  Quarantine& quarantine_;
  const std::atomic<bool>& stop_;
  const Apparatus& apparatus_;
  std::function<double()> clock_;
  double started_ = 0;

  std::vector<std::unique_ptr<JobRun>> runs_;  // in the order of tuning
  size_t current_ = 0;                         // index into runs_
  size_t finished_trials_ = 0;
  SpecimenId next_id_ = 1;
};

}  // namespace kiln::tuner
