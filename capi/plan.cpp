#include "kiln/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "boundary.h"
#include "handles.h"
#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/run_values.h"
#include "request.h"

namespace kiln::capi {
namespace {

/// More than any request has: its operation's, at most 16, and those of user code, at most 8.
constexpr size_t max_operands = 24;

// Numbers of a run under the name that kiln_run_values has for them.
template <class Number>
struct Given {
  const char* function;
  std::string_view name;
  const Number* numbers;
  size_t count;
};

// "conv_forward takes none", "user code takes 2: bias, scale".
std::string taken_by(std::string_view owner, const std::vector<std::string>& names) {
  if (names.empty()) return fmt::format("{} takes none", owner);
  return fmt::format("{} takes {}: {}", owner, names.size(), fmt::join(names, ", "));
}

template <class Number>
[[noreturn]] void refuse_count(const Given<Number>& given, const std::string& expected) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: {} {} were given, {}", given.function, given.count, given.name, expected));
}

template <class Number>
void copy_numbers(const Given<Number>& given, std::span<Number> values) {
  if (given.count > 0) require(given.numbers, given.function, given.name);
  std::copy_n(given.numbers, given.count, values.begin());
}

template <class Definitions>
std::vector<std::string> names_in(const Definitions& definitions) {
  std::vector<std::string> names;
  for (const auto& definition : definitions) names.emplace_back(definition.name);
  return names;
}

// Fewer than the operation takes: the others are the usual ones.
template <class Number, class Definitions>
void copy_of_operation(const Given<Number>& given, const Request& request, const Definitions& definitions,
                       std::span<Number> values) {
  if (given.count > definitions.size()) refuse_count(given, taken_by(request.operation, names_in(definitions)));
  copy_numbers(given, values);
}

// All that the code reads, or none. A bundle may serve code of which nobody here has the text.
void copy_of_user_code(const Given<float>& given, const Request& request, std::span<float> values) {
  if (lacks_user_text(request)) {
    if (given.count > values.size()) refuse_count(given, fmt::format("user code takes at most {}", values.size()));
    return copy_numbers(given, values);
  }
  const Expression* const code = request.user_code.expression();
  const std::vector<std::string> names = code == nullptr ? std::vector<std::string>() : code->scalars();
  const std::string_view owner = code == nullptr ? "a request without user code" : "its user code";
  if (given.count != 0 && given.count != names.size()) refuse_count(given, taken_by(owner, names));
  copy_numbers(given, values);
}

// Values of a run; those that are not given are what calls of `request` usually have.
RunValues values_of(const char* function, const kiln_run_values* given, const Request& request) {
  const kiln_run_values c = read(given, kiln_run_values_default(), function);
  require_zero(c.reserved, function, "reserved");
  RunValues values = usual_values(request);
  values.alpha = c.alpha;
  values.beta = c.beta;
  values.clip_lo = c.clip_lo;
  values.clip_hi = c.clip_hi;
  values.n = c.n;
  const Operation& of = operation(request.operation);
  copy_of_user_code({function, "scalars", c.scalars, c.scalar_count}, request, values.scalars);
  copy_of_operation(Given<float>{function, "operation_scalars", c.operation_scalars, c.operation_scalar_count}, request,
                    of.scalars(), std::span<float>(values.operation_scalars));
  copy_of_operation(Given<uint64_t>{function, "operation_integers", c.operation_integers, c.operation_integer_count},
                    request, of.integers(), std::span<uint64_t>(values.operation_integers));
  return values;
}

// The addresses that a C function was given.
class Addresses {
 public:
  Addresses(const char* function, const kiln_plan* plan, const void* const* operands, size_t count) : count_(count) {
    require(plan, function, "plan");
    require(operands, function, "operands");
    if (count > max_operands) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} operands were given, expected {}", count, plan->operands.size()),
                  fmt::format("kiln_plan_get_operand() names them; the request is {}", plan->request));
    }
    std::copy_n(operands, count, addresses_.begin());
  }
  std::span<const Address> get() const { return {addresses_.data(), count_}; }

 private:
  std::array<Address, max_operands> addresses_;
  size_t count_;
};

static_assert(static_cast<int>(OperandRole::input) == KILN_OPERAND_INPUT &&
              static_cast<int>(OperandRole::output) == KILN_OPERAND_OUTPUT &&
              static_cast<int>(OperandRole::updated) == KILN_OPERAND_UPDATED);
static_assert(static_cast<int>(DType::f32) == KILN_F32 && static_cast<int>(DType::f16) == KILN_F16 &&
              static_cast<int>(DType::bf16) == KILN_BF16 && static_cast<int>(DType::i32) == KILN_I32 &&
              static_cast<int>(DType::i8) == KILN_I8 && static_cast<int>(DType::u8) == KILN_U8 &&
              static_cast<int>(DType::f8e4m3) == KILN_F8E4M3 && static_cast<int>(DType::f8e5m2) == KILN_F8E5M2 &&
              all_dtypes.size() == KILN_F8E5M2 + 1);

std::vector<std::string> texts_of(const std::vector<PlanOperand>& operands) {
  std::vector<std::string> texts;
  for (const PlanOperand& operand : operands) texts.push_back(operand.spec.print());
  return texts;
}

}  // namespace

kiln_plan* new_plan(const kiln_context& context, const Plan& plan) {
  const std::vector<PlanOperand> operands = plan.operands();
  return new kiln_plan{context.context, plan,     plan.request().key(), plan.variant(),
                       plan.source(),   operands, texts_of(operands)};
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_plan_create(kiln_context* context, const char* request, kiln_plan** plan) {
  return guarded([&] {
    require(context, "kiln_plan_create", "context");
    require(plan, "kiln_plan_create", "plan");
    *plan = new_plan(*context, context->context->plan(request_of(request, "kiln_plan_create")));
  });
}

void kiln_plan_destroy(kiln_plan* plan) {
  destroy(plan);
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
    value.operand_count = plan->operands.size();
    value.prepared_bytes = plan->plan.prepared_bytes();
    write(info, value, "kiln_plan_get_info");
  });
}

kiln_status kiln_plan_get_operand(const kiln_plan* plan, size_t index, kiln_operand_info* info) {
  return guarded([&] {
    require(plan, "kiln_plan_get_operand", "plan");
    if (index >= plan->operands.size()) {
      throw kiln::Error(
          kiln::ErrorCode::invalid_argument,
          fmt::format("kiln_plan_get_operand: there is no operand {}: the plan has {}", index, plan->operands.size()),
          "kiln_plan_info has operand_count");
    }
    const kiln::PlanOperand& operand = plan->operands[index];
    kiln_operand_info value = kiln_operand_info_default();
    value.role = static_cast<kiln_operand_role>(operand.role);
    value.name = operand.name.c_str();
    value.text = plan->operand_texts[index].c_str();
    value.dtype = static_cast<kiln_dtype>(operand.spec.dtype);
    value.rank = operand.spec.rank();
    std::copy(operand.spec.extents.begin(), operand.spec.extents.end(), value.extents);
    std::copy(operand.spec.strides.begin(), operand.spec.strides.end(), value.strides);
    value.alignment = operand.spec.alignment;
    value.bytes = operand.spec.span() * size_of(operand.spec.dtype);
    value.has_batch = operand.has_batch ? 1 : 0;
    write(info, value, "kiln_plan_get_operand");
  });
}

kiln_status kiln_plan_run(const kiln_plan* plan, kiln_stream stream, const void* const* operands, size_t operand_count,
                          void* workspace, const kiln_run_values* values) {
  return guarded([&] {
    constexpr const char* name = "kiln_plan_run";
    const Addresses addresses(name, plan, operands, operand_count);
    plan->plan.run(stream, addresses.get(), workspace, values_of(name, values, plan->plan.request()));
  });
}

kiln_status kiln_plan_prepare_weights(const kiln_plan* plan, kiln_stream stream, const void* const* operands,
                                      size_t operand_count, void* prepared) {
  return guarded([&] {
    const Addresses addresses("kiln_plan_prepare_weights", plan, operands, operand_count);
    plan->plan.prepare_weights(stream, addresses.get(), prepared);
  });
}

kiln_status kiln_plan_run_prepared(const kiln_plan* plan, kiln_stream stream, const void* const* operands,
                                   size_t operand_count, const void* prepared, void* workspace,
                                   const kiln_run_values* values) {
  return guarded([&] {
    constexpr const char* name = "kiln_plan_run_prepared";
    const Addresses addresses(name, plan, operands, operand_count);
    plan->plan.run_prepared(stream, addresses.get(), prepared, workspace,
                            values_of(name, values, plan->plan.request()));
  });
}
