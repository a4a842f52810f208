// CurrentPlans: the plan that serves each request now, made once, and replaced where tuning finds a better one.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "loaded_plan.h"
#include "plan_table.h"

namespace kiln {

/// Thread-safe. No lock is held while a plan is made or something is announced. current_plans.cpp says which thread may
/// come between which.
class CurrentPlans {
 public:
  using Shared = std::shared_ptr<const LoadedPlan>;

  struct Tools {
    std::function<Shared(const KeyedRequest&)> make;  ///< With what is known by then; throws as Context::plan() does.
    /// Failure known by now of the variant of a plan, in words, if the plan must not be used any more.
    std::function<std::optional<std::string>(const LoadedPlan&)> known_failure_of;
    std::function<void(const std::string&)> announce;
  };

  /// `table`: the plans of the operation calls, which are replaced and withdrawn with those of the requests.
  CurrentPlans(PlanTable& table, Tools tools) : table_(table), tools_(std::move(tools)) {}

  /// The plan of a request. Where there is none it is made, by one thread, which calls `before_making` first; others
  /// wait for that one and get its plan or its exception.
  Shared get(const KeyedRequest& request, const std::function<void()>& before_making);
  /// The same, null where there is none.
  Shared find(const std::string& key);

  enum class Reason {
    was_tuned,     ///< There may be a better plan.
    may_be_wrong,  ///< The plan stays unless it is known to fail.
  };
  /// Looks at a request again, of which something was found: its plan is replaced by what make() gives now, or
  /// withdrawn where it fails and make() throws. One that is being made is not waited for: get() looks again itself.
  /// Faults are announced.
  void look_again(const KeyedRequest& request, Reason reason);

 private:
  using Pending = std::shared_future<Shared>;

  Shared find_made(const std::string& key);
  Shared current(const std::string& key) const;
  bool replace(const std::string& key, const Shared& old, const Shared& better);
  void withdraw(const std::string& key, const Shared& plan);

  PlanTable& table_;
  const Tools tools_;
  std::mutex mutex_;
  std::map<std::string, Pending> plans_;  // by key; a plan being made is there as a future
};

}  // namespace kiln
