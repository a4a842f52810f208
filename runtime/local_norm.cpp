#include "kiln/local_norm.h"

#include <fmt/format.h>

#include <vector>

#include "kiln/base/error.h"
#include "operation_call.h"

namespace kiln {
namespace {

// Axes of the window: the channels, or the spatial dimensions.
enum class Along { channels, space };

// Refuses an x that has no spatial dimensions.
std::vector<int64_t> spatial_axes(const CallShape& shape, const Tensor& x) {
  if (x.rank() < 3) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: x has {} dimensions", shape.operation->name(), x.rank()),
                "give N, C and one to three spatial dimensions");
  }
  std::vector<int64_t> axes;
  for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  return axes;
}

template <OperationName operation, class Call>
void say_window(Call& call, Along along, const LocalNormOptions& options, const Tensor& x) {
  if (along == Along::channels) {
    call.ints("axes", {1});
  } else {
    call.derived_ints("axes", [&] { return spatial_axes(call_shape<operation>(), x); });
  }
  call.ints("size", {options.size});
  say_common(call, options, x);
  call.number("lrn_alpha", options.lrn_alpha);
  call.number("lrn_beta", options.lrn_beta);
  call.number("lrn_k", options.lrn_k);
}

void forward(Along along, Context& context, const Tensor& x, const Tensor& y, const LocalNormOptions& options,
             Stream stream) {
  run_call<"local_norm_forward">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("means", options.means);
    call.operand("y", y);
    say_window<"local_norm_forward">(call, along, options, x);
    call.user_code(options.epilogue);
  });
}

void backward(Along along, Context& context, const Tensor& x, const Tensor& dy, const Tensor& dx,
              const LocalNormOptions& options, const std::optional<Tensor>& dmeans, Stream stream) {
  run_call<"local_norm_backward">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("means", options.means);
    call.operand("dy", dy);
    call.operand("dx", dx);
    call.operand("dmeans", dmeans);
    say_window<"local_norm_backward">(call, along, options, x);
    call.blend("dmeans", options.dmeans_alpha, options.dmeans_beta);
    call.user_code(options.epilogue);
  });
}

}  // namespace

void lrn_forward(Context& context, const Tensor& x, const Tensor& y, const LocalNormOptions& options, Stream stream) {
  forward(Along::channels, context, x, y, options, stream);
}

void lrn_backward(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dx,
                  const LocalNormOptions& options, const std::optional<Tensor>& dmeans, Stream stream) {
  backward(Along::channels, context, x, dy, dx, options, dmeans, stream);
}

void lcn_forward(Context& context, const Tensor& x, const Tensor& y, const LocalNormOptions& options, Stream stream) {
  forward(Along::space, context, x, y, options, stream);
}

void lcn_backward(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dx,
                  const LocalNormOptions& options, const std::optional<Tensor>& dmeans, Stream stream) {
  backward(Along::space, context, x, dy, dx, options, dmeans, stream);
}

}  // namespace kiln
