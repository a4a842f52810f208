// The worker's side of measuring: one device, one request, the programs loaded for it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kiln/checking/check.h"
#include "kiln/device/context.h"
#include "kiln/execution/executable.h"
#include "kiln/tuner/device_timer.h"
#include "kiln/tuner/laboratory.h"
#include "variant.h"

namespace kiln::tuner {

/// Throws DriverError and Error as the device does; see describe_failure() for what they mean to a trial.
class Measurer {
 public:
  /// Opens a device; arguments as in WorkerPoolOptions.
  Measurer(const std::optional<std::string>& driver, int ordinal, checking::CheckOptions options);

  const device::Device& device() const { return context_->device(); }
  /// See Apparatus.
  bool times_without_running() const { return device::TimeOnly(context_).holds(); }

  /// Makes the operands of `subject`; drops all that was loaded before. With `trusted`, a compiled program: runs it.
  checking::Verdict begin(const Subject& subject, const execution::CompiledProgram* trusted);
  void load(SpecimenId id, const Variant& variant);
  checking::Verdict check(SpecimenId id);
  std::vector<double> sample(SpecimenId id, int count);
  void discard(SpecimenId id) { loaded_.erase(id); }

 private:
  struct Loaded {
    execution::Executable program;
    std::optional<execution::Executable> stand_in;
  };

  checking::Checker& checker();
  const Loaded& find(SpecimenId id) const;
  double modelled_seconds(const execution::Executable& program);

  std::shared_ptr<const device::ContextHandle> context_;
  checking::CheckOptions options_;
  DeviceTimer timer_;
  std::optional<checking::Checker> checker_;       // of the request, or of its stand-in
  std::optional<checking::DeviceOperands> large_;  // of a request with a stand-in
  bool is_large_filled_ = false;
  std::map<SpecimenId, Loaded> loaded_;
};

/// Meaning of an exception for the trial at work.
struct Diagnosis {
  Failure failure;
  bool device_lost = false;  ///< The context is gone; the process is of no more use.
};

/// To be called inside a catch block.
Diagnosis diagnose_current_exception();

}  // namespace kiln::tuner
