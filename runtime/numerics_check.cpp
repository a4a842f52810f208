#include "numerics_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "host_memory.h"
#include "kiln/base/error.h"
#include "kiln/device/memory.h"
#include "kiln/device/stream.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/tensor_memory.h"
#include "loaded_plan.h"

namespace kiln {
namespace {

/// Elements of a tensor that are no numbers.
struct Found {
  int64_t nan = 0, infinite = 0;
  std::vector<int64_t> first;  // coordinates of the first of either
};

Found find(const TensorSpec& spec, const std::vector<std::byte>& bytes, bool has_minus_infinity) {
  Found found;
  reference::for_each_coordinate(spec, [&](std::span<const int64_t> at) {
    const double value = reference::read(spec, bytes, at);
    if (std::isfinite(value) || (has_minus_infinity && std::isinf(value) && value < 0)) return;
    if (found.first.empty()) found.first.assign(at.begin(), at.end());
    ++(std::isnan(value) ? found.nan : found.infinite);
  });
  return found;
}

std::string text_of(const Found& found, int64_t elements) {
  return fmt::format("{} NaN and {} infinite of {} elements, the first at [{}]", found.nan, found.infinite, elements,
                     fmt::join(found.first, ", "));
}

}  // namespace

void NumericsCheck::look_at_operands(const LoadedPlan& plan, cuda_abi::CUstream stream,
                                     std::span<const cuda_abi::CUdeviceptr> operands, int64_t n) {
  with_host_memory([&] { look(plan, stream, operands, n, false); });
}

void NumericsCheck::look_at_results(const LoadedPlan& plan, cuda_abi::CUstream stream,
                                    std::span<const cuda_abi::CUdeviceptr> operands, int64_t n) {
  with_host_memory([&] { look(plan, stream, operands, n, true); });
}

void NumericsCheck::look(const LoadedPlan& plan, cuda_abi::CUstream stream,
                         std::span<const cuda_abi::CUdeviceptr> operands, int64_t n, bool at_results) {
  const device::ContextHandle& context = *plan.executable.context();
  if (device::is_capturing(context, stream)) {
    const std::string what = "KILN_CHECK_NUMERICS: calls within a capture are not looked at";
    if (is_new(what)) announce_(what);
    return;
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = plan.request.operands[i];
    const bool is_meant = at_results ? is_written(plan.request, operand.name) : is_read(plan.request, operand.name);
    TensorSpec spec = operand.spec;
    if (plan.request.dynamic_batch && is_batched(plan.request, operand.name)) spec.extents.front() = n;
    if (!is_meant || !is_floating(spec.dtype) || operands[i] == 0 || spec.elements() == 0) continue;
    std::vector<std::byte> bytes(static_cast<size_t>(reference::byte_span(spec)));
    device::copy_to_host(context, bytes.data(), operands[i], bytes.size(), stream);
    device::synchronize(context, stream);
    const Found found = find(spec, bytes, has_minus_infinity(plan.request, operand.name));
    if (found.nan + found.infinite == 0) continue;
    tell(plan.key, fmt::format("{} {} holds {}", at_results ? "result" : "operand", operand.name,
                               text_of(found, spec.elements())));
  }
}

void NumericsCheck::tell(const std::string& request, const std::string& found) {
  const std::string message = fmt::format("{}: {}", request, found);
  if (policy_ == NumericsPolicy::error) {
    throw Error(ErrorCode::not_finite, message, "KILN_CHECK_NUMERICS=error asked for this error");
  }
  // Once for each request and operand: "operand x", "result y".
  if (!is_new(request + found.substr(0, found.find(" holds")))) return;
  announce_(message);
}

bool NumericsCheck::is_new(const std::string& what) {
  const std::lock_guard lock(mutex_);
  return said_.insert(what).second;
}

}  // namespace kiln
