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

namespace kiln::tuner {

/// Throws DriverError and Error as the device does; see describe_failure() for what they mean to a trial.
class Measurer {
 public:
  /// Opens a device; arguments as in WorkerPoolOptions.
  Measurer(const std::optional<std::string>& driver, int ordinal, checking::CheckOptions options);

  const device::Device& device() const { return context_->device(); }

  /// Makes the operands of `request`; drops all that was loaded before. With `trusted`, a compiled program: runs it.
  checking::Verdict begin(const Request& request, const execution::CompiledProgram* trusted);
  void load(SpecimenId id, const execution::CompiledProgram& compiled);
  checking::Verdict check(SpecimenId id);
  std::vector<double> sample(SpecimenId id, int count);
  void discard(SpecimenId id) { loaded_.erase(id); }

 private:
  checking::Checker& checker();
  const execution::Executable& find(SpecimenId id) const;

  std::shared_ptr<const device::ContextHandle> context_;
  checking::CheckOptions options_;
  DeviceTimer timer_;
  std::optional<checking::Checker> checker_;
  std::map<SpecimenId, execution::Executable> loaded_;
};

/// What an exception means to the trial at work.
struct Diagnosis {
  Failure failure;
  bool device_lost = false;  ///< The context is gone; the process is of no more use.
};

/// To be called inside a catch block.
Diagnosis diagnose_current_exception();

}  // namespace kiln::tuner
