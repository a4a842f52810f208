// Made by scripts/c-api from capi/operations/loss.txt and the definitions of the operations.
#include "kiln/loss.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {

static_assert(KILN_LOSS_SUM == static_cast<int>(LossReduction::sum), "the words stand in one order");

CrossEntropyOptions options_of(const kiln_cross_entropy_options& given, const char* function) {
  CrossEntropyOptions options;
  options.reduction = word_of<kiln::LossReduction>(given.reduction, KILN_LOSS_SUM, function, "the reduction",
                                                   "use KILN_LOSS_NONE, KILN_LOSS_MEAN or KILN_LOSS_SUM");
  options.ignore = given.ignore;
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.smoothing = given.smoothing;
  options.weights = optional_of(given.weights, function, "weights");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_cross_entropy_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* targets,
                                       const kiln_tensor* loss, const kiln_cross_entropy_options* options,
                                       kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_cross_entropy_forward";
    require(context, function, "context");
    const kiln_cross_entropy_options given = read(options, kiln_cross_entropy_options_default(), function);
    kiln::cross_entropy_forward(*context->context, tensor_of(x, function, "x"), tensor_of(targets, function, "targets"),
                                tensor_of(loss, function, "loss"), options_of(given, function), stream);
  });
}

kiln_status kiln_cross_entropy_backward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* targets,
                                        const kiln_tensor* dloss, const kiln_tensor* dx,
                                        const kiln_cross_entropy_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_cross_entropy_backward";
    require(context, function, "context");
    const kiln_cross_entropy_options given = read(options, kiln_cross_entropy_options_default(), function);
    if (dloss == nullptr) {
      kiln::cross_entropy_backward(*context->context, tensor_of(x, function, "x"),
                                   tensor_of(targets, function, "targets"), tensor_of(dx, function, "dx"),
                                   options_of(given, function), stream);
    } else {
      kiln::cross_entropy_backward(*context->context, tensor_of(x, function, "x"),
                                   tensor_of(targets, function, "targets"), tensor_of(dloss, function, "dloss"),
                                   tensor_of(dx, function, "dx"), options_of(given, function), stream);
    }
  });
}
