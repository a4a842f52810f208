// Made by scripts/c-api from capi/operations/pool.txt and the definitions of the operations.
#include "kiln/pool.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "pool.h"
#include "tensor.h"
#include "window.h"

namespace kiln::capi {

static_assert(KILN_POOL_AVG_PADDED == static_cast<int>(PoolMode::avg_padded), "the words stand in one order");

PoolOptions options_of(const kiln_pool_options& given, int rank, const char* function) {
  require_zero(given.reserved, function, "reserved");
  PoolOptions options;
  set_window(given, rank, options);
  options.mode = word_of<kiln::PoolMode>(given.mode, KILN_POOL_AVG_PADDED, function, "the mode",
                                         "use KILN_POOL_MAX, KILN_POOL_AVG or KILN_POOL_AVG_PADDED");
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.epilogue = epilogue_of(given.epilogue);
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_pool_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                              const kiln_pool_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_pool_forward";
    require(context, function, "context");
    const kiln::Tensor of_x = tensor_of(x, function, "x");
    const kiln_pool_options given = read(options, kiln_pool_options_default(), function);
    kiln::pool_forward(*context->context, of_x, tensor_of(y, function, "y"), options_of(given, of_x.rank(), function),
                       stream);
  });
}

kiln_status kiln_pool_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                               const kiln_tensor* dx, const kiln_pool_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_pool_backward";
    require(context, function, "context");
    const kiln::Tensor of_dy = tensor_of(dy, function, "dy");
    const kiln_pool_options given = read(options, kiln_pool_options_default(), function);
    kiln::pool_backward(*context->context, of_dy, read_by_gradient(given, x, tensor_of(dx, function, "dx"), function),
                        tensor_of(dx, function, "dx"), options_of(given, of_dy.rank(), function), stream);
  });
}

kiln_status kiln_pool_forward_with_indices(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                           const kiln_tensor* indices, const kiln_pool_options* options,
                                           kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_pool_forward_with_indices";
    require(context, function, "context");
    const kiln::Tensor of_x = tensor_of(x, function, "x");
    const kiln_pool_options given = read(options, kiln_pool_options_default(), function);
    kiln::pool_forward(*context->context, of_x, tensor_of(y, function, "y"), tensor_of(indices, function, "indices"),
                       options_of(given, of_x.rank(), function), stream);
  });
}

kiln_status kiln_pool_backward_from_indices(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* indices,
                                            const kiln_tensor* dx, const kiln_pool_options* options,
                                            kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_pool_backward_from_indices";
    require(context, function, "context");
    const kiln::Tensor of_dy = tensor_of(dy, function, "dy");
    const kiln_pool_options given = read(options, kiln_pool_options_default(), function);
    kiln::pool_backward_from_indices(*context->context, of_dy, tensor_of(indices, function, "indices"),
                                     tensor_of(dx, function, "dx"), options_of(given, of_dy.rank(), function), stream);
  });
}

kiln_status kiln_unpool_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* indices,
                                const kiln_tensor* y, const kiln_pool_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_unpool_forward";
    require(context, function, "context");
    const kiln::Tensor of_x = tensor_of(x, function, "x");
    const kiln_pool_options given = read(options, kiln_pool_options_default(), function);
    kiln::unpool_forward(*context->context, of_x, tensor_of(indices, function, "indices"), tensor_of(y, function, "y"),
                         options_of(given, of_x.rank(), function), stream);
  });
}

kiln_status kiln_unpool_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* indices,
                                 const kiln_tensor* dx, const kiln_pool_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_unpool_backward";
    require(context, function, "context");
    const kiln::Tensor of_dy = tensor_of(dy, function, "dy");
    const kiln_pool_options given = read(options, kiln_pool_options_default(), function);
    kiln::unpool_backward(*context->context, of_dy, tensor_of(indices, function, "indices"),
                          tensor_of(dx, function, "dx"), options_of(given, of_dy.rank(), function), stream);
  });
}
