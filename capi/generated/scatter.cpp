// Made by scripts/c-api from capi/operations/scatter.txt and the definitions of the operations.
#include "kiln/scatter.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {

static_assert(KILN_SCATTER_MAX == static_cast<int>(ScatterMode::max), "the words stand in one order");

ScatterOptions options_of(const kiln_scatter_options& given, const char* function) {
  require_zero(given.reserved, function, "reserved");
  ScatterOptions options;
  options.mode = word_of<kiln::ScatterMode>(given.mode, KILN_SCATTER_MAX, function, "the mode",
                                            "use KILN_SCATTER_ADD or another of these");
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.axis = given.axis;
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_scatter(kiln_context* context, const kiln_tensor* updates, const kiln_tensor* indices,
                         const kiln_tensor* y, const kiln_scatter_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_scatter";
    require(context, function, "context");
    const kiln_scatter_options given = read(options, kiln_scatter_options_default(), function);
    kiln::scatter(*context->context, tensor_of(updates, function, "updates"), tensor_of(indices, function, "indices"),
                  tensor_of(y, function, "y"), options_of(given, function), stream);
  });
}
