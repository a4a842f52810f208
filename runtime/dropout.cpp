#include "kiln/dropout.h"

#include "kiln/generator/operations/dropout.h"
#include "named_call.h"

namespace kiln {

void dropout_forward(Context& context, const Tensor& x, const Tensor& y, const DropoutOptions& options, Stream stream) {
  NamedCall call("dropout", CallKind::dropout, {{"x", &x}, {"y", &y, true, {"x"}}});
  call.key.add(flags_of(options));
  RunValues values = values_of(options, x);
  values.scalars[0] = options.p;
  values.integers = {options.seed, options.offset};
  call.run(context, values, stream, [&] {
    return Dropout{x.spec(), y.spec(), blend_of(options), options.dynamic_batch}.request();
  });
}

void dropout_backward(Context& context, const Tensor& dy, const Tensor& dx, const DropoutOptions& options,
                      Stream stream) {
  dropout_forward(context, dy, dx, options, stream);
}

}  // namespace kiln
