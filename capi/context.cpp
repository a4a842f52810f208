#include "kiln/context.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "boundary.h"
#include "environment.h"
#include "explanation_json.h"
#include "handles.h"
#include "request.h"

namespace kiln::capi {
namespace {

ContextOptions options_of(const kiln_context_options* given) {
  const char* const function = "kiln_context_create";
  const kiln_context_options c = read(given, kiln_context_options_default(), function);
  require_zero(c.reserved, function, "reserved");
  ContextOptions options;
  options.device = c.device;
  options.workspace_limit = c.workspace_limit;
  options.deterministic = flag(c.deterministic, function, "deterministic");
  if (c.cache != nullptr) options.cache = c.cache;
  if (c.pack_count > 0) require(c.packs, function, "packs");
  for (const char* pack : std::span(c.packs, c.pack_count)) {
    require(pack, function, "a pack");
    options.packs.emplace_back(pack);
  }
  if (c.environment_count > 0) require(c.environment, function, "environment");
  if (c.environment != nullptr) options.environment = environment_of({c.environment, c.environment_count});
  if (c.announce != nullptr) {
    options.announce = [announce = c.announce, data = c.announce_data](std::string_view message) {
      announce(data, std::string(message).c_str());
    };
  }
  return options;
}

}  // namespace

char* copy_of(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_context_create(const kiln_context_options* options, kiln_context** context) {
  return guarded([&] {
    require(context, "kiln_context_create", "context");
    *context = new kiln_context{std::make_shared<kiln::Context>(options_of(options))};
  });
}

void kiln_context_destroy(kiln_context* context) {
  delete context;
}

kiln_status kiln_context_get_info(const kiln_context* context, kiln_context_info* info) {
  return guarded([&] {
    require(context, "kiln_context_get_info", "context");
    kiln_context_info value = kiln_context_info_default();
    value.device_description = context->context->device_description().c_str();
    value.device_id = context->context->device_id().c_str();
    write(info, value, "kiln_context_get_info");
  });
}

kiln_status kiln_context_prepare(kiln_context* context, const char* requests) {
  return guarded([&] {
    require(context, "kiln_context_prepare", "context");
    context->context->prepare(requests_of(requests, "kiln_context_prepare"));
  });
}

kiln_status kiln_context_explain(const kiln_context* context, const char* request, char** json) {
  return guarded([&] {
    require(context, "kiln_context_explain", "context");
    require(json, "kiln_context_explain", "json");
    *json = copy_of(json_of(context->context->explain(request_of(request, "kiln_context_explain"))));
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
