#include "kiln/softmax.h"

#include "operation_call.h"

namespace kiln {
namespace {

CallKey key_of(const Tensor& x, const Tensor& y, const SoftmaxOptions& options) {
  CallKey key(static_cast<int64_t>(CallKind::softmax_forward));
  key.add(x);
  key.add(y);
  key.add(options.axis);
  key.add(static_cast<int64_t>(options.mode) | static_cast<int64_t>(scale_of(options.alpha)) << 4 |
          static_cast<int64_t>(scale_of(options.beta)) << 8 | int64_t{options.dynamic_batch} << 12);
  key.add(options.epilogue);
  return key;
}

Request request_of(const Tensor& x, const Tensor& y, const SoftmaxOptions& options) {
  SoftmaxForward softmax;
  softmax.x = x.spec();
  softmax.y = y.spec();
  softmax.axis = options.axis;
  softmax.mode = options.mode;
  softmax.blend = {scale_of(options.alpha), scale_of(options.beta)};
  softmax.dynamic_batch = options.dynamic_batch;
  return softmax.request();
}

}  // namespace

void softmax_forward(Context& context, const Tensor& x, const Tensor& y, const SoftmaxOptions& options, Stream stream) {
  run_unary_call("softmax_forward", context, key_of(x, y, options), x, y, options, stream,
                 [&] { return request_of(x, y, options); });
}

}  // namespace kiln
