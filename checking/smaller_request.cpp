#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/checking/check.h"
#include "kiln/generator/operation.h"

namespace kiln::checking {
namespace {

// How much of the work and traffic of `request` one run may have; 1 or more: all of it.
double affordable_share(const Request& request, const CheckOptions& options) {
  const Work work = operation(request.operation).work(request);
  return std::min(options.smaller_flops / std::max(1.0, work.flops),
                  options.smaller_bytes / std::max(1.0, work.read_bytes + work.write_bytes));
}

// Of an extent above 2, as much as `share` of it affords, but at least 2.
int64_t affordable_extent(int64_t extent, double share) {
  return std::max<int64_t>(2, static_cast<int64_t>(static_cast<double>(extent) * share));
}

// An extent of 2 to `most`, or 2, that stands for `extent`.
int64_t smaller_extent(int64_t extent, int64_t most) {
  for (int64_t alike = 16;; alike /= 2) {
    int64_t n = extent % alike;
    while (n < 2) n += alike;
    if (n <= most) return n + (most - n) / alike * alike;
  }
}

// `request` as finished() completes it; nothing if an attribute tells the extents, too, and tells others.
std::optional<Request> finished_or_none(Request request) {
  try {
    return finished(std::move(request));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    return std::nullopt;
  }
}

std::optional<Request> with_smaller_batch(const Request& request, double share) {
  const int64_t batch = request.batch();
  if (batch <= 2) return std::nullopt;
  const int64_t most = affordable_extent(batch, share);
  const int64_t n = request.dynamic_batch ? batch_bucket(most / 2 + 1) : smaller_extent(batch, most);
  Request smaller = request;
  for (Operand& operand : smaller.operands) {
    if (is_batched(request, operand.name)) operand.spec.extents.front() = n;
  }
  return finished_or_none(std::move(smaller));
}

// The operand over which the windows of a convolution, of pooling, or of a gradient of these move; null for all other
// operations, and for local convolutions, which tie filters to places.
const Operand* windowed_operand(const Request& request) {
  const auto& attributes = operation(request.operation).attributes();
  const auto has = [&](std::string_view name) {
    return std::any_of(attributes.begin(), attributes.end(), [&](const auto& one) { return one.name == name; });
  };
  if (!has("stride") || !has("dilation") || has("grid")) return nullptr;
  for (const Operand& operand : request.operands) {
    if (operand.name == "x" || operand.name == "dx") return &operand;
  }
  return nullptr;
}

// `spec` with another extent. Where it has no gaps, it has none afterwards.
TensorSpec with_extent(const TensorSpec& spec, size_t dimension, int64_t extent) {
  TensorSpec changed = spec;
  changed.extents[dimension] = extent;
  const std::optional<std::string> order = spec.order();
  return order ? TensorSpec::packed(spec.dtype, changed.extents, *order, spec.alignment) : changed;
}

// Fewer outputs along a spatial dimension of `x`, the windowed operand, and as many windows fewer over it: what windows
// leave over at its end stays what it was.
std::optional<Request> with_fewer_outputs(const Request& request, const Operand& x, size_t dimension, double share) {
  const TensorSpec* y = request.find("y") != nullptr ? request.find("y") : request.find("dy");
  const int64_t outputs = y->extents[dimension];
  if (outputs <= 2) return std::nullopt;
  const int64_t fewer = outputs - smaller_extent(outputs, affordable_extent(outputs, share));
  const int64_t fewer_inputs = fewer * request.ints("stride").at(dimension - 2);
  if (x.spec.extents[dimension] <= fewer_inputs) return std::nullopt;
  Request smaller = request;
  for (Operand& operand : smaller.operands) {
    if (operand.name == "w" || operand.name == "dw" || operand.spec.rank() != x.spec.rank()) continue;
    const bool is_input = operand.name == "x" || operand.name == "dx" || operand.name.starts_with(user_prologue_prefix);
    operand.spec =
        with_extent(operand.spec, dimension, operand.spec.extents[dimension] - (is_input ? fewer_inputs : fewer));
  }
  return finished_or_none(std::move(smaller));
}

}  // namespace

std::optional<Request> smaller_request(const Request& request, const CheckOptions& options) {
  std::optional<Request> smaller;
  const auto now = [&]() -> const Request& { return smaller ? *smaller : request; };
  const auto take = [&](std::optional<Request> made) {
    if (made) smaller = std::move(made);
  };
  double share = affordable_share(request, options);
  if (share < 1) take(with_smaller_batch(request, share));
  const Operand* x = windowed_operand(request);
  for (size_t dimension = 2; x != nullptr && dimension < x->spec.extents.size(); ++dimension) {
    share = affordable_share(now(), options);
    if (share < 1) take(with_fewer_outputs(now(), *x, dimension, share));
  }
  return smaller;
}

}  // namespace kiln::checking
