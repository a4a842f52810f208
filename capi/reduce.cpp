#include "kiln/reduce.h"

#include <fmt/format.h>

#include "boundary.h"
#include "handles.h"
#include "kiln/base/error.h"
#include "tensor.h"

namespace kiln::capi {
namespace {

static_assert(KILN_REDUCE_MUL_NO_ZEROS == static_cast<int>(ReduceMode::mul_no_zeros), "the modes stand in one order");

ReduceMode mode_of(kiln_reduce_mode mode) {
  if (mode >= KILN_REDUCE_ADD && mode <= KILN_REDUCE_MUL_NO_ZEROS) return static_cast<ReduceMode>(mode);
  throw Error(ErrorCode::invalid_argument, fmt::format("kiln_reduce: the mode is {}", mode),
              "use KILN_REDUCE_ADD or another of these");
}

ReduceOptions options_of(const kiln_reduce_options* given, const char* function) {
  const kiln_reduce_options c = read(given, kiln_reduce_options_default(), function);
  return {.alpha = c.alpha,
          .beta = c.beta,
          .dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch"),
          .epilogue = epilogue_of(c.epilogue)};
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_reduce(kiln_context* context, kiln_reduce_mode mode, const kiln_tensor* x, const kiln_tensor* y,
                        const kiln_tensor* indices, const kiln_reduce_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_reduce";
    require(context, function, "context");
    const kiln::Tensor input = tensor_of(x, function, "x"), output = tensor_of(y, function, "y");
    const kiln::ReduceMode how = mode_of(mode);
    const kiln::ReduceOptions given = options_of(options, function);
    if (indices == nullptr) {
      kiln::reduce(*context->context, how, input, output, given, stream);
    } else {
      kiln::reduce(*context->context, how, input, output, tensor_of(indices, function, "indices"), given, stream);
    }
  });
}
