#include "kiln/softmax.h"

#include "kiln/generator/operations/softmax_backward.h"
#include "operation_call.h"

namespace kiln {
namespace {

CallKey key_of(CallKind kind, std::initializer_list<const Tensor*> tensors, const SoftmaxOptions& options) {
  CallKey key(static_cast<int64_t>(kind));
  for (const Tensor* tensor : tensors) key.add(*tensor);
  key.add(options.axis);
  key.add(flags_of(options, static_cast<int64_t>(options.mode)));
  key.add(options.epilogue);
  return key;
}

Request request_of(const Tensor& x, const Tensor& y, const SoftmaxOptions& options) {
  SoftmaxForward softmax;
  softmax.x = x.spec();
  softmax.y = y.spec();
  softmax.axis = options.axis;
  softmax.mode = options.mode;
  softmax.blend = blend_of(options);
  softmax.dynamic_batch = options.dynamic_batch;
  return softmax.request();
}

}  // namespace

void softmax_forward(Context& context, const Tensor& x, const Tensor& y, const SoftmaxOptions& options, Stream stream) {
  constexpr std::string_view operation = "softmax_forward";
  refuse_partial_overlap(operation, y, "x", x);
  run_unary_call(operation, context, key_of(CallKind::softmax_forward, {&x, &y}, options), x, y, options, stream,
                 [&] { return request_of(x, y, options); });
}

void softmax_backward(Context& context, const Tensor& y, const Tensor& dy, const Tensor& dx,
                      const SoftmaxOptions& options, Stream stream) {
  constexpr std::string_view operation = "softmax_backward";
  refuse_epilogue(operation, options.epilogue);
  refuse_partial_overlap(operation, dx, "y", y, "dx");
  refuse_partial_overlap(operation, dx, "dy", dy, "dx");
  run_call(context, key_of(CallKind::softmax_backward, {&y, &dy, &dx}, options), CallOperands{y, dy, dx}.addresses(),
           values_of(options, dy), stream, [&] {
             SoftmaxBackward softmax;
             softmax.y = y.spec();
             softmax.dy = dy.spec();
             softmax.dx = dx.spec();
             softmax.axis = options.axis;
             softmax.mode = options.mode;
             softmax.blend = blend_of(options);
             softmax.dynamic_batch = options.dynamic_batch;
             return softmax.request();
           });
}

}  // namespace kiln
