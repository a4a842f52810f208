// Made by scripts/c-api from capi/operations/attention.txt and the definitions of the operations.
#include "kiln/attention.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {

static_assert(KILN_ATTENTION_END == static_cast<int>(AttentionAlign::end), "the words stand in one order");

AttentionOptions options_of(const kiln_attention_options& given, const char* function) {
  require_zero(given.reserved, function, "reserved");
  AttentionOptions options;
  options.align = word_of<kiln::AttentionAlign>(given.align, KILN_ATTENTION_END, function, "the align",
                                                "use KILN_ATTENTION_START or KILN_ATTENTION_END");
  options.left = given.left;
  options.right = given.right;
  options.scale = given.scale;
  options.dropout = given.dropout;
  options.seed = given.seed;
  options.offset = given.offset;
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.bias = optional_of(given.bias, function, "bias");
  options.mask = optional_of(given.mask, function, "mask");
  options.lengths = optional_of(given.lengths, function, "lengths");
  options.lse = optional_of(given.lse, function, "lse");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

AttentionBackwardOptions options_of(const kiln_attention_backward_options& given, const char* function) {
  require_zero(given.reserved, function, "reserved");
  AttentionBackwardOptions options;
  options.align = word_of<kiln::AttentionAlign>(given.align, KILN_ATTENTION_END, function, "the align",
                                                "use KILN_ATTENTION_START or KILN_ATTENTION_END");
  options.left = given.left;
  options.right = given.right;
  options.scale = given.scale;
  options.dropout = given.dropout;
  options.seed = given.seed;
  options.offset = given.offset;
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.bias = optional_of(given.bias, function, "bias");
  options.mask = optional_of(given.mask, function, "mask");
  options.lengths = optional_of(given.lengths, function, "lengths");
  options.dk = optional_of(given.dk, function, "dk");
  options.dv = optional_of(given.dv, function, "dv");
  options.dbias = optional_of(given.dbias, function, "dbias");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_attention_forward(kiln_context* context, const kiln_tensor* q, const kiln_tensor* k,
                                   const kiln_tensor* v, const kiln_tensor* y, const kiln_attention_options* options,
                                   kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_attention_forward";
    require(context, function, "context");
    const kiln_attention_options given = read(options, kiln_attention_options_default(), function);
    kiln::attention_forward(*context->context, tensor_of(q, function, "q"), tensor_of(k, function, "k"),
                            tensor_of(v, function, "v"), tensor_of(y, function, "y"), options_of(given, function),
                            stream);
  });
}

// NOLINTNEXTLINE(readability-function-size): the parameters of the C function
kiln_status kiln_attention_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* q,
                                    const kiln_tensor* k, const kiln_tensor* v, const kiln_tensor* y,
                                    const kiln_tensor* lse, const kiln_tensor* dq,
                                    const kiln_attention_backward_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_attention_backward";
    require(context, function, "context");
    const kiln_attention_backward_options given = read(options, kiln_attention_backward_options_default(), function);
    kiln::attention_backward(*context->context, tensor_of(dy, function, "dy"), tensor_of(q, function, "q"),
                             tensor_of(k, function, "k"), tensor_of(v, function, "v"), tensor_of(y, function, "y"),
                             tensor_of(lse, function, "lse"), tensor_of(dq, function, "dq"),
                             options_of(given, function), stream);
  });
}
