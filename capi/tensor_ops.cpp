#include "kiln/tensor_ops.h"

#include <fmt/format.h>

#include "boundary.h"
#include "handles.h"
#include "kiln/base/error.h"
#include "tensor.h"

namespace kiln::capi {
namespace {

static_assert(KILN_TENSOR_SELECT == static_cast<int>(TensorOpMode::select), "the modes stand in one order");

TransformOptions options_of(const kiln_transform_options* given, const char* function) {
  const kiln_transform_options c = read(given, kiln_transform_options_default(), function);
  require_zero(c.reserved, function, "reserved");
  TransformOptions options;
  options.alpha = c.alpha;
  options.beta = c.beta;
  options.value = c.value;
  for (size_t i = 0; i < options.pad_begin.size(); ++i) {
    options.pad_begin[i] = c.pad_begin[i];
    options.pad_end[i] = c.pad_end[i];
  }
  options.dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch");
  options.epilogue = epilogue_of(c.epilogue);
  return options;
}

TensorOpOptions options_of(const kiln_tensor_op_options* given, const char* function) {
  const kiln_tensor_op_options c = read(given, kiln_tensor_op_options_default(), function);
  return {.alpha = c.alpha,
          .beta = c.beta,
          .dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch"),
          .epilogue = epilogue_of(c.epilogue)};
}

TensorOpMode mode_of(kiln_tensor_op_mode mode) {
  if (mode >= KILN_TENSOR_ADD && mode <= KILN_TENSOR_SELECT) return static_cast<TensorOpMode>(mode);
  throw Error(ErrorCode::invalid_argument, fmt::format("kiln_tensor_op: the mode is {}", mode),
              "use KILN_TENSOR_ADD or another of these");
}

void run_op(Context& context, TensorOpMode mode, const kiln_tensor* a, const kiln_tensor* b, const kiln_tensor* c,
            const Tensor& y, const TensorOpOptions& options, Stream stream) {
  const char* const function = "kiln_tensor_op";
  const int inputs = inputs_of(mode);
  if ((b != nullptr && inputs < 2) || (c != nullptr && inputs < 3)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} takes {} inputs, more are given", function, to_string(mode), inputs),
                "pass NULL for what the mode does not read");
  }
  const Tensor first = tensor_of(a, function, "a");
  if (inputs == 1) return tensor_op(context, mode, first, y, options, stream);
  const Tensor second = tensor_of(b, function, "b");
  if (inputs == 2) return tensor_op(context, mode, first, second, y, options, stream);
  tensor_op(context, mode, first, second, tensor_of(c, function, "c"), y, options, stream);
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_tensor_transform(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                  const kiln_transform_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_tensor_transform";
    require(context, function, "context");
    kiln::tensor_transform(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                           options_of(options, function), stream);
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
    run_op(*context->context, mode_of(mode), a, b, c, tensor_of(y, function, "y"), options_of(options, function),
           stream);
  });
}
