#include "kiln/pool.h"

#include "operation_call.h"
#include "per_axis.h"

namespace kiln {
namespace {

// A window of {0, 0} is all of x.
std::vector<int64_t> window_of(const Tensor& x, const PoolOptions& options) {
  if (options.window.h != 0 || options.window.w != 0) {
    return per_axis(x, options.depth.window, options.window.h, options.window.w);
  }
  std::vector<int64_t> all;
  for (int i = 2; i < x.rank(); ++i) all.push_back(x.extent(i));
  return all;
}

CallKey key_of(const Tensor& x, const Tensor& y, const PoolOptions& options) {
  CallKey key(static_cast<int64_t>(CallKind::pool_forward));
  key.add(x);
  key.add(y);
  for (int64_t value :
       {options.pad.top, options.pad.left, options.pad.bottom, options.pad.right, options.stride.h, options.stride.w,
        options.dilation.h, options.dilation.w, options.window.h, options.window.w, options.depth.pad_front,
        options.depth.pad_back, options.depth.stride, options.depth.dilation, options.depth.window}) {
    key.add(value);
  }
  key.add(static_cast<int64_t>(options.mode) | static_cast<int64_t>(scale_of(options.alpha)) << 4 |
          static_cast<int64_t>(scale_of(options.beta)) << 8 | int64_t{options.dynamic_batch} << 12);
  key.add(options.epilogue);
  return key;
}

Request request_of(const Tensor& x, const Tensor& y, const PoolOptions& options) {
  PoolForward pool;
  pool.x = x.spec();
  pool.y = y.spec();
  pool.mode = options.mode;
  pool.window = window_of(x, options);
  pool.pad_begin = per_axis(x, options.depth.pad_front, options.pad.top, options.pad.left);
  pool.pad_end = per_axis(x, options.depth.pad_back, options.pad.bottom, options.pad.right);
  pool.stride = per_axis(x, options.depth.stride, options.stride.h, options.stride.w);
  pool.dilation = per_axis(x, options.depth.dilation, options.dilation.h, options.dilation.w);
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
