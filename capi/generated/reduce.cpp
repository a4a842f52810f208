// Made by scripts/c-api from capi/operations/reduce.txt and the definitions of the operations.
#include "kiln/reduce.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {

static_assert(KILN_REDUCE_MUL_NO_ZEROS == static_cast<int>(ReduceMode::mul_no_zeros), "the words stand in one order");

ReduceOptions options_of(const kiln_reduce_options& given, const char* function) {
  ReduceOptions options;
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

ReduceBackwardOptions options_of(const kiln_reduce_backward_options& given, const char* function) {
  ReduceBackwardOptions options;
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.x = optional_of(given.x, function, "x");
  options.y = optional_of(given.y, function, "y");
  options.indices = optional_of(given.indices, function, "indices");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_reduce(kiln_context* context, kiln_reduce_mode mode, const kiln_tensor* x, const kiln_tensor* y,
                        const kiln_tensor* indices, const kiln_reduce_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_reduce";
    require(context, function, "context");
    const kiln::ReduceMode of_mode = word_of<kiln::ReduceMode>(mode, KILN_REDUCE_MUL_NO_ZEROS, function, "the mode",
                                                               "use KILN_REDUCE_ADD or another of these");
    const kiln_reduce_options given = read(options, kiln_reduce_options_default(), function);
    if (indices == nullptr) {
      kiln::reduce(*context->context, of_mode, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                   options_of(given, function), stream);
    } else {
      kiln::reduce(*context->context, of_mode, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                   tensor_of(indices, function, "indices"), options_of(given, function), stream);
    }
  });
}

kiln_status kiln_reduce_backward(kiln_context* context, kiln_reduce_mode mode, const kiln_tensor* dy,
                                 const kiln_tensor* dx, const kiln_reduce_backward_options* options,
                                 kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_reduce_backward";
    require(context, function, "context");
    const kiln::ReduceMode of_mode = word_of<kiln::ReduceMode>(mode, KILN_REDUCE_MUL_NO_ZEROS, function, "the mode",
                                                               "use KILN_REDUCE_ADD or another of these");
    const kiln_reduce_backward_options given = read(options, kiln_reduce_backward_options_default(), function);
    kiln::reduce_backward(*context->context, of_mode, tensor_of(dy, function, "dy"), tensor_of(dx, function, "dx"),
                          options_of(given, function), stream);
  });
}
