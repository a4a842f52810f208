#include "kiln/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "boundary.h"
#include "handles.h"
#include "kiln/base/error.h"
#include "request.h"

namespace kiln::capi {
namespace {

/// More than any request has.
constexpr size_t max_operands = 16;

template <class Number>
void copy_scalars(const Number* given, size_t count, std::string_view name, std::string_view owner,
                  std::span<Number> values) {
  if (count > values.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("kiln_plan_run: {} {} were given, {} at most {}", count, name, owner, values.size()));
  }
  if (count > 0) require(given, "kiln_plan_run", name);
  std::copy_n(given, count, values.begin());
}

RunValues values_of(const kiln_run_values* given) {
  const kiln_run_values c = read(given, kiln_run_values_default(), "kiln_plan_run");
  require_zero(c.reserved, "kiln_plan_run", "reserved");
  RunValues values;
  values.alpha = c.alpha;
  values.beta = c.beta;
  values.clip_lo = c.clip_lo;
  values.clip_hi = c.clip_hi;
  values.n = c.n;
  copy_scalars(c.scalars, c.scalar_count, "scalars", "user code has", std::span<float>(values.user));
  copy_scalars(c.operation_scalars, c.operation_scalar_count, "operation_scalars", "an operation has",
               std::span<float>(values.scalars));
  copy_scalars(c.operation_integers, c.operation_integer_count, "operation_integers", "an operation has",
               std::span<uint64_t>(values.integers));
  return values;
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_plan_create(kiln_context* context, const char* request, kiln_plan** plan) {
  return guarded([&] {
    require(context, "kiln_plan_create", "context");
    require(plan, "kiln_plan_create", "plan");
    const kiln::Plan made = context->context->plan(request_of(request, "kiln_plan_create"));
    *plan = new kiln_plan{context->context, made, made.request().key(), made.variant(), made.source()};
  });
}

void kiln_plan_destroy(kiln_plan* plan) {
  delete plan;
}

kiln_status kiln_plan_get_info(const kiln_plan* plan, kiln_plan_info* info) {
  return guarded([&] {
    require(plan, "kiln_plan_get_info", "plan");
    kiln_plan_info value = kiln_plan_info_default();
    value.deterministic = plan->plan.deterministic() ? 1 : 0;
    value.workspace_bytes = plan->plan.workspace_bytes();
    value.request = plan->request.c_str();
    value.variant = plan->variant.c_str();
    value.source = plan->source.c_str();
    value.operand_count = plan->plan.request().operands.size();
    write(info, value, "kiln_plan_get_info");
  });
}

kiln_status kiln_plan_run(const kiln_plan* plan, kiln_stream stream, const void* const* operands, size_t operand_count,
                          void* workspace, const kiln_run_values* values) {
  return guarded([&] {
    require(plan, "kiln_plan_run", "plan");
    require(operands, "kiln_plan_run", "operands");
    if (operand_count > max_operands) {
      throw kiln::Error(
          kiln::ErrorCode::invalid_argument,
          fmt::format("{} operands were given, expected {}", operand_count, plan->plan.request().operands.size()),
          fmt::format("the request is {}", plan->request));
    }
    std::array<kiln::Address, max_operands> addresses;
    std::copy_n(operands, operand_count, addresses.begin());
    plan->plan.run(stream, std::span<const kiln::Address>(addresses.data(), operand_count), workspace,
                   values_of(values));
  });
}
