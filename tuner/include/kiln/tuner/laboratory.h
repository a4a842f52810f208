// Laboratory: where variants are compiled, checked and timed. The session only knows this interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/device/device.h"
#include "kiln/device/resource_log.h"
#include "kiln/generator/arch.h"
#include "kiln/generator/program.h"
#include "kiln/generator/request.h"
#include "kiln/tuner/trial.h"

namespace kiln::tuner {

/// The device at hand and the tools used on it.
struct Apparatus {
  device::DeviceInfo device;
  DeviceFigures figures;
  Target target;
  std::string driver_version;          ///< "13.0"
  std::string nvrtc_version;           ///< "13.0"
  std::string driver_description;      ///< Which driver was loaded and why, for people.
  bool deterministic_time = false;     ///< The device's times are modelled: one sample says all.
  bool times_without_running = false;  ///< The device tells them without running anything: device::TimeOnly.
};

/// Why a task failed: a failing Outcome, and what was said about it.
struct Failure {
  Outcome outcome = Outcome::crashed;
  std::string error;
};

/// Whether it may be another's fault, of an earlier variant's stray write or of a busy machine: it crashed, timed out,
/// or found no memory.
bool deserves_retry(const std::optional<Failure>& failure);

/// Report of `task` of a Laboratory. Where it fails in a way that deserves_retry(), and `go_on` says so, the report of
/// a second attempt in a fresh process: only a failure of both counts.
template <class Task, class GoOn>
auto in_two_attempts(const Task& task, const GoOn& go_on) {
  auto report = task();
  return deserves_retry(report.failure) && go_on() ? task() : report;
}
template <class Task>
auto in_two_attempts(const Task& task) {
  return in_two_attempts(task, [] { return true; });
}

/// The trial of `choice` for `request` before anything was made of it.
Trial begin_trial(const Apparatus& apparatus, const Catalogue& catalogue, const Request& request, Choice choice);
/// Adds what there is to say of the trial's program before it is compiled.
void add_program(Trial& trial, const Program& program);

/// A request, and the one whose results are checked in its stead where it is too large (Laboratory::stand_in()).
struct Subject {
  Request request;
  std::optional<Request> stand_in{};

  const Request& checked() const { return stand_in ? *stand_in : request; }
};

/// Programs that are compiled as one specimen.
struct Programs {
  Program program;
  std::optional<Program> stand_in{};  ///< The same choice for the subject's stand-in, if it has one.
};

/// `variants`: of the subject's request. Throws Error as Variants::program() does.
Programs programs_of(Variants& variants, const std::optional<Request>& stand_in, const Choice& choice);

/// Programs under trial, by a number that the session chooses.
using SpecimenId = uint64_t;

struct CompileReport {
  SpecimenId id = 0;
  std::optional<Failure> failure;  ///< compile_failed, timed_out or crashed
  device::KernelResources resources;
  double seconds = 0;
};

struct CheckReport {
  std::optional<Failure> failure;  ///< wrong_result, compile_failed (not loadable), timed_out, crashed, out_of_memory
  std::string verdict;             ///< In words, also if it passed.
};

struct SampleReport {
  std::optional<Failure> failure;  ///< timed_out, crashed or out_of_memory
  std::vector<double> seconds;
};

/// Compiles in the background, measures one thing at a time.
///
/// Where a failure is `timed_out` or `crashed`, the process that did the work is gone, and the next call is served by a
/// fresh one. Not thread-safe: one session drives it. Throws Error only if it cannot work at all (no worker can be
/// started, no device, no NVRTC).
class Laboratory {
 public:
  virtual ~Laboratory() = default;

  /// `go_on` is asked every half second or so while begin(), check(), sample() or discard() wait for a process. Once it
  /// says no, the process is ended and the task fails: timed_out.
  void watch(std::function<bool()> go_on) { go_on_ = std::move(go_on); }

  virtual const Apparatus& apparatus() const = 0;
  /// Programs that can be compiled at the same time.
  virtual size_t compile_lanes() const = 0;

  /// The request whose results stand for those of `request`, which is too large to be run on this device: the same for
  /// a smaller batch or image. Nothing if it is to be run itself.
  virtual std::optional<Request> stand_in(const Request& request) const = 0;
  /// Starts to compile `programs` under the number `id`, which must be unused; returns at once.
  virtual void submit(SpecimenId id, const Programs& programs) = 0;
  /// The next finished compile, in any order; waits up to `wait_seconds` for one.
  virtual std::optional<CompileReport> collect(double wait_seconds) = 0;

  /// Whether the check of this request needs its trusted variant: it is too large to be checked in full.
  virtual bool needs_trusted(const Request& request) const = 0;
  /// Makes `subject` what check() and sample() work on: operands are made, and the compiled specimen `trusted`, of the
  /// trusted algorithm for what is checked, is run and compared with the reference. Specimens stay known.
  virtual CheckReport begin(const Subject& subject, std::optional<SpecimenId> trusted) = 0;
  /// Runs a compiled specimen, or what stands in for it, once and compares its result with the trusted one's.
  virtual CheckReport check(SpecimenId id) = 0;
  /// Takes `count` samples of the device time of a checked specimen, each from a cold L2, after a warm-up run. Operands
  /// are checking::Placement::as_allocated. A modelled time is asked for once.
  virtual SampleReport sample(SpecimenId id, int count) = 0;
  /// Forgets a specimen, compiled or not.
  virtual void discard(SpecimenId id) = 0;

 protected:
  bool may_go_on() const { return !go_on_ || go_on_(); }

 private:
  std::function<bool()> go_on_;
};

}  // namespace kiln::tuner
