// Made by scripts/c-api from capi/operations/grid_sample.txt and the definitions of the operations.
#include "kiln/grid_sample.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {

static_assert(KILN_GRID_CUBIC == static_cast<int>(GridMode::cubic), "the words stand in one order");
static_assert(KILN_GRID_REFLECTION == static_cast<int>(GridPadding::reflection), "the words stand in one order");
static_assert(KILN_GRID_CENTRES == static_cast<int>(GridEnds::centres), "the words stand in one order");

GridSampleOptions options_of(const kiln_grid_sample_options& given, const char* function) {
  require_zero(given.reserved, function, "reserved");
  GridSampleOptions options;
  options.mode = word_of<kiln::GridMode>(given.mode, KILN_GRID_CUBIC, function, "the mode",
                                         "use KILN_GRID_LINEAR, KILN_GRID_NEAREST or KILN_GRID_CUBIC");
  options.padding = word_of<kiln::GridPadding>(given.padding, KILN_GRID_REFLECTION, function, "the padding",
                                               "use KILN_GRID_ZEROS, KILN_GRID_BORDER or KILN_GRID_REFLECTION");
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

kiln_status kiln_grid_sample(kiln_context* context, const kiln_tensor* x, const kiln_tensor* grid, const kiln_tensor* y,
                             const kiln_grid_sample_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_grid_sample";
    require(context, function, "context");
    const kiln_grid_sample_options given = read(options, kiln_grid_sample_options_default(), function);
    kiln::grid_sample(*context->context, tensor_of(x, function, "x"), tensor_of(grid, function, "grid"),
                      tensor_of(y, function, "y"), options_of(given, function), stream);
  });
}

kiln_status kiln_grid_sample_backward_data(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* grid,
                                           const kiln_tensor* dx, const kiln_grid_sample_options* options,
                                           kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_grid_sample_backward_data";
    require(context, function, "context");
    const kiln_grid_sample_options given = read(options, kiln_grid_sample_options_default(), function);
    kiln::grid_sample_backward_data(*context->context, tensor_of(dy, function, "dy"), tensor_of(grid, function, "grid"),
                                    tensor_of(dx, function, "dx"), options_of(given, function), stream);
  });
}

kiln_status kiln_grid_sample_backward_grid(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                                           const kiln_tensor* grid, const kiln_tensor* dgrid,
                                           const kiln_grid_sample_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_grid_sample_backward_grid";
    require(context, function, "context");
    const kiln_grid_sample_options given = read(options, kiln_grid_sample_options_default(), function);
    kiln::grid_sample_backward_grid(*context->context, tensor_of(dy, function, "dy"), tensor_of(x, function, "x"),
                                    tensor_of(grid, function, "grid"), tensor_of(dgrid, function, "dgrid"),
                                    options_of(given, function), stream);
  });
}
