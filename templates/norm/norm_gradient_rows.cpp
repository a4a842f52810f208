#include "norm/norm_gradient_rows.h"

#include <algorithm>

#include "descriptor/prelude_and_launch.h"

namespace kiln::descriptor {

NormGradientRows NormGradientRows::of(const Request& request) {
  const NormBackward backward = NormBackward::of(request);
  NormGradientRows rows;
  rows.operands = operands_or_stand_ins(
      request, {"dy", "x", "w", "b", "mean", "inv_deviation", "y", "residual", "dx", "dw", "db", "dresidual"});
  for (const Operand& operand : request.operands) rows.present.push_back(operand.name);
  rows.axes = backward.axes;
  rows.dynamic_batch = backward.dynamic_batch;
  rows.mode = backward.mode;
  rows.activation = backward.activation;
  rows.blend = backward.blend;
  rows.parameter_blend = backward.parameter_blend;
  rows.dresidual_blend = backward.dresidual_blend;
  rows.moved_bytes = bytes_of_operands(request);
  rows.dy_bytes = kept_bytes_of(request, "dy");
  rows.has_parameters = backward.dw || backward.db;

  const std::optional<TensorSpec>& parameter = backward.dw ? backward.dw : backward.db ? backward.db : backward.w;
  if (!parameter) return rows;
  rows.parameters.operands = rows.operands;
  rows.same_rows = true;
  for (size_t d = 0; d < rows.extents().size(); ++d) {
    const bool repeats = parameter->extents[d] == 1;
    if (repeats) rows.parameters.axes.push_back(static_cast<int64_t>(d));
    rows.same_rows = rows.same_rows && (rows.extents()[d] == 1 || repeats == rows.is_axis(d));
  }
  return rows;
}

void add_norm_gradient(Prelude& prelude, const NormGradientRows& rows) {
  add_presence(prelude, rows, rows.present);
  prelude.flag("RMS", rows.mode == NormMode::rms);
  prelude.constant("ACTIVATION", static_cast<int64_t>(rows.activation));
  add_blend(prelude, rows.blend);
  add_blend(prelude, rows.parameter_blend, "PARAMETER_");
  add_blend(prelude, rows.dresidual_blend, "DRESIDUAL_");
}

}  // namespace kiln::descriptor
