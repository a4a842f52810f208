#include "kiln/softmax.h"

#include "kiln/generator/operations/softmax_backward.h"
#include "named_call.h"

namespace kiln {
namespace {

void add_options(CallKey& key, const SoftmaxOptions& options) {
  key.add(options.axis);
  key.add(flags_of(options, static_cast<int64_t>(options.mode)));
}

// What both views have in common.
template <class View>
void set_common(View& view, const SoftmaxOptions& options) {
  view.axis = options.axis;
  view.mode = options.mode;
  view.blend = blend_of(options);
  view.dynamic_batch = options.dynamic_batch;
}

Request request_of(const Tensor& x, const Tensor& y, const SoftmaxOptions& options) {
  SoftmaxForward softmax;
  softmax.x = x.spec();
  softmax.y = y.spec();
  set_common(softmax, options);
  return softmax.request();
}

}  // namespace

void softmax_forward(Context& context, const Tensor& x, const Tensor& y, const SoftmaxOptions& options, Stream stream) {
  constexpr std::string_view operation = "softmax_forward";
  NamedCall call(operation, CallKind::softmax_forward, {{"x", &x}, {"y", &y, true, {"x"}}});
  add_options(call.key, options);
  call.add_user_code(operation, options.epilogue);
  call.run(context, values_of(options, x), stream,
           [&] { return with_user_code(request_of(x, y, options), y, options.epilogue); });
}

void softmax_backward(Context& context, const Tensor& y, const Tensor& dy, const Tensor& dx,
                      const SoftmaxOptions& options, Stream stream) {
  constexpr std::string_view operation = "softmax_backward";
  NamedCall call(operation, CallKind::softmax_backward, {{"y", &y}, {"dy", &dy}, {"dx", &dx, true, {"y", "dy"}}});
  add_options(call.key, options);
  call.add_user_code(operation, options.epilogue);
  call.run(context, values_of(options, dy), stream, [&] {
    SoftmaxBackward softmax;
    softmax.y = y.spec();
    softmax.dy = dy.spec();
    softmax.dx = dx.spec();
    set_common(softmax, options);
    return with_user_code(softmax.request(), dx, options.epilogue);
  });
}

}  // namespace kiln
