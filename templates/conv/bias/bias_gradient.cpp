#include "conv/bias/bias_gradient.h"

#include "descriptor/prelude_and_launch.h"

namespace kiln::descriptor {

BiasGradient BiasGradient::of(const Request& request) {
  BiasGradient gradient;
  static_cast<ConvBackwardBias&>(gradient) = ConvBackwardBias::of(request);
  gradient.dy = with_three_axes(gradient.dy);
  gradient.inner = inner_of(gradient.dy);
  return gradient;
}

Prelude bias_gradient_prelude(const BiasGradient& gradient) {
  const std::vector<int64_t>& dy = gradient.dy.extents;
  Prelude prelude;
  prelude.type("TDY", gradient.dy.dtype).type("TDB", gradient.db.dtype);
  prelude.index_type("Index", needs_wide_index({&gradient.dy, &gradient.db}));
  add_batch(prelude, gradient.n(), gradient.dynamic_batch);
  prelude.extent("K", gradient.k());
  prelude.extent("Z", dy[dimension::plane]).extent("P", dy[dimension::row]).extent("Q", dy[dimension::column]);
  add_strides(prelude, "DY", "NKZPQ", gradient.dy);
  prelude.extent("DB_STRIDE", gradient.db.strides.front());
  add_blend(prelude, gradient.blend);
  return prelude;
}

}  // namespace kiln::descriptor
