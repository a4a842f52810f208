// The gradient of a tensor_op as rows: of elements that are added up for one of dx.
#pragma once

#include <vector>

#include "descriptor/rows.h"
#include "kiln/generator/operations/tensor_op_backward.h"
#include "kiln/generator/program.h"

namespace kiln::descriptor {

/// GRADIENT of lib/tensor_op_gradient.cuh.
int gradient_code(const TensorOpBackward& gradient);

/// dy, a, b (stand-ins for those that are not read) and dx.
struct OpGradientRows : Rows {
  static OpGradientRows of(const Request& request);

  int code = 0;
  Blend blend;

  /// Bytes that have to move.
  double moved_bytes() const;
};

/// GRADIENT, ALPHA and BETA.
void add_op_gradient(Prelude& prelude, const OpGradientRows& rows);

}  // namespace kiln::descriptor
