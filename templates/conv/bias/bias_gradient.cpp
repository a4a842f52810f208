#include "conv/bias/bias_gradient.h"

#include <string>
#include <string_view>

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
  prelude.extent("N", gradient.n()).flag("DYNAMIC_N", gradient.dynamic_batch).extent("K", gradient.k());
  prelude.extent("Z", dy[dimension::plane]).extent("P", dy[dimension::row]).extent("Q", dy[dimension::column]);
  constexpr std::string_view letters = "NKZPQ";
  for (size_t i = 0; i < letters.size(); ++i) {
    prelude.extent(std::string("DY_STRIDE_") + letters[i], gradient.dy.strides[i]);
  }
  prelude.extent("DB_STRIDE", gradient.db.strides.front());
  add_blend(prelude, gradient.blend);
  return prelude;
}

}  // namespace kiln::descriptor
