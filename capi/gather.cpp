#include "kiln/gather.h"

#include "boundary.h"
#include "handles.h"
#include "kiln/c/gather.h"
#include "tensor.h"

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_gather(kiln_context* context, const kiln_tensor* x, const kiln_tensor* indices, const kiln_tensor* y,
                        const kiln_gather_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_gather";
    require(context, function, "context");
    const kiln_gather_options c = read(options, kiln_gather_options_default(), function);
    kiln::gather(*context->context, tensor_of(x, function, "x"), tensor_of(indices, function, "indices"),
                 tensor_of(y, function, "y"),
                 {.axis = c.axis,
                  .alpha = c.alpha,
                  .beta = c.beta,
                  .dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch"),
                  .epilogue = epilogue_of(c.epilogue)},
                 stream);
  });
}
