#include "kiln/context.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>

#include "context_impl.h"
#include "host_memory.h"
#include "kiln/base/error.h"
#include "kiln/execution/target.h"
#include "kiln/runtime/settings.h"
#include "parallel.h"
#include "records.h"

namespace kiln {
namespace {

// How many predictions to try to compile where nothing usable is stored, before giving up.
constexpr size_t fallback_attempts = 8;
constexpr size_t explained_estimates = 10;

cache::IsCurrent is_current(const Catalogue& catalogue) {
  return [&catalogue](std::string_view algorithm, std::string_view digest) {
    return catalogue.digest(algorithm) == digest;
  };
}

std::string describe(const device::ContextHandle& context, const KernelSupply& kernels) {
  const device::DeviceInfo& info = context.device().info();
  return fmt::format("{}, compute capability {}.{}, {} SMs; {}; {}", info.name, info.cc_major, info.cc_minor, info.sms,
                     context.driver().description(), kernels.describe_compiler());
}

std::vector<std::string> names_of(const std::vector<Operand>& operands) {
  std::vector<std::string> names;
  for (const Operand& operand : operands) names.push_back(operand.name);
  return names;
}

ExplainedCandidate explained(const Selection& selection) {
  return {selection.choice.algorithm, selection.choice.config.print(), selection.seconds, selection.source};
}

// A fault of one variant, after which another may serve; not one of the machine.
bool concerns_variant(const Error& error) {
  switch (error.code()) {
    case ErrorCode::compile_failed:
    case ErrorCode::unsupported:
    case ErrorCode::driver_error:
    case ErrorCode::missing_library:  // it is in no bundle, and there is no NVRTC
    case ErrorCode::parse_error:      // its bundle is damaged
    case ErrorCode::io_error:
      return true;
    default:
      return false;
  }
}

}  // namespace

Context::Impl::Impl(const ContextOptions& options)
    : Impl(options, options.environment ? *options.environment : Environment::read()) {}

Context::Impl::Impl(const ContextOptions& options, const Environment& environment)
    : announce_(options.announce),
      context_(
          device::ContextHandle::acquire(device::Device(device::Driver::open({environment.driver}), options.device))),
      kernels_(options, environment, *context_, [this](const std::string& message) { announce(message); }),
      catalogue_(catalogue_of(environment)),
      figures_(execution::figures_of(context_->device().info())),
      device_id_(context_->device().info().id()),
      description_(describe(*context_, kernels_)),
      winners_(device_entry(context_->device().info()), is_current(catalogue_)),
      filter_{options.workspace_limit, options.deterministic},
      log_(environment.log),
      workspaces_(context_) {
  if (environment.record) recorder_.emplace(*environment.record);
  load_cache(options, environment);
}

void Context::Impl::load_cache(const ContextOptions& options, const Environment& environment) {
  const std::optional<std::string> path = cache_path(options.cache, environment);
  // Where nobody has tuned yet there is no database, and nothing to announce; one that was named should be there.
  const bool named = options.cache || environment.cache;
  std::error_code unreadable;
  if (path && (named || std::filesystem::exists(*path, unreadable))) {
    // Read only: a Context never tunes, and opening must not create files in a user's home.
    const auto database =
        cache::Database::open(*path, {.mode = cache::OpenMode::read_only},
                              [this](const cache::Announcement& trouble) { announce(trouble.text()); });
    winners_.load(database);
  }
  for (const std::string& pack : pack_paths(options.packs, environment)) winners_.load_pack(pack);
  for (const std::string& problem : winners_.report().problems) announce(problem);
}

void Context::Impl::announce(const std::string& message) const {
  if (announce_)
    announce_(message);
  else
    fmt::print(stderr, "kiln: {}\n", message);
}

Selector Context::Impl::selector() const {
  return {catalogue_, winners_, kernels_.bundles(), kernels_.target(), figures_, filter_};
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
  try {
    if (recorder_) {
      if (const std::optional<std::string> trouble = recorder_->record(key)) announce(*trouble);
    }
    std::shared_ptr<const LoadedPlan> plan = build(request);
    promise.set_value(plan);
    return plan;
  } catch (...) {
    promise.set_exception(std::current_exception());
    const std::lock_guard lock(mutex_);
    plans_.erase(key);  // a later call may succeed: memory may be free again
    throw;
  }
}

std::shared_ptr<const LoadedPlan> Context::Impl::build(const Request& request) {
  std::exception_ptr first_failure;
  const auto attempt = [&](const std::vector<Selection>& selections) -> std::shared_ptr<const LoadedPlan> {
    for (const Selection& selection : selections) {
      try {
        return load(request, selection);
      } catch (const Error& error) {
        if (!concerns_variant(error)) throw;
        // Where nothing can be compiled, that is said of the request in the end.
        if (!first_failure && error.code() != ErrorCode::missing_library) first_failure = std::current_exception();
      }
    }
    return nullptr;
  };
  if (auto plan = attempt(selector().stored(request))) return plan;
  if (auto plan = attempt(selector().bundled(request))) return plan;
  if (kernels_.no_compiler().empty()) {
    if (auto plan = attempt(selector().estimated(request, fallback_attempts))) return plan;
  }
  if (first_failure) std::rethrow_exception(first_failure);
  fail(request);
}

// Nothing was there to be tried: says why.
void Context::Impl::fail(const Request& request) const {
  if (!kernels_.no_compiler().empty()) {
    throw Error(ErrorCode::missing_library,
                fmt::format("{} is not in {} for {}, and nothing can be compiled here: {}", request.key(),
                            kernels_.bundles().describe(), device_id_, kernels_.no_compiler()),
                "add the request to the bundle (`kiln bundle`), or install NVRTC");
  }
  (void)catalogue_.heuristic(request, kernels_.target(), figures_);  // throws with the refusals, if there are any
  throw Error(ErrorCode::unsupported,
              fmt::format("no {}variant of {} needs at most {} bytes of workspace",
                          selector().filter_of(request).deterministic_only ? "bitwise reproducible " : "",
                          request.key(), filter_.workspace_limit),
              "raise ContextOptions::workspace_limit");
}

std::shared_ptr<const LoadedPlan> Context::Impl::load(const Request& request, const Selection& selection) {
  const std::optional<BundledChoice>& bundled = selection.bundled;
  const execution::CompiledProgram compiled =
      bundled ? bundled->bundle->load(bundled->index)
              : kernels_.compile(catalogue_.program(request, kernels_.target(), selection.choice));
  return std::make_shared<const LoadedPlan>(request, selection.choice, selection.source,
                                            execution::Executable(context_, compiled, names_of(request.operands)));
}

Explanation Context::Impl::explain(const Request& request) const {
  Explanation result;
  result.request = request;
  result.device = device_id_;
  result.roofline_seconds = roofline_seconds(request, kernels_.target(), figures_);
  for (const Selection& selection : selector().stored(request)) result.stored.push_back(explained(selection));
  for (const Selection& selection : selector().bundled(request)) result.stored.push_back(explained(selection));
  for (const Selection& selection : selector().estimated(request, explained_estimates)) {
    result.estimated.push_back(explained(selection));
  }
  for (const Refusal& refusal : catalogue_.candidates(request, kernels_.target(), figures_).refused) {
    result.refused.push_back({refusal.algorithm, refusal.reason});
  }
  if (!result.stored.empty())
    result.chosen = result.stored.front();
  else if (!result.estimated.empty() && kernels_.no_compiler().empty())
    result.chosen = result.estimated.front();
  return result;
}

void Context::Impl::write_log(const LoadedPlan& plan) const {
  fmt::print(stderr, "{}  # {} {} ({})\n", plan.key, plan.choice.algorithm, plan.choice.config.print(), plan.source);
}

Context::Context(const ContextOptions& options)
    : impl_(with_host_memory([&] { return std::make_unique<Impl>(options); })) {}
Context::~Context() = default;
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;

Plan Context::plan(const Request& request) {
  return Plan(with_host_memory([&] { return impl_->plan(request); }));
}

void Context::prepare(std::span<const Request> requests) {
  for_each_index(requests.size(), [&](size_t i) { with_host_memory([&] { impl_->plan(requests[i]); }); });
}

Explanation Context::explain(const Request& request) const {
  return with_host_memory([&] { return impl_->explain(request); });
}
const std::string& Context::device_description() const {
  return impl_->device_description();
}
const std::string& Context::device_id() const {
  return impl_->device_id();
}

}  // namespace kiln
