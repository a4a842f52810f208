#include "recurrent/recurrence.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {
namespace {

void add_operand(Prelude& prelude, const std::string& name, std::string_view dimensions, const TensorSpec& spec) {
  prelude.type("T" + name, spec.dtype);
  add_strides(prelude, name, dimensions, spec);
}

// An operand that may be missing.
void add_optional(Prelude& prelude, const std::string& name, std::string_view dimensions,
                  const std::optional<TensorSpec>& spec) {
  prelude.flag("WITH_" + name, spec.has_value());
  const std::vector<int64_t> none(dimensions.size(), 0);
  add_operand(prelude, name, dimensions, spec.value_or(TensorSpec{DType::f32, none, none, 4}));
}

std::vector<const TensorSpec*> tensors_of(const RecurrentForward& layer) {
  std::vector<const TensorSpec*> tensors = {&layer.gates, &layer.r, &layer.y};
  for (const auto* optional :
       {&layer.r_bias, &layer.peepholes, &layer.h0, &layer.c0, &layer.lengths, &layer.hn, &layer.cn}) {
    if (*optional) tensors.push_back(&**optional);
  }
  return tensors;
}

}  // namespace

Prelude recurrent_prelude(const RecurrentForward& layer) {
  Prelude prelude;
  bool is_wide = false;
  for (const TensorSpec* tensor : tensors_of(layer)) is_wide = is_wide || needs_wide_index({tensor});
  prelude.index_type("Index", is_wide);
  add_operand(prelude, "GATES", "NTDU", layer.gates);
  add_operand(prelude, "R", "DGU", layer.r);
  add_operand(prelude, "Y", "NTDU", layer.y);
  add_optional(prelude, "R_BIAS", "DG", layer.r_bias);
  add_optional(prelude, "PEEPHOLES", "DU", layer.peepholes);
  add_optional(prelude, "H0", "NDU", layer.h0);
  add_optional(prelude, "C0", "NDU", layer.c0);
  add_optional(prelude, "HN", "NDU", layer.hn);
  add_optional(prelude, "CN", "NDU", layer.cn);
  prelude.flag("WITH_LENGTHS", layer.lengths.has_value());
  prelude.extent("LENGTHS_STRIDE_N", layer.lengths ? layer.lengths->strides.front() : 0);
  prelude.constant("CELL", static_cast<int64_t>(layer.cell));
  prelude.flag("RESETS_BEFORE", layer.reset == RecurrentReset::before);
  prelude.flag("ORDER_IOFC", layer.order == RecurrentOrder::iofc);
  prelude.flag("IS_REVERSE", layer.direction == RecurrentDirection::reverse);
  prelude.extent("STEPS", layer.steps()).constant("DIRECTIONS", layer.directions());
  prelude.constant("HIDDEN", layer.hidden());
  add_batch(prelude, layer.y.extents[0], layer.dynamic_batch);
  add_blend(prelude, layer.blend);
  return prelude;
}

Launch recurrent_launch(std::string entry, int threads, const WorkspaceArgument& workspace) {
  Launch launch = launch_of(std::move(entry), threads);
  for (const char* name : {"gates", "r", "r_bias", "peepholes", "h0", "c0", "lengths", "y", "hn", "cn"}) {
    launch.arguments.push_back(OperandArgument{name});
  }
  append(launch, {workspace, Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n});
  return launch;
}

double recurrent_bytes(const RecurrentForward& layer) {
  double bytes = 0;
  for (const TensorSpec* tensor : tensors_of(layer)) {
    bytes += static_cast<double>(tensor->elements()) * size_of(tensor->dtype);
  }
  if (layer.blend.beta != Scale::zero) bytes += static_cast<double>(layer.y.elements()) * size_of(layer.y.dtype);
  return bytes;
}

}  // namespace kiln::descriptor
