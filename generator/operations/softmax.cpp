#include "operations/softmax.h"

#include <fmt/format.h>

#include "operations/axes.h"
#include "operations/short_form.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

}  // namespace

std::string_view to_string(SoftmaxMode mode) {
  switch (mode) {
    case SoftmaxMode::accurate:
      return "accurate";
    case SoftmaxMode::log:
      return "log";
  }
  return "?";
}

const std::vector<AttributeDefinition>& SoftmaxOperation::attributes() const {
  static const std::vector<AttributeDefinition> definitions = {
      {"axis", Ints{1}, Printing::always, {}, "the dimension that is normalised; negative numbers count from the end"},
      {"mode",
       std::string("accurate"),
       Printing::always,
       {"accurate", "log"},
       "accurate: exp(x - max) / sum(exp(x - max)). log: x - max - log(sum(exp(x - max)))"},
  };
  return definitions;
}

std::optional<std::string> SoftmaxOperation::why_images_mix(const Request& request) const {
  return why_axes_mix_images(request.ints("axis"), "is normalised");
}

size_t SoftmaxOperation::batch_dimensions(const Request& request, std::string_view operand) const {
  return dimensions_before_axes(request, request.ints("axis"), operand);
}

void SoftmaxOperation::complete_attributes(Request& request) const {
  expand(request, "axis", 1, 1);
  const TensorSpec* first = request.find(operands().front().name);
  const int64_t axis = request.ints("axis").front();
  if (first != nullptr && axis < 0 && axis >= -first->rank()) set_ints(request, "axis", {axis + first->rank()});
}

std::optional<TensorSpec> SoftmaxOperation::implied_operand(const Request& request, std::string_view operand) const {
  const TensorSpec* first = request.find(operands().front().name);
  if (operand == operands().front().name || first == nullptr) return std::nullopt;
  return laid_out_like(*first, first->extents);
}

void SoftmaxOperation::validate(const Request& request) const {
  const std::string& name = operands().front().name;
  const TensorSpec& first = request.at(name);
  const int64_t axis = request.ints("axis").front();
  if (first.rank() < 1) refuse(request, fmt::format("{} must have 1 to 5 dimensions", name), "");
  if (axis < 0 || axis >= first.rank()) {
    refuse(request, fmt::format("axis {} is outside the {} dimensions of {}", axis, first.rank(), name),
           fmt::format("give 0 to {}, or -1 for the last", first.rank() - 1));
  }
  if (request.dynamic_batch && axis == 0) {
    refuse(request, "the batch cannot be dynamic along the axis that is normalised", "fix the batch");
  }
  for (size_t i = 1; i < operands().size(); ++i) {
    const std::string& other = operands()[i].name;
    require_extents(request, other, request.at(other), first.extents, "those of " + name);
  }
}

std::string SoftmaxOperation::softmax_words(const Request& request) {
  return fmt::format("{}softmax {}, axis {}", request.word("mode") == "log" ? "log-" : "", result_words(request),
                     request.ints("axis").front());
}

Work SoftmaxOperation::work(const Request& request) const {
  Work work;
  for (const OperandDefinition& definition : operands()) {
    const TensorSpec& spec = request.at(definition.name);
    const double bytes = bytes_of(spec);
    const bool result = definition.role == Role::output;
    (result ? work.write_bytes : work.read_bytes) += bytes;
    if (result && request.blend.beta != Scale::zero) work.read_bytes += bytes;
    if (result) work.flops = flops_per_element() * static_cast<double>(spec.elements());
  }
  return work;
}

}  // namespace kiln
