#include "kiln/context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>

#include "context_impl.h"
#include "host_memory.h"
#include "kiln/base/error.h"
#include "kiln/base/no_cancellation.h"
#include "kiln/base/parallel.h"
#include "kiln/base/printable.h"
#include "kiln/device/stream.h"
#include "kiln/generator/batch_invariance.h"
#include "kiln/generator/no_code.h"
#include "kiln/generator/operation.h"
#include "kiln/runtime/records.h"
#include "kiln/runtime/settings.h"
#include "lent_workspace.h"
#include "out_of_reach.h"

namespace kiln {
namespace {

void require_sense(const ContextOptions& options) {
  if (options.workspace_limit < 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("the workspace limit is {} bytes", options.workspace_limit),
                "give 0 or more");
  }
  const auto require_room = [](std::string_view name, const std::optional<int64_t>& limit) {
    if (!limit || *limit >= 1) return;
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is {}", name, *limit), "give 1 or more, or leave it out");
  };
  require_room("kept_plans", options.kept_plans);
  require_room("kept_plan_bytes", options.kept_plan_bytes);
  if (!options.workspace_allocator.allocate != !options.workspace_allocator.release) {
    throw Error(ErrorCode::invalid_argument, "a workspace allocator has one function of two",
                "give both `allocate` and `release`, or neither");
  }
  const FirstCall first = options.first_call.value_or(FirstCall::exact);
  if (first != FirstCall::exact && first != FirstCall::at_once) {
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no first call {}", static_cast<int>(first)),
                "give one of FirstCall");
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

PlanLimits plan_limits(const ContextOptions& options, const Environment& environment, const device::Driver& driver) {
  KeptPlans kept = kept_plans(environment);
  if (options.kept_plans) kept.plans = static_cast<uint64_t>(*options.kept_plans);
  if (options.kept_plan_bytes) kept.bytes = static_cast<uint64_t>(*options.kept_plan_bytes);
  return {kept, std::chrono::seconds(driver.is_emulated() ? 0 : 10)};  // the emulator runs a kernel in its launch
}

// Never throws: what was to be told is done all the same, and a thread of the Context's own goes on.
void announce_to(const std::function<void(std::string_view)>& listener, const std::string& message) noexcept {
  const NoCancellation whole;  // which would unwind the thread through here
  try {
    const std::string text = printable(message);
    if (listener)
      listener(text);
    else
      fmt::print(stderr, "kiln: {}\n", text);
  } catch (...) {
    // Nobody hears of it: the application's listener failed, or standard error is closed or full.
  }
}

// Facts about the process and its environment are said once, not by every Context.
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
      workspaces_(context_),
      plans_(table_, plan_limits(options, environment, context_->driver()),
             {[this](const KeyedRequest& request) { return make_first(request); },
              [this](const KeyedRequest& request) { return make(request); },
              [this](const LoadedPlan& plan) { return maker_.known_failure_of(plan); },
              [this](const std::string& message) { announce(message); }}),
      first_call_(options.first_call.value_or(environment.first_call.value_or(FirstCall::exact))),
      batch_invariant_(options.batch_invariant),
      background_([this](const KeyedRequest& request) { plans_.look_again(request, CurrentPlans::Reason::is_open); },
                  [this](const KeyedRequest& request) { maker_.know_open_kernel(request); }) {
  require_sense(options);
  if (!environment.unknown.empty() && is_first(&SaidInProcess::unknown_variables)) {
    for (const std::string& name : environment.unknown) announce(unknown_variable(name).what());
  }
  if (!environment.not_trusted.empty() && is_first(&SaidInProcess::not_trusted)) {
    for (const Error& error : environment.not_trusted) announce(error.what());
  }
  announce_stand_in(environment);
  if (environment.record) recorder_.emplace(*environment.record);
  if (environment.check_numerics) {
    numerics_ = std::make_shared<NumericsCheck>(
        *environment.check_numerics,
        [listener = options.announce](const std::string& message) { announce_to(listener, message); });
  }
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
  tuner_.emplace(options.tuning,
                 ContextTuner::Tools{
                     maker_.catalogue(), *database_, workers, [this](const std::string& message) { announce(message); },
                     [this](const Request& request) { maker_.learn(*database_, request.key()); },
                     [this](const Request& request) { plans_.look_again(request, CurrentPlans::Reason::was_tuned); },
                     [this](const Request& request) {
                       if (peers_) peers_->tell(*database_, request);
                     }});
}

// Quotes packs, databases and models; whoever is told prints it.
void Context::Impl::announce(const std::string& message) const {
  announce_to(announce_, message);
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

// The plan that `get`, get() or get_exact() of `plans_`, gives; a new one's better ones are looked for from then on.
std::shared_ptr<const LoadedPlan> Context::Impl::obtain(const KeyedRequest& request, Get get) {
  bool is_new = false;
  std::shared_ptr<const LoadedPlan> plan = (plans_.*get)(request, [&] {
    is_new = true;
    if (recorder_) record(request);
    tune_first({&*request, 1});
  });
  if (is_new && plan->stands_in()) background_.enqueue_plan(request);
  const bool was_for_a_call = get == &CurrentPlans::get;
  if (is_new && was_for_a_call && first_call_ == FirstCall::at_once) background_.enqueue_open_kernel(request);
  if (is_new) tune_later(request);
  return plan;
}

// Within a capture no first plan is made: tuning would take minutes, and a shape that has not run before is more likely
// a mistake than meant.
std::shared_ptr<const LoadedPlan> Context::Impl::plan_of_call(const KeyedRequest& request, Stream stream) {
  if (!is_captured(stream)) return plan(request);
  auto there = plans_.find(request.key());
  // A graph is launched again and again: what stands in for the time of a compile must not stay in it. The compile is
  // waited for, because nobody waits for a capture.
  if (there && there->stands_in()) there = in_place_of_open(request);
  if (there) return there;
  const bool may_be_given_up = plans_.count().given_up > 0;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("{} has no plan{}, and none is made while the stream is captured into a graph", request.key(),
                  may_be_given_up ? " (any more, or yet)" : " yet"),
      fmt::format(
          "make it before the capture begins: by Context::prepare(), Context::plan(), plan_of_call() or the same "
          "call{}",
          may_be_given_up ? "; plans were given up, so hold it as a Plan meanwhile, or raise kept_plans" : ""));
}

bool Context::Impl::is_captured(Stream stream) const {
  return device::is_capturing(*context_, static_cast<cuda_abi::CUstream>(stream));
}

// The plan of a request that an open kernel serves: made, unless that fails, which is announced. Null where the open
// kernel has failed, too.
std::shared_ptr<const LoadedPlan> Context::Impl::in_place_of_open(const KeyedRequest& request) {
  const NoCancellation whole;
  plans_.look_again(request, CurrentPlans::Reason::is_open);
  return plans_.find(request.key());
}

std::shared_ptr<const LoadedPlan> Context::Impl::exact_plan(const KeyedRequest& request) {
  std::shared_ptr<const LoadedPlan> plan = obtain(request, &CurrentPlans::get_exact);
  if (!plan->stands_in()) return plan;
  if (std::shared_ptr<const LoadedPlan> own = in_place_of_open(request)) return own;
  return obtain(request, &CurrentPlans::get_exact);  // or it says why there is none
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

std::shared_ptr<const LoadedPlan> Context::Impl::make_first(const KeyedRequest& request) {
  return ready(first_call_ == FirstCall::at_once ? maker_.make_at_once(request) : maker_.make(request));
}

std::shared_ptr<const LoadedPlan> Context::Impl::make(const KeyedRequest& request) {
  std::shared_ptr<const LoadedPlan> plan = ready(maker_.make(request));
  plan->is_final.store(plan->open, std::memory_order_relaxed);  // else it would not be of an open kernel
  return plan;
}

std::shared_ptr<const LoadedPlan> Context::Impl::ready(std::shared_ptr<const LoadedPlan> plan) {
  if (recorder_) plan->count = recorder_->count_of(plan->key);
  plan->numerics = numerics_;
  return plan;
}

// A request with the text of its user code, once, so that the file can be tuned as it is.
void Context::Impl::record(const KeyedRequest& request) {
  if (const Expression* code = request->user_code.expression()) {
    if (const auto trouble = recorder_->record(print_definition(code->digest(), *code))) announce(*trouble);
  }
  if (const auto trouble = recorder_->record(request.key())) announce(*trouble);
}

// Calls that cannot be what the options demand are served all the same, and that is said: an application has calls of
// both kinds. Sums over the batch are meant to be such.
Request Context::Impl::as_demanded(Request request) const {
  if (!batch_invariant_) return request;
  request = batch_invariant_if_it_can_be(std::move(request));
  const Operation& definition = operation(request.operation);
  if (request.batch_invariant || definition.why_images_mix(request)) return request;
  std::optional<std::string> why;
  if (definition.has_order_of_sums()) why = why_batch_is_inside(request);
  if (definition.adds_in_any_order()) why = "its kernels keep no order of sums";
  if (!why) return request;
  const std::string message = fmt::format("{} is not batch invariant: {}", request.operation, *why);
  {
    const std::lock_guard lock(said_mutex_);
    if (!said_.insert(message).second) return request;
  }
  announce(fmt::format("{}; further such calls are not announced", message));
  return request;
}

Request Context::Impl::completed(Request request) const {
  return as_demanded(finished(std::move(request)));
}

// Tunes the requests that make sense: what is wrong with the others is said once all plans are made.
void Context::Impl::tune_valid(std::span<const Request> requests) {
  std::vector<Request> complete;
  for (const Request& request : requests) {
    try {
      complete.push_back(completed(request));
    } catch (const Error&) {
      continue;
    }
  }
  tune_first(complete);
}

std::vector<Plan> Context::Impl::plans(std::span<const Request> requests) {
  tune_valid(requests);
  std::vector<std::shared_ptr<const LoadedPlan>> loaded(requests.size());
  for_each_index(requests.size(), [&](size_t i) { loaded[i] = plan(completed(requests[i])); });
  return {loaded.begin(), loaded.end()};
}

void Context::Impl::prepare(std::span<const Request> requests) {
  tune_valid(requests);
  for_each_index(requests.size(), [&](size_t i) { (void)exact_plan(completed(requests[i])); });
}

void Context::Impl::prepare_open(std::string_view lines) {
  const bool takes_open_kernels = first_call_ == FirstCall::at_once || !maker_.no_compiler().empty();
  if (!takes_open_kernels) {
    throw Error(
        ErrorCode::unsupported, "calls of this Context take no open kernels: it makes the exact plan first",
        "set ContextOptions::first_call to FirstCall::at_once, or prepare the sizes that the application has, by "
        "Context::prepare()");
  }
  require_no_code(lines, "prepare layers with user code at the sizes that they have, by Context::prepare()");
  maker_.prepare_open(open_lines_in(lines), [this](Request request) { return as_demanded(std::move(request)); });
}

// A bundle may serve a request whose user code nobody here knows; other variants of it cannot be made.
bool Context::Impl::may_be_tuned(const KeyedRequest& request) const {
  return !maker_.is_tuned(request) && !lacks_user_text(*request);
}

void Context::Impl::tune_first(std::span<const Request> requests) {
  if (!tuner_ || tuner_->policy().mode != TuningMode::within_budget) return;
  std::vector<Request> untuned;
  for (const Request& request : requests) {
    if (may_be_tuned(request)) untuned.push_back(request);
  }
  if (!untuned.empty()) tuner_->tune_now(untuned);
}

void Context::Impl::tune_later(const KeyedRequest& request) {
  if (!tuner_ || tuner_->policy().mode != TuningMode::in_background || !may_be_tuned(request)) return;
  tuner_->enqueue(request);
}

void Context::Impl::wait_until_tuned() {
  background_.wait_until_idle();
  if (tuner_) tuner_->wait_until_idle();
}

// On the thread of another Context's tuner, which may hold what a plan in the making waits for.
void Context::Impl::learn(const cache::Database& database, const KeyedRequest& request) {
  maker_.learn(database, request.key());
  plans_.look_again(request, CurrentPlans::Reason::may_be_wrong);
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

Plan Context::plan(const Request& request) {
  return Plan(with_host_memory([&] { return present().plan(present().completed(request)); }));
}

std::vector<Plan> Context::plans(std::span<const Request> requests) {
  return with_host_memory([&] { return present().plans(requests); });
}

void Context::prepare(std::span<const Request> requests) {
  with_host_memory([&] { present().prepare(requests); });
}

void Context::prepare_open(std::string_view lines) {
  with_host_memory([&] { present().prepare_open(lines); });
}

void Context::wait_until_tuned() {
  present().wait_until_tuned();
}

Explanation Context::explain(const Request& request) const {
  return with_host_memory([&] { return present().explain(present().completed(request)); });
}
PlanCount Context::plan_count() const {
  return present().plan_count();
}
CompileCount Context::compiles() const {
  const device::NvrtcWork work = present().compiles();
  return {work.compiles, work.seconds};
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
void Context::require_memory(std::string_view kind, std::string_view name, const void* data, int64_t bytes) const {
  const device::ContextHandle& device = *present().device();
  const auto size = static_cast<uint64_t>(bytes);
  if (!device.reaches(reinterpret_cast<uintptr_t>(data), size))
    refuse_out_of_reach(fmt::format("{} '{}'", kind, name), data, size, device);
}
bool Context::records_calls() const {
  return present().records_calls();
}
bool Context::checks_numerics() const {
  return present().checks_numerics();
}

CurrentContext::CurrentContext(Context& context)
    : current_(std::make_unique<const device::Current>(*context.impl().device())) {}
CurrentContext::~CurrentContext() = default;

}  // namespace kiln
