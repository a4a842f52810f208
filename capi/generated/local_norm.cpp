// Made by scripts/c-api from capi/operations/local_norm.txt and the definitions of the operations.
#include "kiln/local_norm.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "local_norm.h"
#include "tensor.h"

namespace kiln::capi {

LocalNormOptions options_of(const kiln_local_norm_options& given, const char* function) {
  require_zero(given.reserved, function, "reserved");
  LocalNormOptions options;
  options.lrn_alpha = given.lrn_alpha;
  options.lrn_beta = given.lrn_beta;
  options.lrn_k = given.lrn_k;
  options.size = given.window;
  options.means = optional_of(given.means, function, "means");
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dmeans_alpha = given.dmeans_alpha;
  options.dmeans_beta = given.dmeans_beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_lrn_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                             const kiln_local_norm_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_lrn_forward";
    require(context, function, "context");
    const kiln_local_norm_options given = read(options, kiln_local_norm_options_default(), function);
    kiln::lrn_forward(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                      without_dmeans(options_of(given, function), given, function), stream);
  });
}

kiln_status kiln_lrn_backward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy, const kiln_tensor* dx,
                              const kiln_local_norm_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_lrn_backward";
    require(context, function, "context");
    const kiln_local_norm_options given = read(options, kiln_local_norm_options_default(), function);
    kiln::lrn_backward(*context->context, tensor_of(x, function, "x"), tensor_of(dy, function, "dy"),
                       tensor_of(dx, function, "dx"), options_of(given, function),
                       optional_of(given.dmeans, function, "dmeans"), stream);
  });
}

kiln_status kiln_lcn_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                             const kiln_local_norm_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_lcn_forward";
    require(context, function, "context");
    const kiln_local_norm_options given = read(options, kiln_local_norm_options_default(), function);
    kiln::lcn_forward(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                      without_dmeans(options_of(given, function), given, function), stream);
  });
}

kiln_status kiln_lcn_backward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy, const kiln_tensor* dx,
                              const kiln_local_norm_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_lcn_backward";
    require(context, function, "context");
    const kiln_local_norm_options given = read(options, kiln_local_norm_options_default(), function);
    kiln::lcn_backward(*context->context, tensor_of(x, function, "x"), tensor_of(dy, function, "dy"),
                       tensor_of(dx, function, "dx"), options_of(given, function),
                       optional_of(given.dmeans, function, "dmeans"), stream);
  });
}
