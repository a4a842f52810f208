// Made by scripts/c-api from capi/operations/tensor_ops.txt and the definitions of the operations.
#include "kiln/tensor_ops.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"
#include "tensor_ops.h"

namespace kiln::capi {

static_assert(KILN_TENSOR_SELECT == static_cast<int>(TensorOpMode::select), "the words stand in one order");
static_assert(KILN_TENSOR_OP_C == static_cast<int>(TensorOpInput::c), "the words stand in one order");

TransformOptions options_of(const kiln_transform_options& given, const char* function) {
  require_zero(given.reserved, function, "reserved");
  TransformOptions options;
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.value = given.value;
  copy_to(options.pad_begin, given.pad_begin);
  copy_to(options.pad_end, given.pad_end);
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

TensorOpOptions options_of(const kiln_tensor_op_options& given, const char* function) {
  TensorOpOptions options;
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

TensorOpBackwardOptions options_of(const kiln_tensor_op_backward_options& given, const char* function) {
  TensorOpBackwardOptions options;
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.a = optional_of(given.a, function, "a");
  options.b = optional_of(given.b, function, "b");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_tensor_transform(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                  const kiln_transform_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_tensor_transform";
    require(context, function, "context");
    const kiln_transform_options given = read(options, kiln_transform_options_default(), function);
    kiln::tensor_transform(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                           options_of(given, function), stream);
  });
}

kiln_status kiln_tensor_add(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y, float alpha, float beta,
                            kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_tensor_add";
    require(context, function, "context");
    kiln::tensor_add(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"), alpha, beta, stream);
  });
}

kiln_status kiln_tensor_scale(kiln_context* context, const kiln_tensor* y, float alpha, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_tensor_scale";
    require(context, function, "context");
    kiln::tensor_scale(*context->context, tensor_of(y, function, "y"), alpha, stream);
  });
}

kiln_status kiln_tensor_set(kiln_context* context, const kiln_tensor* y, float value, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_tensor_set";
    require(context, function, "context");
    kiln::tensor_set(*context->context, tensor_of(y, function, "y"), value, stream);
  });
}

kiln_status kiln_tensor_set_with_epilogue(kiln_context* context, const kiln_tensor* y, float value,
                                          const kiln_epilogue* epilogue, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_tensor_set_with_epilogue";
    require(context, function, "context");
    kiln::tensor_set(*context->context, tensor_of(y, function, "y"), value, epilogue_of(epilogue), stream);
  });
}

kiln_status kiln_tensor_op(kiln_context* context, kiln_tensor_op_mode mode, const kiln_tensor* a, const kiln_tensor* b,
                           const kiln_tensor* c, const kiln_tensor* y, const kiln_tensor_op_options* options,
                           kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_tensor_op";
    require(context, function, "context");
    const kiln::TensorOpMode of_mode = word_of<kiln::TensorOpMode>(mode, KILN_TENSOR_SELECT, function, "the mode",
                                                                   "use KILN_TENSOR_ADD or another of these");
    const kiln_tensor_op_options given = read(options, kiln_tensor_op_options_default(), function);
    kiln::capi::tensor_op(*context->context, of_mode, tensor_of(a, function, "a"), optional_of(b, function, "b"),
                          optional_of(c, function, "c"), tensor_of(y, function, "y"), options_of(given, function),
                          stream);
  });
}

kiln_status kiln_tensor_op_backward(kiln_context* context, kiln_tensor_op_mode mode, kiln_tensor_op_input input,
                                    const kiln_tensor* dy, const kiln_tensor* dx,
                                    const kiln_tensor_op_backward_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_tensor_op_backward";
    require(context, function, "context");
    const kiln::TensorOpMode of_mode = word_of<kiln::TensorOpMode>(mode, KILN_TENSOR_SELECT, function, "the mode",
                                                                   "use KILN_TENSOR_ADD or another of these");
    const kiln::TensorOpInput of_input = word_of<kiln::TensorOpInput>(
        input, KILN_TENSOR_OP_C, function, "the input", "use KILN_TENSOR_OP_A, KILN_TENSOR_OP_B or KILN_TENSOR_OP_C");
    const kiln_tensor_op_backward_options given = read(options, kiln_tensor_op_backward_options_default(), function);
    kiln::tensor_op_backward(*context->context, of_mode, of_input, tensor_of(dy, function, "dy"),
                             tensor_of(dx, function, "dx"), options_of(given, function), stream);
  });
}
