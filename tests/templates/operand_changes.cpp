#include "operand_changes.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"

namespace kiln::testing_support {
namespace {

// Dimensions of more than one element, innermost first.
std::vector<size_t> inside_out(const TensorSpec& spec) {
  std::vector<size_t> order;
  for (size_t i = 0; i < spec.extents.size(); ++i) {
    if (spec.extents[i] > 1) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return spec.strides[a] < spec.strides[b]; });
  return order;
}

}  // namespace

TensorSpec with_odd_strides(TensorSpec spec) {
  int64_t reach = 0;  // of an element of the dimensions inside
  for (const size_t i : inside_out(spec)) {
    if (reach > 0) spec.strides[i] = (reach + 1) | 1;
    reach += spec.strides[i] * (spec.extents[i] - 1);
  }
  return spec;
}

TensorSpec with_opposite_order(TensorSpec spec) {
  std::vector<size_t> order = inside_out(spec);
  std::reverse(order.begin(), order.end());
  int64_t stride = 1;
  for (const size_t i : order) {
    spec.strides[i] = stride;
    stride *= spec.extents[i];
  }
  return spec;
}

std::optional<TensorSpec> with_wide_strides(TensorSpec spec) {
  const std::vector<size_t> order = inside_out(spec);
  if (order.empty()) return std::nullopt;
  const size_t outermost = order.back();
  spec.strides[outermost] = (int64_t{1} << 31) / (spec.extents[outermost] - 1) + 1;
  return spec;
}

std::optional<Request> with_operand(Request request, const std::string& name, const TensorSpec& spec) {
  const auto found = std::find_if(request.operands.begin(), request.operands.end(),
                                  [&](const Operand& operand) { return operand.name == name; });
  found->spec = spec;
  try {
    return finished(std::move(request));
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace kiln::testing_support
