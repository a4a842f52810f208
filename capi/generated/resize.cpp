// Made by scripts/c-api from capi/operations/resize.txt and the definitions of the operations.
#include "kiln/resize.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {

static_assert(KILN_RESIZE_CUBIC == static_cast<int>(ResizeMode::cubic), "the words stand in one order");
static_assert(KILN_RESIZE_TF_HALF_PIXEL_FOR_NN == static_cast<int>(ResizeCoordinates::tf_half_pixel_for_nn),
              "the words stand in one order");
static_assert(KILN_RESIZE_CEIL == static_cast<int>(ResizeRounding::ceil), "the words stand in one order");

ResizeOptions options_of(const kiln_resize_options& given, const char* function) {
  ResizeOptions options;
  options.mode = word_of<kiln::ResizeMode>(given.mode, KILN_RESIZE_CUBIC, function, "the mode",
                                           "use KILN_RESIZE_NEAREST, KILN_RESIZE_LINEAR or KILN_RESIZE_CUBIC");
  options.coordinates =
      word_of<kiln::ResizeCoordinates>(given.coordinates, KILN_RESIZE_TF_HALF_PIXEL_FOR_NN, function, "coordinates",
                                       "use KILN_RESIZE_HALF_PIXEL or another of these");
  options.rounding = word_of<kiln::ResizeRounding>(given.rounding, KILN_RESIZE_CEIL, function, "the rounding",
                                                   "use KILN_RESIZE_PREFER_FLOOR or another of these");
  options.excludes_outside = flag(given.exclude_outside, function, "exclude_outside");
  options.cubic = given.cubic;
  copy_to(options.scale, given.scale);
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_resize(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                        const kiln_resize_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_resize";
    require(context, function, "context");
    const kiln_resize_options given = read(options, kiln_resize_options_default(), function);
    kiln::resize(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                 options_of(given, function), stream);
  });
}

kiln_status kiln_resize_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* dx,
                                 const kiln_resize_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_resize_backward";
    require(context, function, "context");
    const kiln_resize_options given = read(options, kiln_resize_options_default(), function);
    kiln::resize_backward(*context->context, tensor_of(dy, function, "dy"), tensor_of(dx, function, "dx"),
                          options_of(given, function), stream);
  });
}
