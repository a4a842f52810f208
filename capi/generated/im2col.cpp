// Made by scripts/c-api from capi/operations/im2col.txt and the definitions of the operations.
#include "kiln/im2col.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"
#include "window.h"

namespace kiln::capi {

Im2colOptions options_of(const kiln_im2col_options& given, int rank, const char* function) {
  Im2colOptions options;
  set_window(given, rank, options);
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_im2col(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                        const kiln_im2col_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_im2col";
    require(context, function, "context");
    const kiln::Tensor of_x = tensor_of(x, function, "x");
    const kiln_im2col_options given = read(options, kiln_im2col_options_default(), function);
    kiln::im2col(*context->context, of_x, tensor_of(y, function, "y"), options_of(given, of_x.rank(), function),
                 stream);
  });
}

kiln_status kiln_col2im(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                        const kiln_im2col_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_col2im";
    require(context, function, "context");
    const kiln::Tensor of_x = tensor_of(x, function, "x");
    const kiln_im2col_options given = read(options, kiln_im2col_options_default(), function);
    kiln::col2im(*context->context, of_x, tensor_of(y, function, "y"), options_of(given, of_x.rank(), function),
                 stream);
  });
}
