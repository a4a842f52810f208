#include "kiln/context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>

#include "context_impl.h"
#include "host_memory.h"
#include "kiln/base/error.h"
#include "kiln/base/parallel.h"
#include "kiln/base/printable.h"
#include "kiln/device/stream.h"
#include "kiln/generator/operation.h"
#include "kiln/runtime/records.h"
#include "kiln/runtime/settings.h"
#include "lent_workspace.h"

namespace kiln {
namespace {

void require_sense(const ContextOptions& options) {
  if (options.workspace_limit < 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("the workspace limit is {} bytes", options.workspace_limit),
                "give 0 or more");
  }
  if (!options.workspace_allocator.allocate != !options.workspace_allocator.release) {
    throw Error(ErrorCode::invalid_argument, "a workspace allocator has one function of two",
                "give both `allocate` and `release`, or neither");
  }
  const TuningMode mode = options.tuning.mode;
  if (mode == TuningMode::never) return;
  if (mode != TuningMode::within_budget && mode != TuningMode::in_background) {
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no tuning mode {}", static_cast<int>(mode)),
                "give one of TuningMode");
  }
  if (options.locked) {
    throw Error(ErrorCode::invalid_argument, "a Context that is locked to its packs cannot tune",
                "set either ContextOptions::locked or ContextOptions::tuning");
  }
  if (!(options.tuning.budget_seconds > 0) || options.tuning.candidates == 0) {
    throw Error(ErrorCode::invalid_argument, "a tuning budget of no time or no candidates tunes nothing",
                "give more, or TuningMode::never");
  }
}

// What concerns the process and its environment is said once, not by every Context.
struct SaidInProcess {
  std::atomic_flag unknown_variables, not_trusted, stand_in;
};

bool is_first(std::atomic_flag SaidInProcess::*what) {
  static SaidInProcess said;
  return !(said.*what).test_and_set();
}

}  // namespace

Context::Impl::Impl(const ContextOptions& options)
    : Impl(options, options.environment ? *options.environment : Environment::read()) {}

Context::Impl::Impl(const ContextOptions& options, const Environment& environment)
    : announce_(options.announce),
      context_(
          device::ContextHandle::acquire(device::Device(device::Driver::open({environment.driver}), options.device))),
      maker_(options, environment, context_, [this](const std::string& message) { announce(message); }),
      log_(environment.log),
      allocator_(options.workspace_allocator),
      workspaces_(context_) {
  require_sense(options);
  if (!environment.unknown.empty() && is_first(&SaidInProcess::unknown_variables)) {
    for (const std::string& name : environment.unknown) announce(unknown_variable(name).what());
  }
  if (!environment.not_trusted.empty() && is_first(&SaidInProcess::not_trusted)) {
    for (const Error& error : environment.not_trusted) announce(error.what());
  }
  announce_stand_in(environment);
  if (environment.record) recorder_.emplace(*environment.record);
  load_cache(options, environment);
  if (options.tuning.mode != TuningMode::never) start_tuning(options, environment);
}

void Context::Impl::load_cache(const ContextOptions& options, const Environment& environment) {
  const bool tunes = options.tuning.mode != TuningMode::never;
  const std::optional<std::string> path = cache_path(options.cache, environment);
  if (options.locked) {
    // Only what packs and bundles name.
  } else if (path) {
    // A Context that never tunes opens it read-only: opening must not create files in a user's home, and where nobody
    // has tuned yet there is nothing to announce.
    const cache::OpenMode mode = tunes ? cache::OpenMode::read_write : cache::OpenMode::read_only;
    database_ = cache::Database::open(*path, {.mode = mode},
                                      [this](const cache::Announcement& trouble) { announce(trouble.text()); });
  } else if (tunes) {
    database_ = cache::Database::in_memory();
  }
  if (database_) maker_.take_from(*database_);
  if (database_ && !database_->path().empty()) {
    peers_.emplace(database_->path(), maker_.device_id(),
                   [this](const cache::Database& database, const Request& request) { learn(database, request); });
  }
  if (!tunes) database_.reset();
  for (const std::string& pack : pack_paths(options.packs, environment)) maker_.winners().load_pack(pack);
  if (!options.locked) {  // which names what it is locked to
    for (const std::string& pack : system_packs(environment)) {
      maker_.winners().load_pack(pack, cache::Origin::system_pack);
    }
  }
}

void Context::Impl::start_tuning(const ContextOptions& options, const Environment& environment) {
  tuner::WorkerPoolOptions workers;
  workers.worker = tuner::find_worker(environment.worker);
  workers.driver = environment.driver;
  workers.nvrtc = environment.nvrtc;
  workers.kernels = kernel_store(options.kernel_store, environment);
  workers.device = options.device;
  tuner_.emplace(options.tuning, ContextTuner::Tools{maker_.catalogue(), *database_, maker_.winners(), workers,
                                                     [this](const std::string& message) { announce(message); },
                                                     [this](const Request& request) { swap(request); },
                                                     [this](const Request& request) {
                                                       if (peers_) peers_->tell(*database_, request);
                                                     }});
}

// Quotes packs, databases and models; whoever is told prints it.
void Context::Impl::announce(const std::string& message) const {
  const std::string text = printable(message);
  if (announce_)
    announce_(text);
  else
    fmt::print(stderr, "kiln: {}\n", text);
}

// Somebody who expects a GPU would else only see that it is slow.
void Context::Impl::announce_stand_in(const Environment& environment) const {
  const std::string& reason = context_->driver().stands_in_because();
  if (reason.empty() || environment.shows_device || !is_first(&SaidInProcess::stand_in)) return;
  announce(
      fmt::format("no GPU is used: {} computes in its place, because {} (KILN_DRIVER=cuda makes this an error, "
                  "KILN_DRIVER=emulator asks for it; docs/environment.md says what a container needs)",
                  context_->device().info().name, reason));
}

std::shared_ptr<const LoadedPlan> Context::Impl::plan(const Request& request) {
  const std::string key = request.key();
  std::promise<std::shared_ptr<const LoadedPlan>> promise;
  Pending pending;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = plans_.find(key); found != plans_.end())
      pending = found->second;
    else
      plans_.emplace(key, promise.get_future().share());
  }
  if (pending.valid()) return pending.get();  // another thread has it, or is making it
  std::shared_ptr<const LoadedPlan> plan;
  try {
    if (recorder_) record(request, key);
    tune_first({&request, 1});
    plan = make(request);
    if (maker_.known_failure_of(*plan)) plan = make(request);  // another Context found it meanwhile
    promise.set_value(plan);
  } catch (...) {
    promise.set_exception(std::current_exception());
    const std::lock_guard lock(mutex_);
    plans_.erase(key);  // a later call may succeed: memory may be free again
    throw;
  }
  tune_later(request);
  return plan;
}

// Compiling takes longer than anybody would want in a capture, and tuning minutes: both are for the time before.
std::shared_ptr<const LoadedPlan> Context::Impl::plan_of_call(const Request& request, Stream stream) {
  if (!device::is_capturing(*context_, static_cast<cuda_abi::CUstream>(stream))) return plan(request);
  Pending pending;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = plans_.find(request.key()); found != plans_.end()) pending = found->second;
  }
  if (pending.valid()) return pending.get();
  throw Error(
      ErrorCode::unsupported,
      fmt::format("{} has no plan yet, and none is made while the stream is captured into a graph", request.key()),
      "make it before the capture begins: by Context::prepare(), Context::plan(), plan_of_call() or the same call");
}

void Context::Impl::run_with_workspace(const LoadedPlan& plan, Stream stream, std::span<const Address> operands,
                                       const RunValues& values) {
  const int64_t bytes = plan.executable.workspace_bytes();
  if (allocator_.allocate) {
    const LentWorkspace workspace(allocator_, static_cast<size_t>(bytes), stream);
    plan.run(stream, operands, {.workspace = workspace.address()}, values);
  } else {
    const WorkspacePool::Lease workspace = workspaces_.lease(stream, bytes);
    plan.run(stream, operands, {.workspace = workspace.address()}, values);
  }
}

std::shared_ptr<const LoadedPlan> Context::Impl::make(const Request& request) {
  std::shared_ptr<const LoadedPlan> plan = maker_.make(request);
  if (recorder_) plan->count = recorder_->count_of(plan->key);
  return plan;
}

// A request with the text of its user code, once, so that the file can be tuned as it is.
void Context::Impl::record(const Request& request, const std::string& key) {
  if (const Expression* code = request.user_code.expression()) {
    if (const auto trouble = recorder_->record(print_definition(code->digest(), *code))) announce(*trouble);
  }
  if (const auto trouble = recorder_->record(key)) announce(*trouble);
}

void Context::Impl::prepare(std::span<const Request> requests) {
  std::vector<Request> complete;
  for (const Request& request : requests) {
    try {
      complete.push_back(finished(request));
    } catch (const Error&) {
      continue;  // what is wrong with it is said below, once the others are made
    }
  }
  tune_first(complete);
  for_each_index(requests.size(), [&](size_t i) { plan(finished(requests[i])); });
}

// A bundle may serve a request whose user code nobody here knows; other variants of it cannot be made.
bool Context::Impl::may_be_tuned(const Request& request) const {
  return !maker_.is_tuned(request) && !lacks_user_text(request);
}

void Context::Impl::tune_first(std::span<const Request> requests) {
  if (!tuner_ || tuner_->policy().mode != TuningMode::within_budget) return;
  std::vector<Request> untuned;
  for (const Request& request : requests) {
    if (may_be_tuned(request)) untuned.push_back(request);
  }
  if (!untuned.empty()) tuner_->tune_now(untuned);
}

void Context::Impl::tune_later(const Request& request) {
  if (!tuner_ || tuner_->policy().mode != TuningMode::in_background || !may_be_tuned(request)) return;
  tuner_->enqueue(request);
}

void Context::Impl::wait_until_tuned() {
  if (tuner_) tuner_->wait_until_idle();
}

// On the tuner's thread. The plan that was in use stays loaded: others may be running it, and kernels of it may be on
// their way.
void Context::Impl::swap(const Request& request) {
  const std::string key = request.key();
  Pending pending;
  std::shared_ptr<const LoadedPlan> old;
  try {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = plans_.find(key); found != plans_.end()) pending = found->second;
    }
    if (!pending.valid()) return;  // withdrawn: the next call makes one with what is known by then
    old = pending.get();
    if (const auto failure = maker_.known_failure_of(*old)) {
      announce(fmt::format("{} was served by {} {} until now, and tuning has found that {}; no later call uses it", key,
                           old->choice.algorithm, old->choice.config.print(), *failure));
    }
    const std::shared_ptr<const LoadedPlan> better = make(request);
    if (old->choice == better->choice) return;
    std::promise<std::shared_ptr<const LoadedPlan>> promise;
    promise.set_value(better);
    {
      const std::lock_guard lock(mutex_);
      plans_.insert_or_assign(key, promise.get_future().share());  // `old` may have been withdrawn meanwhile
    }
    table_.replace(old, better);
  } catch (const std::exception& error) {
    announce(fmt::format("{} was tuned, and its new variant cannot be loaded: {}", key, error.what()));
    if (old && maker_.known_failure_of(*old)) withdraw(key, old);
  }
}

// On the thread of another Context's tuner. Never waits for a plan that is being made: plan() looks once more itself.
void Context::Impl::learn(const cache::Database& database, const Request& request) {
  maker_.winners().refresh(database, request.key());
  Pending pending;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = plans_.find(request.key()); found != plans_.end()) pending = found->second;
  }
  if (!pending.valid() || pending.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  try {
    if (maker_.known_failure_of(*pending.get())) swap(request);
  } catch (const std::exception&) {
    return;  // the plan could not be made: nobody uses it
  }
}

// Later calls make a plan anew, and are told why there is none.
void Context::Impl::withdraw(const std::string& key, const std::shared_ptr<const LoadedPlan>& plan) {
  {
    const std::lock_guard lock(mutex_);
    plans_.erase(key);
  }
  table_.withdraw(plan);
}

void Context::Impl::write_log(const LoadedPlan& plan) const {
  fmt::print(stderr, "{}  # {} {} ({})\n", plan.key, plan.choice.algorithm, plan.choice.config.print(), plan.source);
}

Context::Context(const ContextOptions& options)
    : impl_(with_host_memory([&] { return std::make_unique<Impl>(options); })) {}
Context::~Context() {
  end();
}
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&& other) noexcept {
  if (this != &other) end();
  impl_ = std::move(other.impl_);
  return *this;
}

// After a fork the threads of the parent's Contexts do not exist: to wait for them would never end.
void Context::end() noexcept {
  if (impl_ && impl_->process() != ::getpid()) (void)impl_.release();
  impl_.reset();
}

void Context::refuse_moved_from() {
  throw Error(ErrorCode::invalid_argument, "this Context was moved from", "use the one that it was moved to");
}

// A Request is a structure that anybody may have filled: here it is completed, or refused.
Plan Context::plan(const Request& request) {
  return Plan(with_host_memory([&] { return present().plan(finished(request)); }));
}

void Context::prepare(std::span<const Request> requests) {
  with_host_memory([&] { present().prepare(requests); });
}

void Context::wait_until_tuned() {
  present().wait_until_tuned();
}

Explanation Context::explain(const Request& request) const {
  return with_host_memory([&] { return present().explain(finished(request)); });
}
const std::string& Context::device_description() const {
  return present().device_description();
}
const std::string& Context::device_id() const {
  return present().device_id();
}
bool Context::is_emulated() const {
  return present().device()->driver().is_emulated();
}
bool Context::records_calls() const {
  return present().records_calls();
}

}  // namespace kiln
