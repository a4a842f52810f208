// CurrentPlans: the plan that serves each request now, made once, and replaced where tuning finds a better one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kiln/context.h"
#include "kiln/runtime/settings.h"
#include "loaded_plan.h"
#include "plan_table.h"

namespace kiln {

struct PlanLimits {
  KeptPlans kept;
  /// How long a plan stays loaded that nobody has any more. The driver's reference does not say that cuModuleUnload()
  /// waits for kernels that are queued or running. To wait for them here would need their streams, which may not exist
  /// any more, or the whole context, which breaks captures into CUDA graphs.
  std::chrono::steady_clock::duration grace;
};

/// Thread-safe. No lock is held while a plan is made or freed, or something is announced. current_plans.cpp says which
/// thread may come between which.
///
/// Where a new plan makes more than the limits allow, those that nobody has used for longest are given up: never one
/// that somebody holds, that is running, or whose kernels are in a CUDA graph.
class CurrentPlans {
 public:
  using Shared = std::shared_ptr<const LoadedPlan>;

  struct Tools {
    /// Makes that of a request without one; throws as Context::plan().
    std::function<Shared(const KeyedRequest&)> make_first;
    std::function<Shared(const KeyedRequest&)> make;  ///< To replace one, with what is known by then; likewise.
    /// Failure known by now of the variant of a plan, in words, if the plan must not be used any more.
    std::function<std::optional<std::string>(const LoadedPlan&)> known_failure_of;
    std::function<void(const std::string&)> announce;
  };

  /// `table`: the plans of the operation calls, which are replaced and withdrawn with those of the requests.
  CurrentPlans(PlanTable& table, PlanLimits limits, Tools tools)
      : table_(table), limits_(limits), tools_(std::move(tools)) {}
  ~CurrentPlans();
  CurrentPlans(const CurrentPlans&) = delete;
  CurrentPlans& operator=(const CurrentPlans&) = delete;

  /// The plan of a request. Where there is none it is made, by one thread, which calls `before_making` first; others
  /// wait for that one and get its plan or its exception.
  Shared get(const KeyedRequest& request, const std::function<void()>& before_making) {
    return obtain(request, before_making, tools_.make_first);
  }
  /// The same, which make() makes.
  Shared get_exact(const KeyedRequest& request, const std::function<void()>& before_making) {
    return obtain(request, before_making, tools_.make);
  }
  /// The same, null where there is none.
  Shared find(const std::string& key);

  enum class Reason {
    was_tuned,     ///< There may be a better plan.
    is_open,       ///< An open kernel serves it.
    may_be_wrong,  ///< The plan stays unless it is known to fail, or is of an open kernel: there may be a better one.
  };
  /// Looks at a request again, of which something was found: its plan is replaced by what make() gives now, or
  /// withdrawn where it fails and make() throws. One that is being made is not waited for: get() looks for failures
  /// itself. Faults are announced.
  void look_again(const KeyedRequest& request, Reason reason);

  /// Says that a call uses `plan` now.
  void note_use(const LoadedPlan& plan) const {
    const uint64_t now = now_.load(std::memory_order_relaxed);
    if (plan.last_use.load(std::memory_order_relaxed) != now) plan.last_use.store(now, std::memory_order_relaxed);
  }

  PlanCount count();

 private:
  using Pending = std::shared_future<Shared>;
  using Plans = std::map<std::string, Pending>;

  Shared obtain(const KeyedRequest& request, const std::function<void()>& before_making,
                const std::function<Shared(const KeyedRequest&)>& make);
  Shared find_made(const std::string& key);
  Shared current(const std::string& key) const;
  bool replace(const std::string& key, const Shared& old, const Shared& better);
  void withdraw(const std::string& key, const Shared& plan);
  void succeed(const Shared& plan, const Shared& next);
  void publish(std::promise<Shared>& promise, const Shared& plan);
  void retire(Shared plan);
  void keep_within_limits(const Shared& newest);
  void give_up_unused(const Shared& newest);
  std::vector<Shared> take_free();

  PlanTable& table_;
  const PlanLimits limits_;
  const Tools tools_;
  std::atomic<uint64_t> now_{1};  // the time of note_use(): twice the plans that were made
  std::mutex mutex_;
  Plans plans_;              // by key; a plan being made is there as a future
  uint64_t bytes_ = 0;       // of those that are made
  uint64_t next_look_ = 0;   // when give_up_unused() looks at all of them again,
  uint64_t next_bytes_ = 0;  // or with how many bytes
  int64_t given_up_ = 0;
  // Plans that are not in `plans_` any more, while somebody may have them.
  struct Retired {
    Shared plan;
    uint64_t epoch;
    std::optional<std::chrono::steady_clock::time_point> free_since{};  // when nobody had it for the first time
  };
  std::vector<Retired> retired_;
};

}  // namespace kiln
