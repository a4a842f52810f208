#include "kiln/generator/batch_invariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kiln/generator/operation.h"

namespace kiln {
namespace {

// Elements from the first of an image to one past its last. `images`: the leading dimensions that count images.
int64_t span_of_image(const TensorSpec& spec, size_t images) {
  int64_t last = 0;
  for (size_t d = images; d < spec.extents.size(); ++d) {
    if (spec.extents[d] == 0) return 0;
    last += (spec.extents[d] - 1) * spec.strides[d];
  }
  return last + 1;
}

}  // namespace

bool images_follow_each_other(const TensorSpec& spec, size_t images) {
  const int64_t image = span_of_image(spec, images);
  for (size_t d = 0; d < images; ++d) {
    const bool matters = spec.extents[d] > 1 && spec.strides[d] != 0;
    if (matters && spec.strides[d] < image) return false;
  }
  return true;
}

std::optional<std::string> why_batch_matters(const Request& request) {
  const Operation& definition = operation(request.operation);
  if (auto why = definition.why_images_mix(request)) return why;
  if (definition.batch_dimensions(request, result_of(request).name) == 0) {
    return "an operand that repeats in other requests has an element for each image";
  }
  for (const Operand& operand : request.operands) {
    const size_t images = definition.batch_dimensions(request, operand.name);
    if (images_follow_each_other(operand.spec, images)) continue;
    return fmt::format("the batch lies inside other dimensions of {}, whose strides change with it", operand.name);
  }
  return std::nullopt;
}

Request batch_invariant_if_it_can_be(Request request) {
  const Operation& definition = operation(request.operation);
  request.batch_invariant |= definition.has_order_of_sums() && !why_batch_matters(request);
  return request;
}

Request with_reference_batch(const Request& request, int64_t n) {
  constexpr int64_t apart = 16;  // elements: a multiple of the longest access of every dtype
  const Operation& definition = operation(request.operation);
  const size_t last = std::max<size_t>(definition.batch_dimensions(request, result_of(request).name), 1) - 1;
  const auto counts = [&](const Operand& operand) {  // others, as those of users, may repeat whatever the batch
    const auto found = std::ranges::find(definition.operands(), operand.name, &OperandDefinition::name);
    return found != definition.operands().end() && found->batched;
  };
  Request reference = request;
  reference.dynamic_batch = false;
  for (Operand& operand : reference.operands) {
    TensorSpec& spec = operand.spec;
    const size_t images = definition.batch_dimensions(request, operand.name);
    for (size_t d = 0; d < images; ++d) {
      spec.extents[d] = d == last && counts(operand) ? n : 1;
      spec.strides[d] = (span_of_image(spec, images) + apart - 1) / apart * apart;
    }
    spec.alignment = default_alignment;
    spec.canonicalise();
  }
  return reference;
}

DeviceFigures reference_figures() {
  DeviceFigures figures;
  figures.sms = 100;
  figures.clock_hz = 1.5e9;
  figures.dram_bytes_per_second = 1.5e12;
  figures.l2_bytes = int64_t{40} << 20;
  return figures;
}

}  // namespace kiln
