#include "kiln/activation.h"

#include "activation_numbers.h"
#include "named_call.h"

namespace kiln {
namespace {

RunValues activation_values(const ActivationOptions& options, const Tensor& x) {
  RunValues values = values_of(options, x);
  set_numbers(options, 0, values);
  return values;
}

// What both forms of the gradient share; `known` is x or y, as `kind` says.
void backward(CallKind kind, Context& context, const Tensor& known, const Tensor& dy, const Tensor& dx,
              const ActivationOptions& options, Stream stream) {
  constexpr std::string_view operation = "activation_backward";
  const bool from_y = kind == CallKind::activation_backward_from_y;
  const std::string_view name = from_y ? "y" : "x";
  NamedCall call(operation, kind, {{name, &known}, {"dy", &dy}, {"dx", &dx, true, {name, "dy"}}});
  call.key.add(flags_of(options, static_cast<int64_t>(options.mode)));
  call.add_user_code(operation, options.epilogue);
  call.run(context, activation_values(options, dy), stream, [&] {
    ActivationBackward activation;
    (from_y ? activation.y : activation.x) = known.spec();
    activation.dy = dy.spec();
    activation.dx = dx.spec();
    activation.mode = options.mode;
    activation.blend = blend_of(options);
    activation.dynamic_batch = options.dynamic_batch;
    return with_user_code(activation.request(), dx, options.epilogue);
  });
}

}  // namespace

void activation_forward(Context& context, const Tensor& x, const Tensor& y, const ActivationOptions& options,
                        Stream stream) {
  constexpr std::string_view operation = "activation_forward";
  NamedCall call(operation, CallKind::activation_forward, {{"x", &x}, {"y", &y, true, {"x"}}});
  call.key.add(flags_of(options, static_cast<int64_t>(options.mode)));
  call.add_user_code(operation, options.epilogue);
  call.run(context, activation_values(options, x), stream, [&] {
    const ActivationForward activation{.x = x.spec(),
                                       .y = y.spec(),
                                       .mode = options.mode,
                                       .blend = blend_of(options),
                                       .dynamic_batch = options.dynamic_batch};
    return with_user_code(activation.request(), y, options.epilogue);
  });
}

void activation_backward(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dx,
                         const ActivationOptions& options, Stream stream) {
  backward(CallKind::activation_backward, context, x, dy, dx, options, stream);
}

void activation_backward_from_y(Context& context, const Tensor& y, const Tensor& dy, const Tensor& dx,
                                const ActivationOptions& options, Stream stream) {
  backward(CallKind::activation_backward_from_y, context, y, dy, dx, options, stream);
}

}  // namespace kiln
