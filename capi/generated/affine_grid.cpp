// Made by scripts/c-api from capi/operations/affine_grid.txt and the definitions of the operations.
#include "kiln/affine_grid.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {

AffineGridOptions options_of(const kiln_affine_grid_options& given, const char* function) {
  require_zero(given.reserved, function, "reserved");
  AffineGridOptions options;
  options.ends = word_of<kiln::GridEnds>(given.ends, KILN_GRID_CENTRES, function, "ends",
                                         "use KILN_GRID_EDGES or KILN_GRID_CENTRES");
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_affine_grid(kiln_context* context, const kiln_tensor* theta, const kiln_tensor* grid,
                             const kiln_affine_grid_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_affine_grid";
    require(context, function, "context");
    const kiln_affine_grid_options given = read(options, kiln_affine_grid_options_default(), function);
    kiln::affine_grid(*context->context, tensor_of(theta, function, "theta"), tensor_of(grid, function, "grid"),
                      options_of(given, function), stream);
  });
}

kiln_status kiln_affine_grid_backward(kiln_context* context, const kiln_tensor* dgrid, const kiln_tensor* dtheta,
                                      const kiln_affine_grid_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_affine_grid_backward";
    require(context, function, "context");
    const kiln_affine_grid_options given = read(options, kiln_affine_grid_options_default(), function);
    kiln::affine_grid_backward(*context->context, tensor_of(dgrid, function, "dgrid"),
                               tensor_of(dtheta, function, "dtheta"), options_of(given, function), stream);
  });
}
