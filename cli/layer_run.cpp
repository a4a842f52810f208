#include "layer_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/checking/check.h"
#include "kiln/checking/trusted_program.h"
#include "kiln/device/event.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/target.h"
#include "kiln/generator/operation.h"
#include "kiln/runtime/settings.h"
#include "kiln/tuner/device_timer.h"
#include "kiln/tuner/timing.h"
#include "launches.h"

namespace kiln::cli {
namespace {

bool cannot_compile(const Error& error) {
  return error.code() == ErrorCode::missing_library || error.code() == ErrorCode::unsupported;
}

// By the check that tuning makes. Where nothing can be compiled, large layers of a bundle are compared with the
// reference alone.
Checked check(checking::Checker& checker, const Plan& plan, CheckTools& tools) {
  const checking::CheckOptions options;
  const Request& request = plan.request();
  const auto said = [](const checking::Verdict& verdict, const std::string& ok) {
    return verdict.passed ? Checked{true, ok} : Checked{false, "WRONG: " + verdict.text};
  };
  std::optional<execution::Executable> trusted;
  if (checking::needs_trusted(request, options)) {
    try {
      trusted.emplace(tools.trusted(request));
    } catch (const Error& error) {
      if (!cannot_compile(error) || request.user_code) throw;
      const int64_t outputs = result_of(request).spec.elements();
      return said(checker.check_with_reference(checkable(plan)),
                  fmt::format("ok at {} of {}", std::min(options.samples, outputs), outputs));
    }
  }
  if (trusted) {
    const checking::Verdict verdict = checker.trust(*trusted);
    if (!verdict.passed) {
      throw Error(ErrorCode::internal,
                  fmt::format("the trusted variant of {} failed: {}", request.key(), verdict.text));
    }
  }
  return said(checker.check(checkable(plan)), "ok");
}

// Whether the device ran what it knows no time of: an emulated one, without the clock that the instructions need.
bool has_no_time(const Error& error) {
  return error.code() == ErrorCode::unsupported && error.message().starts_with(device::not_timed);
}

LayerResult run_or_throw(Context& context, const std::shared_ptr<const device::ContextHandle>& device,
                         const Request& request, const LayerRun& options, CheckTools& tools) {
  const Plan plan = context.plan(request);
  LayerResult result{.variant = plan.variant(), .program = plan.program(), .choice = plan.source()};
  result.roofline_seconds = context.explain(request).roofline_seconds;
  const auto time = [&](const checking::DeviceOperands& operands) {
    LayerResult timed = result;
    const int samples = device->driver().is_emulated() ? 1 : options.samples;
    tuner::DeviceTimer timer(device);
    try {
      timed.seconds = tuner::summarise(timer.time(operands, checkable(plan), samples, tuner::L2::warm)).median;
    } catch (const Error& error) {
      if (!has_no_time(error)) throw;
    }
    if (device->driver().is_emulated()) timed.launches = launches_of(timer, operands, checkable(plan));
    return timed;
  };
  if (!options.check) return with_operands(device, request, time);
  checking::Checker checker(device, request, {});
  result.check = check(checker, plan, tools);
  return time(checker.timed_operands());
}

}  // namespace

CheckTools::CheckTools(const Environment& environment, std::shared_ptr<const device::ContextHandle> device)
    : environment_(environment), device_(std::move(device)), catalogue_(catalogue_of(environment)) {
  if (const auto kept = kernel_store(std::nullopt, environment)) kernels_.emplace(*kept);
}

execution::Executable CheckTools::trusted(const Request& request) {
  if (!nvrtc_) {
    const device::DeviceInfo& info = device_->device().info();
    const auto nvrtc = device::Nvrtc::open({environment_.nvrtc});
    target_ = execution::target_for(info.cc_major, info.cc_minor, *nvrtc);
    nvrtc_ = nvrtc;
  }
  const Program program = checking::trusted_program(catalogue_, request, target_);
  return {device_, execution::compile(*nvrtc_, program, target_, kernels_ ? &*kernels_ : nullptr),
          checking::trusted_operand_names(request)};
}

LayerResult run_layer(Context& context, const std::shared_ptr<const device::ContextHandle>& device,
                      const Request& request, const LayerRun& options, CheckTools& tools) {
  try {
    return run_or_throw(context, device, request, options, tools);
  } catch (const Error& error) {
    return {.failure = error.what()};
  } catch (const std::bad_alloc&) {
    return {.failure = "out of memory on this machine"};
  }
}

}  // namespace kiln::cli
