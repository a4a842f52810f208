#include "kiln/loss.h"

#include <fmt/format.h>

#include "boundary.h"
#include "handles.h"
#include "kiln/base/error.h"
#include "tensor.h"

namespace kiln::capi {
namespace {

static_assert(KILN_LOSS_SUM == static_cast<int>(LossReduction::sum), "the reductions stand in one order");

CrossEntropyOptions options_of(const kiln_cross_entropy_options* given, const char* function) {
  const kiln_cross_entropy_options c = read(given, kiln_cross_entropy_options_default(), function);
  if (c.reduction < KILN_LOSS_NONE || c.reduction > KILN_LOSS_SUM) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: the reduction is {}", function, c.reduction),
                "use KILN_LOSS_NONE, KILN_LOSS_MEAN or KILN_LOSS_SUM");
  }
  CrossEntropyOptions options;
  options.reduction = static_cast<LossReduction>(c.reduction);
  options.ignore = c.ignore;
  if (c.weights != nullptr) options.weights = tensor_of(c.weights, function, "weights");
  options.smoothing = c.smoothing;
  options.alpha = c.alpha;
  options.beta = c.beta;
  options.dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch");
  options.epilogue = epilogue_of(c.epilogue);
  return options;
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_cross_entropy_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* targets,
                                       const kiln_tensor* loss, const kiln_cross_entropy_options* options,
                                       kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_cross_entropy_forward";
    require(context, function, "context");
    kiln::cross_entropy_forward(*context->context, tensor_of(x, function, "x"), tensor_of(targets, function, "targets"),
                                tensor_of(loss, function, "loss"), options_of(options, function), stream);
  });
}

kiln_status kiln_cross_entropy_backward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* targets,
                                        const kiln_tensor* dloss, const kiln_tensor* dx,
                                        const kiln_cross_entropy_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_cross_entropy_backward";
    require(context, function, "context");
    const kiln::Tensor logits = tensor_of(x, function, "x"), classes = tensor_of(targets, function, "targets");
    const kiln::Tensor result = tensor_of(dx, function, "dx");
    const kiln::CrossEntropyOptions given = options_of(options, function);
    if (dloss == nullptr) {
      kiln::cross_entropy_backward(*context->context, logits, classes, result, given, stream);
    } else {
      kiln::cross_entropy_backward(*context->context, logits, classes, tensor_of(dloss, function, "dloss"), result,
                                   given, stream);
    }
  });
}
