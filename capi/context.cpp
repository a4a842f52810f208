#include "kiln/context.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <vector>

#include "boundary.h"
#include "environment.h"
#include "handles.h"
#include "kiln/base/error.h"
#include "kiln/generator/no_code.h"
#include "request.h"

namespace kiln::capi {
namespace {

TuningMode tuning_mode_of(kiln_tuning_mode mode, std::string_view function) {
  switch (mode) {
    case KILN_TUNING_NEVER:
      return TuningMode::never;
    case KILN_TUNING_WITHIN_BUDGET:
      return TuningMode::within_budget;
    case KILN_TUNING_IN_BACKGROUND:
      return TuningMode::in_background;
    default:
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: the tuning mode is {}", function, mode),
                  "use KILN_TUNING_NEVER, KILN_TUNING_WITHIN_BUDGET or KILN_TUNING_IN_BACKGROUND");
  }
}

std::optional<FirstCall> first_call_of(kiln_first_call first, std::string_view function) {
  switch (first) {
    case KILN_FIRST_CALL_DEFAULT:
      return std::nullopt;
    case KILN_FIRST_CALL_EXACT:
      return FirstCall::exact;
    case KILN_FIRST_CALL_AT_ONCE:
      return FirstCall::at_once;
    default:
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: first_call is {}", function, first),
                  "use KILN_FIRST_CALL_DEFAULT, KILN_FIRST_CALL_EXACT or KILN_FIRST_CALL_AT_ONCE");
  }
}

// The strings of an array; throws for NULL where there should be one.
std::vector<std::string> strings_of(const char* const* values, size_t count, std::string_view function,
                                    std::string_view name) {
  if (count > 0) require(values, function, name);
  std::vector<std::string> strings;
  for (const char* value : std::span(values, count)) {
    require(value, function, fmt::format("one of {}", name));
    strings.emplace_back(value);
  }
  return strings;
}

ContextOptions options_of(const kiln_context_options* given) {
  const char* const function = "kiln_context_create";
  const kiln_context_options c = read(given, kiln_context_options_default(), function);
  require_zero(c.reserved, function, "reserved");
  ContextOptions options;
  options.device = c.device;
  options.workspace_limit = c.workspace_limit;
  if (c.kept_plans != 0) options.kept_plans = c.kept_plans;
  if (c.kept_plan_bytes != 0) options.kept_plan_bytes = c.kept_plan_bytes;
  options.first_call = first_call_of(c.first_call, function);
  options.deterministic = flag(c.deterministic, function, "deterministic");
  options.batch_invariant = flag(c.batch_invariant, function, "batch_invariant");
  if (c.cache != nullptr) options.cache = c.cache;
  options.packs = strings_of(c.packs, c.pack_count, function, "packs");
  options.bundles = strings_of(c.bundles, c.bundle_count, function, "bundles");
  options.user_templates = strings_of(c.user_templates, c.user_template_count, function, "user_templates");
  if (c.kernel_store != nullptr) options.kernel_store = c.kernel_store;
  options.locked = flag(c.locked, function, "locked");
  options.allow_failed_variants = flag(c.allow_failed_variants, function, "allow_failed_variants");
  options.allow_unchecked_templates = flag(c.allow_unchecked_templates, function, "allow_unchecked_templates");
  options.tuning = {tuning_mode_of(c.tuning_mode, function), c.tuning_budget_seconds, c.tuning_candidates};
  if (c.environment_count > 0) require(c.environment, function, "environment");
  if (c.environment != nullptr) options.environment = environment_of({c.environment, c.environment_count});
  if (c.announce != nullptr) {
    options.announce = [announce = c.announce, data = c.announce_data](std::string_view message) {
      announce(data, std::string(message).c_str());
    };
  }
  if (c.workspace_allocate != nullptr) {
    options.workspace_allocator.allocate = [allocate = c.workspace_allocate, data = c.workspace_data](
                                               size_t bytes, Stream stream) { return allocate(data, bytes, stream); };
  }
  if (c.workspace_release != nullptr) {
    options.workspace_allocator.release = [release = c.workspace_release, data = c.workspace_data](
                                              void* memory, size_t bytes, Stream stream) {
      release(data, memory, bytes, stream);
    };
  }
  return options;
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_context_create(const kiln_context_options* options, kiln_context** context) {
  return guarded([&] {
    require(context, "kiln_context_create", "context");
    *context = new kiln_context{std::make_shared<kiln::Context>(options_of(options))};
  });
}

void kiln_context_destroy(kiln_context* context) {
  destroy(context);
}

kiln_status kiln_context_get_info(const kiln_context* context, kiln_context_info* info) {
  return guarded([&] {
    require(context, "kiln_context_get_info", "context");
    kiln_context_info value = kiln_context_info_default();
    value.device_description = context->context->device_description().c_str();
    value.device_id = context->context->device_id().c_str();
    const kiln::PlanCount plans = context->context->plan_count();
    value.plans = plans.plans;
    value.plan_bytes = plans.bytes;
    value.held_plans = plans.held;
    value.given_up_plans = plans.given_up;
    write(info, value, "kiln_context_get_info");
  });
}

kiln_status kiln_context_prepare(kiln_context* context, const char* requests) {
  return guarded([&] {
    require(context, "kiln_context_prepare", "context");
    context->context->prepare(requests_of(requests, "kiln_context_prepare"));
  });
}

kiln_status kiln_context_prepare_open(kiln_context* context, const char* lines) {
  return guarded([&] {
    require(context, "kiln_context_prepare_open", "context");
    require(lines, "kiln_context_prepare_open", "lines");
    context->context->prepare_open(lines);
  });
}

kiln_status kiln_context_wait_until_tuned(kiln_context* context) {
  return guarded([&] {
    require(context, "kiln_context_wait_until_tuned", "context");
    context->context->wait_until_tuned();
  });
}

kiln_status kiln_context_explain(const kiln_context* context, const char* request, char** json) {
  return guarded([&] {
    require(context, "kiln_context_explain", "context");
    require(json, "kiln_context_explain", "json");
    *json = copy_of(to_json(context->context->explain(request_of(request, "kiln_context_explain"))));
  });
}

kiln_status kiln_requests_require_no_code(const char* requests) {
  return guarded([&] {
    require(requests, "kiln_requests_require_no_code", "requests");
    kiln::require_no_code(requests,
                          "call kiln_requests_require_no_code() only for text whose author you would not run code of");
  });
}

kiln_status kiln_request_key(const char* request, char** key) {
  return guarded([&] {
    require(key, "kiln_request_key", "key");
    *key = copy_of(request_of(request, "kiln_request_key").key());
  });
}

void kiln_string_destroy(char* text) {
  std::free(text);
}
