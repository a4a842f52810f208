#include "kiln/dropout.h"

#include "kiln/generator/operations/dropout.h"
#include "operation_call.h"

namespace kiln {

void dropout_forward(Context& context, const Tensor& x, const Tensor& y, const DropoutOptions& options, Stream stream) {
  refuse_partial_overlap("dropout", y, "x", x);
  CallKey key(static_cast<int64_t>(CallKind::dropout));
  key.add(x);
  key.add(y);
  key.add(flags_of(options));
  RunValues values = values_of(options, x);
  values.scalars[0] = options.p;
  values.integers = {options.seed, options.offset};
  run_call(context, key, CallOperands{x, y}.addresses(), values, stream, [&] {
    return Dropout{x.spec(), y.spec(), blend_of(options), options.dynamic_batch}.request();
  });
}

void dropout_backward(Context& context, const Tensor& dy, const Tensor& dx, const DropoutOptions& options,
                      Stream stream) {
  dropout_forward(context, dy, dx, options, stream);
}

}  // namespace kiln
