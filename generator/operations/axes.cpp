#include "operations/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kiln/generator/batch_invariance.h"
#include "operations/spatial.h"
#include "text_parsing.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

bool is_axis(const Request& request, size_t dimension) {
  const Ints& axes = request.ints("axes");
  return std::find(axes.begin(), axes.end(), static_cast<int64_t>(dimension)) != axes.end();
}

Ints with_ones(const Request& request, Ints extents, bool along_axes) {
  for (size_t i = 0; i < extents.size(); ++i) {
    if (is_axis(request, i) == along_axes) extents[i] = 1;
  }
  return extents;
}

}  // namespace

std::optional<std::string> why_axes_mix_images(const Ints& axes, std::string_view what) {
  if (std::find(axes.begin(), axes.end(), 0) == axes.end()) return std::nullopt;
  return fmt::format("the batch {}", what);
}

size_t dimensions_before_axes(const Request& request, const Ints& axes, std::string_view operand) {
  if (!is_batched(request, operand)) return 0;
  size_t count = axes.empty() ? 0 : static_cast<size_t>(axes.front());
  for (const OperandDefinition& definition : operation(request.operation).operands()) {
    const TensorSpec* spec = definition.batched ? nullptr : request.find(definition.name);
    size_t repeated = 0;
    while (spec != nullptr && repeated < spec->extents.size() && spec->extents[repeated] == 1) ++repeated;
    if (spec != nullptr) count = std::min(count, repeated);
  }
  const auto are_outer = [&](size_t images) {
    return std::all_of(request.operands.begin(), request.operands.end(), [&](const Operand& one) {
      return !is_batched(request, one.name) || images_follow_each_other(one.spec, images);
    });
  };
  while (count > 1 && !are_outer(count)) --count;
  return count;
}

AttributeDefinition axes_attribute(Ints fallback, std::string_view what) {
  std::string summary = fmt::format("{}; negative numbers count from the end", what);
  if (fallback.empty()) summary += "; left out, they are all";
  return {"axes", std::move(fallback), Printing::always, {}, std::move(summary)};
}

void complete_axes(Request& request, std::string_view operand) {
  const TensorSpec* spec = request.find(operand);
  Ints axes = given_ints(request, "axes");
  if (spec == nullptr) return;
  const int64_t rank = spec->rank();
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), int64_t{0});
  }
  for (int64_t& axis : axes) {
    if (axis < 0 && axis >= -rank) axis += rank;
  }
  std::sort(axes.begin(), axes.end());
  set_ints(request, "axes", axes);
}

void check_axes(const Request& request, std::string_view operand) {
  const int rank = request.at(operand).rank();
  const Ints& axes = request.ints("axes");
  for (const int64_t axis : axes) {
    if (axis >= 0 && axis < rank) continue;
    refuse(request, fmt::format("axis {} is outside the {} dimensions of {}", axis, rank, operand),
           fmt::format("give 0 to {}, or -1 for the last", rank - 1));
  }
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) {
    refuse(request, "an axis stands twice", "give each once");
  }
  if (request.dynamic_batch && axes.front() == 0) {
    refuse(request, "the batch cannot be dynamic along one of the axes", "fix the batch");
  }
}

std::string axes_words(const Request& request) {
  return text::join(request.ints("axes"), ",");
}

Ints reduced_extents(const Request& request, const Ints& extents) {
  return with_ones(request, extents, true);
}

Ints extents_of_axes(const Request& request, const Ints& extents) {
  return with_ones(request, extents, false);
}

}  // namespace kiln
