#include "kiln/pool.h"

#include "operation_call.h"

namespace kiln {
namespace {

// A window of {0, 0} is all of x.
Pair window_of(const Tensor& x, const PoolOptions& options) {
  const bool global = options.window.h == 0 && options.window.w == 0 && x.rank() == 4;
  return global ? Pair{x.extent(2), x.extent(3)} : options.window;
}

CallKey key_of(const Tensor& x, const Tensor& y, const PoolOptions& options) {
  CallKey key(static_cast<int64_t>(CallKind::pool_forward));
  key.add(x);
  key.add(y);
  for (int64_t value : {options.pad.top, options.pad.left, options.pad.bottom, options.pad.right, options.stride.h,
                        options.stride.w, options.dilation.h, options.dilation.w, options.window.h, options.window.w}) {
    key.add(value);
  }
  key.add(static_cast<int64_t>(options.mode) | static_cast<int64_t>(scale_of(options.alpha)) << 4 |
          static_cast<int64_t>(scale_of(options.beta)) << 8 | int64_t{options.dynamic_batch} << 12);
  return key;
}

Request request_of(const Tensor& x, const Tensor& y, const PoolOptions& options) {
  const Pair window = window_of(x, options);
  PoolForward pool;
  pool.x = x.spec();
  pool.y = y.spec();
  pool.mode = options.mode;
  pool.window = {window.h, window.w};
  pool.pad_begin = {options.pad.top, options.pad.left};
  pool.pad_end = {options.pad.bottom, options.pad.right};
  pool.stride = {options.stride.h, options.stride.w};
  pool.dilation = {options.dilation.h, options.dilation.w};
  pool.blend = {scale_of(options.alpha), scale_of(options.beta)};
  pool.dynamic_batch = options.dynamic_batch;
  return pool.request();
}

}  // namespace

void pool_forward(Context& context, const Tensor& x, const Tensor& y, const PoolOptions& options, Stream stream) {
  run_unary_call("pool_forward", context, key_of(x, y, options), x, y, options, stream,
                 [&] { return request_of(x, y, options); });
}

}  // namespace kiln
