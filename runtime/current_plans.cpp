#include "current_plans.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <utility>

#include "kiln/base/no_cancellation.h"

namespace kiln {

// Threads: callers (get), the Context's own tuner and those of other Contexts (look_again).
// All changes of `plans_`, and of the plans in `table_`, are made under `mutex_`; what make() and
// known_tools_.known_failure_of() look at has locks of its own. Who may come between whom:
//
// - A tuner has something found wrong while get() makes that very plan. The tuner writes down what it found, then
//   looks at the plan under `mutex_`; get() publishes the plan under `mutex_`, then looks at what was found. So either
//   the tuner sees the plan, or get() sees the finding, or both do. To look before publishing is not enough: the
//   finding may fall between, and the tuner, which waits for no plan, has gone by.
// - The same while look_again() makes a better plan: it looks at what was found after its replace() as well.
// - Two tuners look at one plan again. Both make a better one; the second may have made its own with less knowledge.
//   replace() and withdraw() name the plan that they look at, and do nothing where it is not the current one any more:
//   look_again() then begins anew with the one that is.
// - withdraw() beside get(), which has found nothing and makes a plan: the future in `plans_` is not the plan that is
//   withdrawn, so it stays. In get() nobody else erases or replaces the future until it is ready.
// - A caller got a plan from get(), and puts it into `table_` once it was replaced or withdrawn: PlanTable::insert()
//   applies what happened meanwhile. `table_` is changed under `mutex_`, else a plan could be replaced there by its
//   successor's predecessor.

CurrentPlans::Shared CurrentPlans::get(const KeyedRequest& request, const std::function<void()>& before_making) {
  const NoCancellation whole;  // others wait for a plan that this thread makes
  const std::string& key = request.key();
  std::promise<Shared> promise;
  Pending pending;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = plans_.find(key); found != plans_.end())
      pending = found->second;
    else
      plans_.emplace(key, promise.get_future().share());
  }
  if (pending.valid()) return pending.get();
  Shared plan;
  try {
    before_making();
    plan = tools_.make(request);
    if (tools_.known_failure_of(*plan)) plan = tools_.make(request);  // found while it was made
  } catch (...) {
    promise.set_exception(std::current_exception());
    const std::lock_guard lock(mutex_);
    plans_.erase(key);  // a later call may succeed: memory may be free again
    throw;
  }
  {
    const std::lock_guard lock(mutex_);
    promise.set_value(plan);
  }
  if (!tools_.known_failure_of(*plan)) return plan;
  look_again(request, Reason::may_be_wrong);
  return get(request, [] {});
}

CurrentPlans::Shared CurrentPlans::find(const std::string& key) {
  Pending pending;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = plans_.find(key); found != plans_.end()) pending = found->second;
  }
  return pending.valid() ? pending.get() : nullptr;
}

// Null where there is none, where it is being made, and where it could not be made. With `mutex_` held.
CurrentPlans::Shared CurrentPlans::current(const std::string& key) const {
  const auto found = plans_.find(key);
  if (found == plans_.end() || found->second.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return {};
  try {
    return found->second.get();
  } catch (const std::exception&) {
    return {};  // get() is about to take it out
  }
}

bool CurrentPlans::replace(const std::string& key, const Shared& old, const Shared& better) {
  std::promise<Shared> promise;
  promise.set_value(better);
  const std::lock_guard lock(mutex_);
  if (current(key) != old) return false;
  plans_.at(key) = promise.get_future().share();
  table_.replace(old, better);
  return true;
}

// Later calls make a plan anew, and are told why there is none.
void CurrentPlans::withdraw(const std::string& key, const Shared& plan) {
  const std::lock_guard lock(mutex_);
  if (current(key) != plan) return;
  plans_.erase(key);
  table_.withdraw(plan);
}

// A plan that was in use stays loaded: others may be running it, and kernels of it may be on their way.
void CurrentPlans::look_again(const KeyedRequest& request, Reason reason) {
  const std::string& key = request.key();
  while (const Shared old = find_made(key)) {
    std::optional<std::string> failure;
    const auto tell_failure = [&] {
      if (!failure) return;
      tools_.announce(
          fmt::format("{} was served by {} {} until now, and tuning has found that {}; no later call uses it", key,
                      old->choice.algorithm, old->choice.config.print(), *failure));
    };
    try {
      failure = tools_.known_failure_of(*old);
      if (!failure && reason == Reason::may_be_wrong) return;
      const Shared better = tools_.make(request);
      if (old->choice == better->choice) return;
      if (!replace(key, old, better)) continue;
      tell_failure();
      if (!tools_.known_failure_of(*better)) return;
    } catch (const std::exception& error) {
      tell_failure();
      tools_.announce(fmt::format("{} was tuned, and its new variant cannot be loaded: {}", key, error.what()));
      if (failure) withdraw(key, old);
      return;
    }
  }
}

CurrentPlans::Shared CurrentPlans::find_made(const std::string& key) {
  const std::lock_guard lock(mutex_);
  return current(key);
}

}  // namespace kiln
