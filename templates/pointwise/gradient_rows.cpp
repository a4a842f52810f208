#include "pointwise/gradient_rows.h"

#include "descriptor/prelude_and_launch.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {

int gradient_code(const TensorOpBackward& gradient) {
  return static_cast<int>(gradient.mode) * 3 + static_cast<int>(gradient.input);
}

OpGradientRows OpGradientRows::of(const Request& request) {
  const TensorOpBackward gradient = TensorOpBackward::of(request);
  OpGradientRows rows;
  // A stand-in counts nothing, and keeps no dimensions apart.
  rows.operands = {{"dy", gradient.dy},
                   {"a", gradient.a.value_or(gradient.dx)},
                   {"b", gradient.b.value_or(gradient.dx)},
                   {"dx", gradient.dx}};
  rows.axes = gradient.axes();
  rows.dynamic_batch = gradient.dynamic_batch;
  rows.code = gradient_code(gradient);
  rows.blend = gradient.blend;
  return rows;
}

double OpGradientRows::moved_bytes() const {
  double bytes = 0;
  for (const Operand& operand : operands) bytes += bytes_of(operand.spec);
  return bytes;
}

void add_op_gradient(Prelude& prelude, const OpGradientRows& rows) {
  prelude.constant("GRADIENT", rows.code);
  add_blend(prelude, rows.blend);
}

}  // namespace kiln::descriptor
