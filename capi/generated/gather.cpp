// Made by scripts/c-api from capi/operations/gather.txt and the definitions of the operations.
#include "kiln/gather.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {

GatherOptions options_of(const kiln_gather_options& given, const char* function) {
  GatherOptions options;
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.axis = given.axis;
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_gather(kiln_context* context, const kiln_tensor* x, const kiln_tensor* indices, const kiln_tensor* y,
                        const kiln_gather_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_gather";
    require(context, function, "context");
    const kiln_gather_options given = read(options, kiln_gather_options_default(), function);
    kiln::gather(*context->context, tensor_of(x, function, "x"), tensor_of(indices, function, "indices"),
                 tensor_of(y, function, "y"), options_of(given, function), stream);
  });
}
