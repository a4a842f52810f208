// Members of a Context, for the operation calls of this room.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "background_maker.h"
#include "context_peers.h"
#include "context_tuner.h"
#include "current_plans.h"
#include "kernel_supply.h"
#include "kiln/cache/database.h"
#include "kiln/context.h"
#include "kiln/device/context.h"
#include "loaded_plan.h"
#include "plan_maker.h"
#include "plan_table.h"
#include "recorder.h"
#include "workspace_pool.h"

namespace kiln {

class Context::Impl {
 public:
  explicit Impl(const ContextOptions& options);

  /// A Request is a structure that anybody may have filled: here it is completed, or refused, and has what the options
  /// demand of all.
  Request completed(Request request) const;
  /// A complete request with what the options demand of all.
  Request as_demanded(Request request) const;
  std::shared_ptr<const LoadedPlan> plan(const KeyedRequest& request) { return obtain(request, &CurrentPlans::get); }
  /// The same, of an open kernel only where nothing else can be made.
  std::shared_ptr<const LoadedPlan> exact_plan(const KeyedRequest& request);
  /// As plan(), for a call on `stream`. While that is captured into a graph, only where there is a plan: throws
  /// Error(unsupported) instead of making the first. In place of an open kernel comes the plan of the request.
  std::shared_ptr<const LoadedPlan> plan_of_call(const KeyedRequest& request, Stream stream);
  bool is_captured(Stream stream) const;
  /// As Context::plans(), and Context::prepare().
  std::vector<Plan> plans(std::span<const Request> requests);
  void prepare(std::span<const Request> requests);
  void prepare_open(std::string_view lines);
  void wait_until_tuned();
  Explanation explain(const KeyedRequest& request) { return maker_.explain(request); }

  /// KILN_LOG: one replayable line per operation call, if asked for.
  void log_call(const LoadedPlan& plan) const {
    if (log_) write_log(plan);
  }

  void note_use(const LoadedPlan& plan) const { plans_.note_use(plan); }

  PlanCount plan_count() { return plans_.count(); }
  device::NvrtcWork compiles() const { return maker_.compiles(); }
  const std::string& device_description() const { return maker_.description(); }
  const std::string& device_id() const { return maker_.device_id(); }

  pid_t process() const { return process_; }  ///< The process that made it.
  PlanTable& table() { return table_; }       ///< Plans of the operation calls.
  /// Runs a plan that needs workspace, with some of the caller's allocator or of the Context's own.
  void run_with_workspace(const LoadedPlan& plan, Stream stream, std::span<const Address> operands,
                          const RunValues& values);
  const std::shared_ptr<const device::ContextHandle>& device() const { return context_; }
  bool records_calls() const { return recorder_.has_value(); }
  bool checks_numerics() const { return numerics_ != nullptr; }

 private:
  Impl(const ContextOptions& options, const Environment& environment);

  void load_cache(const ContextOptions& options, const Environment& environment);
  void start_tuning(const ContextOptions& options, const Environment& environment);
  void announce(const std::string& message) const;
  void announce_stand_in(const Environment& environment) const;
  using Get = std::shared_ptr<const LoadedPlan> (CurrentPlans::*)(const KeyedRequest&, const std::function<void()>&);
  std::shared_ptr<const LoadedPlan> obtain(const KeyedRequest& request, Get get);
  std::shared_ptr<const LoadedPlan> in_place_of_open(const KeyedRequest& request);
  bool may_be_tuned(const KeyedRequest& request) const;
  void tune_valid(std::span<const Request> requests);
  void tune_first(std::span<const Request> requests);
  void tune_later(const KeyedRequest& request);
  void learn(const cache::Database& database, const KeyedRequest& request);
  std::shared_ptr<const LoadedPlan> make_first(const KeyedRequest& request);
  std::shared_ptr<const LoadedPlan> make(const KeyedRequest& request);
  std::shared_ptr<const LoadedPlan> ready(std::shared_ptr<const LoadedPlan> plan);
  void record(const KeyedRequest& request);
  void write_log(const LoadedPlan& plan) const;

  const pid_t process_ = ::getpid();
  std::function<void(std::string_view)> announce_;
  std::shared_ptr<const device::ContextHandle> context_;
  PlanMaker maker_;
  std::optional<cache::Database> database_;  // of a Context that tunes
  std::optional<Recorder> recorder_;
  std::shared_ptr<NumericsCheck> numerics_;  // null where nobody asked for it
  bool log_ = false;
  WorkspaceAllocator allocator_;  // empty: `workspaces_` serve
  WorkspacePool workspaces_;
  PlanTable table_;
  CurrentPlans plans_;
  FirstCall first_call_;
  bool batch_invariant_;
  mutable std::mutex said_mutex_;
  mutable std::set<std::string> said_;  // of calls that cannot be batch invariant

  std::optional<ContextPeers> peers_;  // of a Context that reads a database file; its callback uses all of the above
  std::optional<ContextTuner> tuner_;  // its thread uses all of the above
  BackgroundMaker background_;         // likewise
};

}  // namespace kiln
