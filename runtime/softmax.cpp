#include "kiln/softmax.h"

#include "operation_call.h"

namespace kiln {
namespace {

CallKey key_of(const Tensor& x, const Tensor& y, const SoftmaxOptions& options) {
  CallKey key(static_cast<int64_t>(CallKind::softmax_forward));
  key.add(x);
  key.add(y);
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
  run_unary_call("softmax_forward", context, key_of(x, y, options), x, y, options, stream,
                 [&] { return request_of(x, y, options); });
}

}  // namespace kiln
