#include "current_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <set>
#include <utility>

#include "epochs.h"
#include "kiln/base/error.h"
#include "kiln/base/no_cancellation.h"

namespace kiln {
namespace {

using Pending = std::shared_future<CurrentPlans::Shared>;

// Null where the plan is being made, and where it could not be made.
CurrentPlans::Shared made(const Pending& pending) {
  if (pending.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return {};
  try {
    return pending.get();
  } catch (...) {
    return {};  // get() is about to take it out
  }
}

// Whether the same would fail again: nothing of this library serves, and no memory, file or driver was at fault.
bool is_lasting(const std::exception& error) {
  const auto* const known = dynamic_cast<const Error*>(&error);
  if (known == nullptr) return false;
  return known->code() == ErrorCode::compile_failed || known->code() == ErrorCode::unsupported ||
         known->code() == ErrorCode::missing_library;
}

// Whether nobody has a pointer to it but its future and the caller's `plan`.
bool is_owned_alone(const CurrentPlans::Shared& plan) {
  return plan.use_count() == 2;
}

}  // namespace

// Threads: callers (get), and those that look again: the Context's own tuner, tuners of other Contexts, the background,
// and callers that want an exact plan (captured calls, prepare(), plan_of_call()).
// All changes of `plans_`, and of the plans in `table_`, are made under `mutex_`; what make() and
// tools_.known_failure_of() look at has locks of its own. Who may come between whom:
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
//
// - A holder of a plan asks is_superseded(), without the lock, and then for the plan of the request. The flag is set
//   under `mutex_` once `plans_` and `table_` have changed, so who sees it gets another plan from get(): the better
//   one, or, where that was given up or withdrawn since, one that is made anew, which may be of an open kernel again,
//   or an exception. Who does not see it yet keeps the old plan, which stays loaded for its holder. Who got another
//   plan from get() sees the flag: get() took `mutex_` after it was set.
// - Between the flag and that get(), nobody gives the better plan up: the old one, which its holder has, owns it as its
//   `successor`. A withdrawal is not held up by that.
//
// `successor` is written by replace(), and reset by replace(), withdraw(), take_free() and the end, all under `mutex_`
// or when no other thread is left. Nobody else reads it but the end of the plan that has it:
//
// - While a plan owns its successor, that one is in `plans_` too, or with the caller of replace() or withdraw(). So a
//   reset under `mutex_` never ends a plan, and no module is unloaded there.
// - A plan that is replaced, and replaced again, owns the latest one alone: those in between may go.
// - take_free() resets it where `retired_` is the last owner and no Reading is left: nobody is there who could ask. A
//   thread in get() that has the future of the old plan, and not yet the plan, is an owner.
// - It does so before it looks for captures: a captured plan stays for good, and must not keep its successor.
// - A plan that outlives this object lets go of its successor when this object ends, for nobody can ask any more.
//
// `is_final` of a plan of an open kernel goes from false to true once, before anybody sees the plan, or in look_again()
// without the lock. Captured calls, who wants exact plans, and obtain() of the Context ask stands_in() without the
// lock:
//
// - Who reads false though it is set, or about to be, looks again: make() gives what it gave or fails as it failed,
//   which costs its time, and an announcement where it fails.
// - Who reads true uses this plan. It was the right one when nothing better could be made. Where tuning, here or in
//   another Context, has found something since, look_again() makes a plan, whatever the flag says: a call that found
//   the old one before runs it once more, as any call does that is beside a replacement.
// - Two threads may look again at one plan, of a capture and of the background: both make one. The first replaces the
//   plan; the other sees that it is not the current one any more, and looks at the current one: if that is open too, or
//   is known to fail, it makes another.
// - A plan that was replaced or withdrawn meanwhile may be set: who asks it for its flag, its holders and readers, runs
//   it once more at the most, for the next look-up gives the current plan.
//
// A plan leaves `plans_` by replace(), withdraw() or give_up_unused(), which make it unreachable in `table_` first and
// then begin an epoch. Who may have it after that, and why it is not freed then:
//
// - A thread that found it in `table_`: it is in a Reading that began before that epoch.
// - A thread that holds a shared pointer, such as an application's Plan: use_count() is above the one of `retired_`.
//   `retired_` is its last owner that anybody could copy from, so a count of one stays one.
// - A thread in get() or find() that has copied the future under `mutex_`, and not yet the plan out of it: the future's
//   own pointer counts. When give_up_unused() looks, this cannot be told from `plans_` having the future alone, so such
//   a plan may be given up. The thread uses it all the same, by the pointer that it gets; insert() leaves it out.
// - A CUDA graph: the run that was captured has said so. It may do so after give_up_unused() has looked, but not after
//   its Reading, or its shared pointer, has ended: so take_free() looks again.

CurrentPlans::~CurrentPlans() {
  for (const Retired& retired : retired_) retired.plan->successor.reset();
}

CurrentPlans::Shared CurrentPlans::obtain(const KeyedRequest& request, const std::function<void()>& before_making,
                                          const std::function<Shared(const KeyedRequest&)>& make) {
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
  if (pending.valid()) {
    const Shared& there = pending.get();
    note_use(*there);
    return there;
  }
  Shared plan;
  try {
    before_making();
    plan = make(request);
    if (tools_.known_failure_of(*plan)) plan = make(request);  // found while it was made
  } catch (...) {
    promise.set_exception(std::current_exception());
    const std::lock_guard lock(mutex_);
    plans_.erase(key);  // a later call may succeed: memory may be free again
    throw;
  }
  publish(promise, plan);
  keep_within_limits(plan);
  if (!tools_.known_failure_of(*plan)) return plan;
  look_again(request, Reason::may_be_wrong);
  const auto nothing = [] {};
  return obtain(request, nothing, make);
}

void CurrentPlans::publish(std::promise<Shared>& promise, const Shared& plan) {
  const std::lock_guard lock(mutex_);
  // By two, so that a call after this is a later use than the making.
  plan->last_use.store(now_.fetch_add(2, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  bytes_ += plan->executable.image_bytes();
  promise.set_value(plan);
}

CurrentPlans::Shared CurrentPlans::find(const std::string& key) {
  Pending pending;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = plans_.find(key); found != plans_.end()) pending = found->second;
  }
  if (!pending.valid()) return nullptr;
  const Shared& there = pending.get();
  note_use(*there);
  return there;
}

// Null where there is none, where it is being made, and where it could not be made. With `mutex_` held.
CurrentPlans::Shared CurrentPlans::current(const std::string& key) const {
  const auto found = plans_.find(key);
  return found != plans_.end() ? made(found->second) : nullptr;
}

bool CurrentPlans::replace(const std::string& key, const Shared& old, const Shared& better) {
  std::promise<Shared> promise;
  promise.set_value(better);
  Pending future = promise.get_future().share();
  const std::lock_guard lock(mutex_);
  if (current(key) != old) return false;
  retired_.reserve(retired_.size() + 1);
  table_.replace(old.get(), better.get());
  note_use(*better);
  plans_.at(key) = std::move(future);
  bytes_ += better->executable.image_bytes();
  succeed(old, better);
  old->successor = better;
  retire(old);
  return true;
}

// Later calls make a plan anew, and are told why there is none.
void CurrentPlans::withdraw(const std::string& key, const Shared& plan) {
  const std::lock_guard lock(mutex_);
  if (current(key) != plan) return;
  retired_.reserve(retired_.size() + 1);
  table_.withdraw({plan.get()});
  plans_.erase(key);
  succeed(plan, nullptr);
  retire(plan);
}

// Has the holders of what `plan` replaced keep `next` from now on. With `mutex_` held, by a caller that has `plan`.
void CurrentPlans::succeed(const Shared& plan, const Shared& next) {
  for (const Retired& retired : retired_) {
    if (retired.plan->successor == plan) retired.plan->successor = next;
  }
}

void CurrentPlans::look_again(const KeyedRequest& request, Reason reason) {
  const std::string& key = request.key();
  while (Shared old = find_made(key)) {
    std::optional<std::string> failure;
    const auto tell_failure = [&] {
      if (!failure) return;
      tools_.announce(
          fmt::format("{} was served by {} {} until now, and tuning has found that {}; no later call uses it", key,
                      old->choice.algorithm, old->choice.config.print(), *failure));
    };
    try {
      failure = tools_.known_failure_of(*old);
      if (!failure && reason == Reason::may_be_wrong && !old->open) return;
      if (!failure && reason == Reason::is_open && !old->open) return;  // tuning was first
      const Shared better = tools_.make(request);
      if (old->choice == better->choice) return old->is_final.store(old->open, std::memory_order_relaxed);
      if (!replace(key, old, better)) continue;
      tell_failure();
      failure.reset();
      old.reset();  // may be free now
      if (tools_.known_failure_of(*better)) continue;
      return keep_within_limits(better);
    } catch (const std::exception& error) {
      tell_failure();
      const char* const why = reason == Reason::is_open ? "is served by an open kernel, and its own variant"
                                                        : "was tuned, and its new variant";
      tools_.announce(fmt::format("{} {} cannot be loaded: {}", key, why, error.what()));
      if (old && is_lasting(error)) old->is_final.store(old->open, std::memory_order_relaxed);
      if (failure) withdraw(key, old);
      return;
    }
  }
}

CurrentPlans::Shared CurrentPlans::find_made(const std::string& key) {
  const std::lock_guard lock(mutex_);
  return current(key);
}

// A plan that find() of `table_` does not give any more. With `mutex_` held. Throws nothing, for readers may have the
// plan: `retired_` has room, which was made before anything was changed.
void CurrentPlans::retire(Shared plan) {
  bytes_ -= plan->executable.image_bytes();
  plan->superseded.store(true, std::memory_order_release);
  retired_.push_back({std::move(plan), epochs::retire()});
}

// Throws nothing: where memory runs out, the plan is there all the same, and the next one tries again.
void CurrentPlans::keep_within_limits(const Shared& newest) {
  std::vector<Shared> free, given_up;  // end without the lock: a driver unloads its modules
  try {
    const std::lock_guard lock(mutex_);
    free = take_free();  // first: what only a plan without a holder owns is used by nobody
    give_up_unused(newest);
    given_up = take_free();
  } catch (const std::bad_alloc&) {
    return;
  }
}

// Leaves `newest`, which its caller holds and nobody else. Where most plans are held by others, looks at all of them
// only now and then.
void CurrentPlans::give_up_unused(const Shared& newest) {
  if (plans_.size() <= limits_.kept.plans && bytes_ <= limits_.kept.bytes) return;
  const uint64_t now = now_.load(std::memory_order_relaxed);
  if (now < next_look_ && bytes_ < next_bytes_) return;
  struct Unused {
    uint64_t last_use;
    Plans::iterator entry;
    Shared plan;
  };
  std::vector<Unused> unused;
  size_t count = 1;
  uint64_t bytes = newest->executable.image_bytes();
  for (auto entry = plans_.begin(); entry != plans_.end(); ++entry) {
    Shared plan = made(entry->second);
    if (!plan || plan == newest || plan->executable.is_captured()) continue;
    if (!is_owned_alone(plan)) {
      note_use(*plan);  // whoever holds it may run it without this object
      continue;
    }
    ++count;
    bytes += plan->executable.image_bytes();
    const uint64_t last_use = plan->last_use.load(std::memory_order_relaxed);
    unused.push_back({last_use, entry, std::move(plan)});
  }
  if (count <= limits_.kept.plans && bytes <= limits_.kept.bytes) {
    next_look_ = now + 2 * std::min<uint64_t>(limits_.kept.plans / 16, 256);
    next_bytes_ = bytes_ + limits_.kept.bytes / 16;
    return;
  }
  std::ranges::sort(unused, {}, &Unused::last_use);
  std::set<const LoadedPlan*> given_up;
  // Some more than needed, so that it is not done for every plan.
  for (const Unused& one : unused) {
    if (count <= limits_.kept.plans - limits_.kept.plans / 16 && bytes <= limits_.kept.bytes - limits_.kept.bytes / 16)
      break;
    --count;
    bytes -= one.plan->executable.image_bytes();
    given_up.insert(one.plan.get());
  }
  unused.resize(given_up.size());
  retired_.reserve(retired_.size() + unused.size());
  table_.withdraw(given_up);
  for (Unused& one : unused) {
    plans_.erase(one.entry);
    retire(std::move(one.plan));
  }
  given_up_ += static_cast<int64_t>(given_up.size());
}

// Takes out of `retired_` what nobody has had for a while.
std::vector<CurrentPlans::Shared> CurrentPlans::take_free() {
  std::vector<Shared> free;
  if (retired_.empty()) return free;
  free.reserve(retired_.size());
  const uint64_t safe = epochs::safe_epoch();
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(retired_, [&](Retired& retired) {
    if (retired.epoch > safe || retired.plan.use_count() > 1) return false;
    // Ending a copy acquires what the last other owner released: it may have captured the plan.
    { const Shared acquires = retired.plan; }
    retired.plan->successor.reset();  // nobody is there to ask for it; `plans_` has it too
    if (retired.plan->executable.is_captured()) return false;
    if (!retired.free_since) retired.free_since = now;
    if (now - *retired.free_since < limits_.grace) return false;
    table_.forget(retired.plan.get());
    free.push_back(std::move(retired.plan));
    return true;
  });
  return free;
}

PlanCount CurrentPlans::count() {
  const std::lock_guard lock(mutex_);
  PlanCount count;
  for (const auto& [key, pending] : plans_) {
    const Shared plan = made(pending);
    if (!plan) continue;
    ++count.plans;
    if (!is_owned_alone(plan) || plan->executable.is_captured()) ++count.held;
  }
  count.bytes = static_cast<int64_t>(bytes_);
  for (const Retired& retired : retired_) {
    ++count.plans;
    ++count.held;
    count.bytes += static_cast<int64_t>(retired.plan->executable.image_bytes());
  }
  count.given_up = given_up_;
  return count;
}

}  // namespace kiln
