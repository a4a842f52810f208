// The Laboratory made of worker processes.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kiln/tuner/worker.h"
#include "message.h"
#include "worker_link.h"

namespace kiln::tuner {

class WorkerPool : public Laboratory {
 public:
  explicit WorkerPool(WorkerPoolOptions options);

  const Apparatus& apparatus() const override { return apparatus_; }
  size_t compile_lanes() const override { return lanes_.size(); }
  std::optional<Request> stand_in(const Request& request) const override;
  void submit(SpecimenId id, const Programs& programs) override;
  std::optional<CompileReport> collect(double wait_seconds) override;
  bool needs_trusted(const Request& request) const override;
  CheckReport begin(const Subject& subject, std::optional<SpecimenId> trusted) override;
  CheckReport check(SpecimenId id) override;
  SampleReport sample(SpecimenId id, int count) override;
  void discard(SpecimenId id) override;

  /// The processes at hand, for tests that kill them: the measuring one first; -1 where there is none at the moment.
  std::vector<pid_t> processes() const;

 private:
  struct SerialisedVariant {
    std::string source;    // serialised Program, until it is compiled
    std::string compiled;  // serialised CompiledProgram; empty before
  };
  struct Lane {
    std::unique_ptr<WorkerLink> link;
    std::optional<SpecimenId> at_work;  // none while it loads its compiler
    bool has_compiler = false;
  };

  Message command(const char* action) const;
  std::unique_ptr<WorkerLink> start_worker() const;

  // Compiling.
  void open_compiler();
  void employ(Lane& lane);
  void take_answer(Lane& lane, Answer answer);
  void report(SpecimenId id, Answer answer);

  // Measuring.
  Message open_command() const;
  std::optional<Failure> open_measurer();
  std::optional<Failure> begin_here();
  std::optional<Failure> load_here(SpecimenId id);
  std::optional<Failure> prepare_for(SpecimenId id);
  Answer measure(const Message& message, double limit_seconds);

  Answer call(WorkerLink& link, const Message& message, double limit_seconds);
  void pump(double wait_seconds, WorkerLink* awaited, std::optional<Answer>* answer);

  WorkerPoolOptions options_;
  Apparatus apparatus_;
  std::vector<Lane> lanes_;
  std::map<SpecimenId, SerialisedVariant> variants_;
  std::deque<SpecimenId> queue_;        // to be compiled
  std::deque<CompileReport> finished_;  // not yet collected

  std::unique_ptr<WorkerLink> measurer_;
  std::optional<Subject> subject_;
  std::optional<SpecimenId> trusted_;
  bool begun_ = false;           // in the measurer that runs now
  std::set<SpecimenId> loaded_;  // likewise
  Message begun_answer_;         // of its last begin
};

}  // namespace kiln::tuner
