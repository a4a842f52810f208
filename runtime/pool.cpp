#include "kiln/pool.h"

#include "kiln/generator/operations/pool_backward.h"
#include "kiln/generator/operations/pool_forward.h"
#include "named_call.h"
#include "window_steps.h"

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

// Adds what both directions have.
void add_options(CallKey& key, const PoolOptions& options) {
  add_steps(key, options);
  for (int64_t value : {options.window.h, options.window.w, options.depth.window}) key.add(value);
  key.add(flags_of(options, static_cast<int64_t>(options.mode)));
}

PoolWindow windows_of(const Tensor& x, const PoolOptions& options) {
  PoolWindow windows;
  static_cast<WindowSteps&>(windows) = steps_of(x, options);
  windows.mode = options.mode;
  windows.window = window_of(x, options);
  return windows;
}

PoolForward pool_of(const Tensor& x, const Tensor& y, const PoolOptions& options) {
  PoolForward pool;
  static_cast<PoolWindow&>(pool) = windows_of(x, options);
  pool.x = x.spec();
  pool.y = y.spec();
  pool.blend = blend_of(options);
  pool.dynamic_batch = options.dynamic_batch;
  return pool;
}

// Without x or indices.
PoolBackward gradient_of(const Tensor& dy, const Tensor& dx, const PoolOptions& options) {
  PoolBackward pool;
  static_cast<PoolWindow&>(pool) = windows_of(dx, options);
  pool.dy = dy.spec();
  pool.dx = dx.spec();
  pool.blend = blend_of(options);
  pool.dynamic_batch = options.dynamic_batch;
  return pool;
}

// A call with the result `y`; the first of `tensors` has the batch.
template <class MakeView>
void run_pool(CallKind kind, Context& context, std::initializer_list<CallTensor> tensors, const Tensor& y,
              const PoolOptions& options, Stream stream, const MakeView& make_view) {
  const bool is_forward = kind == CallKind::pool_forward || kind == CallKind::pool_forward_indices;
  const std::string_view operation = is_forward ? "pool_forward" : "pool_backward";
  NamedCall call(operation, kind, tensors);
  add_options(call.key, options);
  call.add_user_code(operation, options.epilogue);
  call.run(context, values_of(options, *tensors.begin()->tensor), stream,
           [&] { return with_user_code(make_view().request(), y, options.epilogue); });
}

}  // namespace

void pool_forward(Context& context, const Tensor& x, const Tensor& y, const PoolOptions& options, Stream stream) {
  run_pool(CallKind::pool_forward, context, {{"x", &x}, {"y", &y, true}}, y, options, stream,
           [&] { return pool_of(x, y, options); });
}

void pool_backward(Context& context, const Tensor& dy, const Tensor& x, const Tensor& dx, const PoolOptions& options,
                   Stream stream) {
  const Tensor* const read = options.mode == PoolMode::max ? &x : nullptr;  // averages do not read x
  run_pool(CallKind::pool_backward, context, {{"dy", &dy}, {"x", read}, {"dx", &dx, true}}, dx, options, stream, [&] {
    PoolBackward pool = gradient_of(dy, dx, options);
    if (read != nullptr) pool.x = read->spec();
    return pool;
  });
}

void pool_forward(Context& context, const Tensor& x, const Tensor& y, const Tensor& indices, const PoolOptions& options,
                  Stream stream) {
  run_pool(CallKind::pool_forward_indices, context, {{"x", &x}, {"y", &y, true}, {"indices", &indices, true}}, y,
           options, stream, [&] {
             PoolForward pool = pool_of(x, y, options);
             pool.indices = indices.spec();
             return pool;
           });
}

void pool_backward_from_indices(Context& context, const Tensor& dy, const Tensor& indices, const Tensor& dx,
                                const PoolOptions& options, Stream stream) {
  run_pool(CallKind::pool_backward_from_indices, context, {{"dy", &dy}, {"indices", &indices}, {"dx", &dx, true}}, dx,
           options, stream, [&] {
             PoolBackward pool = gradient_of(dy, dx, options);
             pool.indices = indices.spec();
             return pool;
           });
}

void unpool_forward(Context& context, const Tensor& x, const Tensor& indices, const Tensor& y,
                    const PoolOptions& options, Stream stream) {
  pool_backward_from_indices(context, x, indices, y, options, stream);
}

}  // namespace kiln
