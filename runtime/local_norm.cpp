#include "kiln/local_norm.h"

#include <fmt/format.h>

#include "kiln/base/error.h"
#include "kiln/generator/operations/local_norm.h"
#include "operation_call.h"

namespace kiln {
namespace {

// What the window runs along: the channels, or the spatial dimensions.
enum class Along { channels, space };

// The axes of x; refuses an x that has none.
std::vector<int64_t> axes_of(std::string_view operation, const Tensor& x, Along along) {
  if (along == Along::channels) return {1};
  if (x.rank() < 3) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: x has {} dimensions", operation, x.rank()),
                "give N, C and one to three spatial dimensions");
  }
  std::vector<int64_t> axes;
  for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  return axes;
}

void add_optional(CallKey& key, const std::optional<Tensor>& tensor) {
  key.add(int64_t{tensor.has_value()});
  if (tensor) key.add(*tensor);
}

RunValues run_values_of(const LocalNormOptions& options, const Tensor& x) {
  RunValues values = values_of(options, x);
  values.scalars = {options.lrn_alpha, options.lrn_beta, options.lrn_k};
  return values;
}

// What both views have in common.
template <class View>
void set_common(View& view, std::string_view operation, Along along, const Tensor& x, const LocalNormOptions& options) {
  view.x = x.spec();
  if (options.means) view.means = options.means->spec();
  view.axes = axes_of(operation, x, along);
  view.size = options.size;
  view.blend = blend_of(options);
  view.dynamic_batch = options.dynamic_batch;
}

void forward(Along along, Context& context, const Tensor& x, const Tensor& y, const LocalNormOptions& options,
             Stream stream) {
  constexpr std::string_view operation = "local_norm_forward";
  refuse_overlap(operation, y, "x", x);
  if (options.means) refuse_overlap(operation, y, "means", *options.means);
  CallKey key(static_cast<int64_t>(CallKind::local_norm_forward));
  key.add(flags_of(options, static_cast<int64_t>(along)));
  key.add(options.size);
  key.add(x);
  key.add(y);
  add_optional(key, options.means);
  CallOperands operands{x};
  if (options.means) operands.add(*options.means);
  operands.add(y);
  run_call(context, key, operands.addresses(), run_values_of(options, x), stream, [&] {
    LocalNormForward norm;
    set_common(norm, operation, along, x, options);
    norm.y = y.spec();
    return norm.request();
  });
}

void backward(Along along, Context& context, const Tensor& x, const Tensor& dy, const Tensor& dx,
              const LocalNormOptions& options, const std::optional<Tensor>& dmeans, Stream stream) {
  constexpr std::string_view operation = "local_norm_backward";
  const auto refuse_overlaps = [&](std::string_view name, const Tensor& output) {
    refuse_overlap(operation, output, "x", x, name);
    refuse_overlap(operation, output, "dy", dy, name);
    if (options.means) refuse_overlap(operation, output, "means", *options.means, name);
  };
  refuse_overlaps("dx", dx);
  if (dmeans) refuse_overlaps("dmeans", *dmeans);
  if (dmeans) refuse_overlap(operation, *dmeans, "dx", dx, "dmeans");
  CallKey key(static_cast<int64_t>(CallKind::local_norm_backward));
  key.add(flags_of(options, static_cast<int64_t>(along)));
  key.add(options.size);
  for (const Tensor* tensor : {&x, &dy, &dx}) key.add(*tensor);
  add_optional(key, options.means);
  add_optional(key, dmeans);
  CallOperands operands{x};
  if (options.means) operands.add(*options.means);
  operands.add(dy);
  operands.add(dx);
  if (dmeans) operands.add(*dmeans);
  run_call(context, key, operands.addresses(), run_values_of(options, x), stream, [&] {
    LocalNormBackward norm;
    set_common(norm, operation, along, x, options);
    norm.dy = dy.spec();
    norm.dx = dx.spec();
    if (dmeans) norm.dmeans = dmeans->spec();
    return norm.request();
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
