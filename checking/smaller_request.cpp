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

// Returns as much of `extent` as `share` of it affords, but at least `least`.
int64_t affordable_extent(int64_t extent, double share, int64_t least) {
  return std::max(least, static_cast<int64_t>(static_cast<double>(extent) * share));
}

// An extent from `least` to `most` that stands for `extent`.
int64_t smaller_extent(int64_t extent, int64_t least, int64_t most) {
  for (int64_t alike = 16;; alike /= 2) {
    int64_t n = extent % alike;
    while (n < least) n += alike;
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
  const int64_t most = affordable_extent(batch, share, 2);
  const int64_t n = request.dynamic_batch ? batch_bucket(most / 2 + 1) : smaller_extent(batch, 2, most);
  Request smaller = request;
  for (Operand& operand : smaller.operands) {
    if (is_batched(request, operand.name)) operand.spec.extents.front() = n;
  }
  return finished_or_none(std::move(smaller));
}

// The operands between which windows move: those of the extents of the image, and those with a place for each window.
// No images for all operations without windows, and for local convolutions, which tie filters to places.
struct Windows {
  std::vector<std::string_view> images, outputs;
};

Windows windows_of(const Request& request) {
  const auto& attributes = operation(request.operation).attributes();
  const auto has = [&](std::string_view name) {
    return std::any_of(attributes.begin(), attributes.end(), [&](const auto& one) { return one.name == name; });
  };
  if (!has("stride") || !has("dilation") || has("grid")) return {};
  if (request.operation == "unpool_backward") return {{"dy"}, {"dx", "indices"}};
  return {{"x", "dx"}, {"y", "dy", "indices"}};
}

const TensorSpec& spec_of_any(const Request& request, const std::vector<std::string_view>& names) {
  const auto given = [&](std::string_view name) { return request.find(name) != nullptr; };
  return request.at(*std::find_if(names.begin(), names.end(), given));
}

// `spec` with another extent. Where it has no gaps, it has none afterwards.
TensorSpec with_extent(const TensorSpec& spec, size_t dimension, int64_t extent) {
  TensorSpec changed = spec;
  changed.extents[dimension] = extent;
  const std::optional<std::string> order = spec.order();
  return order ? TensorSpec::packed(spec.dtype, changed.extents, *order, spec.alignment) : changed;
}

// Fewer outputs along a spatial dimension, about `least` or more, and as many windows fewer over the image: what
// windows leave over at its end stays what it was.
std::optional<Request> with_fewer_outputs(const Request& request, const Windows& windows, size_t dimension,
                                          double share, int64_t least) {
  const TensorSpec& image = spec_of_any(request, windows.images);
  const int64_t outputs = spec_of_any(request, windows.outputs).extents[dimension];
  const int64_t stride = request.ints("stride").at(dimension - 2);
  // Where windows cover padding alone, there are enough that something is left of the image.
  const int64_t needed = std::max<int64_t>(2, outputs - (image.extents[dimension] - 1) / stride);
  const int64_t most = std::max(needed, affordable_extent(outputs, share, least));
  if (outputs <= most) return std::nullopt;
  const int64_t fewer = outputs - smaller_extent(outputs, needed, most);
  const int64_t fewer_inputs = fewer * stride;
  const std::string& result = result_of(request).name;
  Request smaller = request;
  for (auto& [name, spec] : smaller.operands) {
    const std::string_view like = name == "residual" || is_epilogue_operand(name) ? result : name;
    const bool is_image = std::count(windows.images.begin(), windows.images.end(), like) > 0;
    const bool is_output = std::count(windows.outputs.begin(), windows.outputs.end(), like) > 0;
    if ((!is_image && !is_output) || spec.rank() != image.rank()) continue;  // a filter, or numbers of channels
    if (spec.extents[dimension] == 1) continue;                              // repeats
    spec = with_extent(spec, dimension, spec.extents[dimension] - (is_image ? fewer_inputs : fewer));
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
  const Windows windows = windows_of(request);
  const size_t rank = windows.images.empty() ? 0 : spec_of_any(request, windows.images).extents.size();
  // At first as many as large tiles need: a tile may be refused where most of it would be idle.
  for (const int64_t least : {24, 2}) {
    for (size_t dimension = 2; dimension < rank; ++dimension) {
      share = affordable_share(now(), options);
      if (share < 1) take(with_fewer_outputs(now(), windows, dimension, share, least));
    }
  }
  return smaller;
}

}  // namespace kiln::checking
