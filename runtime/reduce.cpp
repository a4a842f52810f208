#include "kiln/reduce.h"

#include "kiln/base/error.h"
#include "named_call.h"

namespace kiln {
namespace {

// Dimensions that y has given up. Where none has more than one element, the last will do.
std::vector<int64_t> axes_of(const Tensor& x, const Tensor& y) {
  std::vector<int64_t> axes;
  if (x.rank() != y.rank()) return axes;  // the request is refused
  bool has_one = false;
  for (int i = 0; i < x.rank(); ++i) {
    has_one = has_one || y.extent(i) == 1;
    if (y.extent(i) == 1 && x.extent(i) != 1) axes.push_back(i);
  }
  if (!has_one) {
    throw Error(ErrorCode::invalid_argument, "reduce: y has no extent of 1", "give it one where x is to be reduced");
  }
  if (axes.empty()) axes.push_back(x.extent(x.rank() - 1) == 1 ? x.rank() - 1 : 0);
  return axes;
}

Request request_of(ReduceMode mode, const Tensor& x, const Tensor& y, const Tensor* indices,
                   const ReduceOptions& options) {
  Reduce reduce;
  reduce.x = x.spec();
  reduce.y = y.spec();
  if (indices != nullptr) reduce.indices = indices->spec();
  reduce.axes = axes_of(x, y);
  reduce.mode = mode;
  reduce.blend = blend_of(options);
  reduce.dynamic_batch = options.dynamic_batch;
  return reduce.request();
}

void run(Context& context, ReduceMode mode, const Tensor& x, const Tensor& y, const Tensor* indices,
         const ReduceOptions& options, Stream stream) {
  constexpr std::string_view operation = "reduce";
  NamedCall call(operation, CallKind::reduce, {{"x", &x}, {"y", &y, true}, {"indices", indices, true}});
  call.key.add(flags_of(options, static_cast<int64_t>(mode)));
  call.add_user_code(operation, options.epilogue);
  call.run(context, values_of(options, x), stream,
           [&] { return with_user_code(request_of(mode, x, y, indices, options), y, options.epilogue); });
}

}  // namespace

void reduce(Context& context, ReduceMode mode, const Tensor& x, const Tensor& y, const ReduceOptions& options,
            Stream stream) {
  run(context, mode, x, y, nullptr, options, stream);
}

void reduce(Context& context, ReduceMode mode, const Tensor& x, const Tensor& y, const Tensor& indices,
            const ReduceOptions& options, Stream stream) {
  run(context, mode, x, y, &indices, options, stream);
}

}  // namespace kiln
