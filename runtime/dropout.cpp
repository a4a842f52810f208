#include "kiln/dropout.h"

#include "kiln/generator/operations/dropout.h"
#include "named_call.h"

namespace kiln {

void dropout_forward(Context& context, const Tensor& x, const Tensor& y, const DropoutOptions& options, Stream stream) {
  constexpr std::string_view operation = "dropout";
  NamedCall call(operation, CallKind::dropout, {{"x", &x}, {"y", &y, true, {"x"}}});
  call.key.add(flags_of(options));
  call.add_user_code(operation, options.epilogue);
  RunValues values = values_of(options, x);
  values.scalars[0] = options.p;
  values.integers = {options.seed, options.offset};
  call.run(context, values, stream, [&] {
    const Dropout dropout{x.spec(), y.spec(), blend_of(options), options.dynamic_batch};
    return with_user_code(dropout.request(), y, options.epilogue);
  });
}

void dropout_backward(Context& context, const Tensor& dy, const Tensor& dx, const DropoutOptions& options,
                      Stream stream) {
  dropout_forward(context, dy, dx, options, stream);
}

}  // namespace kiln
