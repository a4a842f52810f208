#include "norm/norm_affine_rows.h"

#include "descriptor/prelude_and_launch.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {

AffineRows AffineRows::of(const Request& request) {
  AffineRows rows;
  rows.operands = operands_or_stand_ins(request, {"x", "w", "b", "scale", "shift"});
  rows.pairs.operands = operands_or_stand_ins(request, {"scale", "shift", "w", "b"});
  for (const Operand& operand : request.operands) rows.present.push_back(operand.name);
  rows.axes = rows.pairs.axes = request.ints("axes");
  rows.dynamic_batch = rows.pairs.dynamic_batch = request.dynamic_batch;
  rows.mode = NormAffine::of(request).mode;
  rows.x_bytes = kept_bytes_of(request, "x");
  rows.moved_bytes = bytes_of_operands(request);
  return rows;
}

AffineRows AffineRows::firsts_of(const Request& request) {
  AffineRows rows = of(request);
  for (Operand& operand : rows.operands) {
    if (operand.name == "x") continue;
    rows.wide = rows.wide || needs_wide_index({&operand.spec});
    for (const int64_t axis : rows.axes) operand.spec.extents[static_cast<size_t>(axis)] = 1;
  }
  return rows;
}

void add_affine(Prelude& prelude, const AffineRows& rows) {
  add_presence(prelude, rows, rows.present);
  prelude.flag("RMS", rows.mode == NormMode::rms).extent("PAIRS", rows.pairs.length());
  add_blend(prelude, rows.blend);
}

}  // namespace kiln::descriptor
