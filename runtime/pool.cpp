#include "kiln/pool.h"

#include <vector>

#include "kiln/base/error.h"
#include "operation_call.h"

namespace kiln {
namespace {

std::vector<int64_t> spatial_extents(const Tensor& x) {
  std::vector<int64_t> extents;
  for (int i = 2; i < x.rank(); ++i) extents.push_back(x.extent(i));
  return extents;
}

// `x`: what the windows move over, the operand x or dx, or dy of unpooling's gradient.
template <class Call>
void say_options(Call& call, const PoolOptions& options, const Tensor& x, const Tensor& images) {
  if (options.window.h == 0 && options.window.w == 0) {  // all of x
    call.derived_ints("window", [&] { return spatial_extents(x); });
  } else {
    call.per_axis("window", x, {options.depth.window, options.window.h, options.window.w});
  }
  say_steps(call, options, x);
  say_common(call, options, images);
  call.user_code(options.epilogue);
}

void forward(Context& context, const Tensor& x, const Tensor& y, const Tensor* indices, const PoolOptions& options,
             Stream stream) {
  run_call<"pool_forward">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("y", y);
    call.operand("indices", indices);
    call.word("mode", options.mode);
    say_options(call, options, x, x);
  });
}

void backward(Context& context, const Tensor& dy, const Tensor* x, const Tensor* indices, const Tensor& dx,
              const PoolOptions& options, Stream stream) {
  run_call<"pool_backward">(context, stream, [&](auto& call) {
    call.operand("dy", dy);
    call.operand("x", x);
    call.operand("indices", indices);
    call.operand("dx", dx);
    call.word("mode", options.mode);
    say_options(call, options, dx, dy);
  });
}

}  // namespace

void pool_forward(Context& context, const Tensor& x, const Tensor& y, const PoolOptions& options, Stream stream) {
  forward(context, x, y, nullptr, options, stream);
}

void pool_forward(Context& context, const Tensor& x, const Tensor& y, const Tensor& indices, const PoolOptions& options,
                  Stream stream) {
  forward(context, x, y, &indices, options, stream);
}

void pool_backward(Context& context, const Tensor& dy, const Tensor& x, const Tensor& dx, const PoolOptions& options,
                   Stream stream) {
  const bool reads_x = options.mode == PoolMode::max;  // averages do not depend on it
  backward(context, dy, reads_x ? &x : nullptr, nullptr, dx, options, stream);
}

void pool_backward_from_indices(Context& context, const Tensor& dy, const Tensor& indices, const Tensor& dx,
                                const PoolOptions& options, Stream stream) {
  backward(context, dy, nullptr, &indices, dx, options, stream);
}

void unpool_forward(Context& context, const Tensor& x, const Tensor& indices, const Tensor& y,
                    const PoolOptions& options, Stream stream) {
  try {
    pool_backward_from_indices(context, x, indices, y, options, stream);
  } catch (const Error& error) {
    throw Error(error.code(), "unpool_forward, whose x is called dy and whose y dx: " + error.message(), error.hint());
  }
}

void unpool_backward(Context& context, const Tensor& dy, const Tensor& indices, const Tensor& dx,
                     const PoolOptions& options, Stream stream) {
  if (options.mode != PoolMode::max) {
    throw Error(ErrorCode::invalid_argument, "unpool_backward: the mode is not max", "only maxima have indices");
  }
  run_call<"unpool_backward">(context, stream, [&](auto& call) {
    call.operand("dy", dy);
    call.operand("indices", indices);
    call.operand("dx", dx);
    say_options(call, options, dy, dy);
  });
}

}  // namespace kiln
