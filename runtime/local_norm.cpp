#include "kiln/local_norm.h"

#include <fmt/format.h>

#include "kiln/base/error.h"
#include "kiln/generator/operations/local_norm.h"
#include "named_call.h"

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

RunValues run_values_of(const LocalNormOptions& options, const Tensor& x) {
  RunValues values = values_of(options, x);
  values.scalars = {options.lrn_alpha, options.lrn_beta, options.lrn_k};
  return values;
}

// What both views have in common.
template <class View>
void set_common(View& view, std::string_view operation, Along along, const Tensor& x, const LocalNormOptions& options) {
  view.x = x.spec();
  view.means = spec_of(options.means);
  view.axes = axes_of(operation, x, along);
  view.size = options.size;
  view.blend = blend_of(options);
  view.dynamic_batch = options.dynamic_batch;
}

void add_window(CallKey& key, Along along, const LocalNormOptions& options) {
  key.add(flags_of(options, static_cast<int64_t>(along)));
  key.add(options.size);
}

void forward(Along along, Context& context, const Tensor& x, const Tensor& y, const LocalNormOptions& options,
             Stream stream) {
  constexpr std::string_view operation = "local_norm_forward";
  NamedCall call(operation, CallKind::local_norm_forward,
                 {{"x", &x}, {"means", pointer_to(options.means)}, {"y", &y, true}});
  add_window(call.key, along, options);
  call.add_user_code(operation, options.epilogue);
  call.run(context, run_values_of(options, x), stream, [&] {
    LocalNormForward norm;
    set_common(norm, operation, along, x, options);
    norm.y = y.spec();
    return with_user_code(norm.request(), y, options.epilogue);
  });
}

void backward(Along along, Context& context, const Tensor& x, const Tensor& dy, const Tensor& dx,
              const LocalNormOptions& options, const std::optional<Tensor>& dmeans, Stream stream) {
  constexpr std::string_view operation = "local_norm_backward";
  NamedCall call(operation, CallKind::local_norm_backward,
                 {{"x", &x},
                  {"means", pointer_to(options.means)},
                  {"dy", &dy},
                  {"dx", &dx, true},
                  {"dmeans", pointer_to(dmeans), true}});
  add_window(call.key, along, options);
  const Blend dmeans_blend = blend_of(options.dmeans_alpha, options.dmeans_beta);
  call.key.add(word_of(dmeans_blend));
  call.add_user_code(operation, options.epilogue);
  RunValues values = run_values_of(options, x);
  values.scalars[3] = options.dmeans_alpha;
  values.scalars[4] = options.dmeans_beta;
  call.run(context, values, stream, [&] {
    LocalNormBackward norm;
    set_common(norm, operation, along, x, options);
    norm.dmeans_blend = dmeans_blend;
    norm.dy = dy.spec();
    norm.dx = dx.spec();
    norm.dmeans = spec_of(dmeans);
    return with_user_code(norm.request(), dx, options.epilogue);
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
