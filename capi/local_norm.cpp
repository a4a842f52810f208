#include "kiln/local_norm.h"

#include "boundary.h"
#include "handles.h"
#include "kiln/base/error.h"
#include "tensor.h"

namespace kiln::capi {
namespace {

struct Given {
  LocalNormOptions options;
  std::optional<Tensor> dmeans;
};

Given given_of(const kiln_local_norm_options* given, const char* function) {
  const kiln_local_norm_options c = read(given, kiln_local_norm_options_default(), function);
  require_zero(c.reserved, function, "reserved");
  const auto optional_of = [&](const kiln_tensor* tensor, const char* name) {
    return tensor == nullptr ? std::nullopt : std::optional(tensor_of(tensor, function, name));
  };
  return {{.size = c.window,
           .lrn_alpha = c.lrn_alpha,
           .lrn_beta = c.lrn_beta,
           .lrn_k = c.lrn_k,
           .means = optional_of(c.means, "means"),
           .alpha = c.alpha,
           .beta = c.beta,
           .dmeans_alpha = c.dmeans_alpha,
           .dmeans_beta = c.dmeans_beta,
           .dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch"),
           .epilogue = epilogue_of(c.epilogue)},
          optional_of(c.dmeans, "dmeans")};
}

kiln_status forward(decltype(lrn_forward)& call, const char* function, kiln_context* context, const kiln_tensor* x,
                    const kiln_tensor* y, const kiln_local_norm_options* options, kiln_stream stream) {
  return guarded([&] {
    require(context, function, "context");
    const Given given = given_of(options, function);
    if (given.dmeans) {
      throw Error(ErrorCode::invalid_argument, std::string(function) + ": dmeans is not NULL",
                  "it is an output of the gradients");
    }
    call(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"), given.options, stream);
  });
}

kiln_status backward(decltype(lrn_backward)& call, const char* function, kiln_context* context, const kiln_tensor* x,
                     const kiln_tensor* dy, const kiln_tensor* dx, const kiln_local_norm_options* options,
                     kiln_stream stream) {
  return guarded([&] {
    require(context, function, "context");
    const Given given = given_of(options, function);
    call(*context->context, tensor_of(x, function, "x"), tensor_of(dy, function, "dy"), tensor_of(dx, function, "dx"),
         given.options, given.dmeans, stream);
  });
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_lrn_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                             const kiln_local_norm_options* options, kiln_stream stream) {
  return forward(kiln::lrn_forward, "kiln_lrn_forward", context, x, y, options, stream);
}

kiln_status kiln_lrn_backward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy, const kiln_tensor* dx,
                              const kiln_local_norm_options* options, kiln_stream stream) {
  return backward(kiln::lrn_backward, "kiln_lrn_backward", context, x, dy, dx, options, stream);
}

kiln_status kiln_lcn_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                             const kiln_local_norm_options* options, kiln_stream stream) {
  return forward(kiln::lcn_forward, "kiln_lcn_forward", context, x, y, options, stream);
}

kiln_status kiln_lcn_backward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy, const kiln_tensor* dx,
                              const kiln_local_norm_options* options, kiln_stream stream) {
  return backward(kiln::lcn_backward, "kiln_lcn_backward", context, x, dy, dx, options, stream);
}
