#include "kiln/generator/batch_invariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "kiln/generator/operation.h"

namespace kiln {
namespace {

// An image of `spec`, whose `images` leading dimensions count images.
TensorSpec image_of(TensorSpec spec, size_t images) {
  const auto count = static_cast<std::ptrdiff_t>(images);
  spec.extents.erase(spec.extents.begin(), spec.extents.begin() + count);
  spec.strides.erase(spec.strides.begin(), spec.strides.begin() + count);
  return spec;
}

}  // namespace

bool images_follow_each_other(const TensorSpec& spec, size_t images) {
  const int64_t image = image_of(spec, images).span();
  for (size_t d = 0; d < images; ++d) {
    const bool matters = spec.extents[d] > 1 && spec.strides[d] != 0;
    if (matters && spec.strides[d] < image) return false;
  }
  return true;
}

std::optional<std::string> why_batch_is_inside(const Request& request) {
  const Operation& definition = operation(request.operation);
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
  request.batch_invariant |=
      definition.has_order_of_sums() && !definition.why_images_mix(request) && !why_batch_is_inside(request);
  return request;
}

Request with_reference_batch(const Request& request, int64_t n) {
  constexpr int64_t apart = 16;  // elements: a multiple of the longest access of every dtype
  const Operation& definition = operation(request.operation);
  const size_t last = std::max<size_t>(definition.batch_dimensions(request, result_of(request).name), 1) - 1;
  // Tensors of a prologue that are of images count them, as operands do; others of users may repeat whatever the batch.
  const auto counts = [&](const Operand& operand) {
    if (is_prologue_operand(operand.name)) return true;
    const auto found = std::ranges::find(definition.operands(), operand.name, &OperandDefinition::name);
    return found != definition.operands().end() && found->batched;
  };
  Request reference = request;
  reference.dynamic_batch = false;
  for (Operand& operand : reference.operands) {
    TensorSpec& spec = operand.spec;
    const size_t images = definition.batch_dimensions(request, operand.name);
    const int64_t distance = (image_of(spec, images).span() + apart - 1) / apart * apart;
    for (size_t d = 0; d < images; ++d) {
      spec.extents[d] = d == last && counts(operand) ? n : 1;
      spec.strides[d] = distance;
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
