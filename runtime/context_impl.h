// What a Context holds. For the operation calls of this room.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "kernel_supply.h"
#include "kiln/cache/database.h"
#include "kiln/cache/winners.h"
#include "kiln/context.h"
#include "kiln/device/context.h"
#include "kiln/generator/catalogue.h"
#include "loaded_plan.h"
#include "plan_table.h"
#include "recorder.h"
#include "selection.h"
#include "workspace_pool.h"

namespace kiln {

class Context::Impl {
 public:
  explicit Impl(const ContextOptions& options);

  std::shared_ptr<const LoadedPlan> plan(const Request& request);
  Explanation explain(const Request& request) const;

  /// KILN_LOG: one replayable line per operation call, if asked for.
  void log_call(const LoadedPlan& plan) const {
    if (log_) write_log(plan);
  }

  const std::string& device_description() const { return description_; }
  const std::string& device_id() const { return device_id_; }

  PlanTable& table() { return table_; }  ///< Of the operation calls.
  WorkspacePool& workspaces() { return workspaces_; }
  const std::shared_ptr<const device::ContextHandle>& device() const { return context_; }

 private:
  using Pending = std::shared_future<std::shared_ptr<const LoadedPlan>>;

  Impl(const ContextOptions& options, const Environment& environment);

  void load_cache(const ContextOptions& options, const Environment& environment);
  void announce(const std::string& message) const;
  Selector selector() const;
  std::shared_ptr<const LoadedPlan> build(const Request& request);
  [[noreturn]] void fail(const Request& request) const;
  std::shared_ptr<const LoadedPlan> load(const Request& request, const Selection& selection);
  void write_log(const LoadedPlan& plan) const;

  std::function<void(std::string_view)> announce_;
  std::shared_ptr<const device::ContextHandle> context_;
  KernelSupply kernels_;
  Catalogue catalogue_;
  DeviceFigures figures_;
  std::string device_id_;
  std::string description_;
  cache::Winners winners_;
  cache::Filter filter_;
  std::optional<Recorder> recorder_;
  bool log_ = false;
  WorkspacePool workspaces_;
  PlanTable table_;

  std::mutex mutex_;
  std::map<std::string, Pending> plans_;  // by key; a plan being built is there as a future
};

}  // namespace kiln
