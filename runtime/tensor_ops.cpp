#include "kiln/tensor_ops.h"

#include <fmt/format.h>

#include "kiln/base/error.h"
#include "named_call.h"

namespace kiln {
namespace {

void run_op(Context& context, TensorOpMode mode, std::span<const Tensor* const> inputs, const Tensor& y,
            const TensorOpOptions& options, Stream stream) {
  if (static_cast<int>(inputs.size()) != inputs_of(mode)) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("tensor_op: {} takes {} inputs, {} are given", to_string(mode), inputs_of(mode), inputs.size()),
        "give as many as the mode reads");
  }
  const auto input = [&](size_t i) { return i < inputs.size() ? inputs[i] : nullptr; };
  constexpr std::string_view operation = "tensor_op";
  NamedCall call(operation, CallKind::tensor_op,
                 {{"a", input(0)}, {"b", input(1)}, {"c", input(2)}, {"y", &y, true, {"a", "b", "c"}}});
  call.key.add(flags_of(options, static_cast<int64_t>(mode)));
  call.add_user_code(operation, options.epilogue);
  call.run(context, values_of(options, y), stream, [&] {
    TensorOp op;
    op.a = inputs[0]->spec();
    if (inputs.size() > 1) op.b = inputs[1]->spec();
    if (inputs.size() > 2) op.c = inputs[2]->spec();
    op.y = y.spec();
    op.mode = mode;
    op.blend = blend_of(options);
    op.dynamic_batch = options.dynamic_batch;
    return with_user_code(op.request(), y, options.epilogue);
  });
}

}  // namespace

void tensor_transform(Context& context, const Tensor& x, const Tensor& y, const TransformOptions& options,
                      Stream stream) {
  constexpr std::string_view operation = "tensor_transform";
  NamedCall call(operation, CallKind::tensor_transform, {{"x", &x}, {"y", &y, true, {"x"}}});
  for (int i = 0; i < x.rank(); ++i) {
    call.key.add(options.pad_begin[static_cast<size_t>(i)]);
    call.key.add(options.pad_end[static_cast<size_t>(i)]);
  }
  call.key.add(flags_of(options));
  call.add_user_code(operation, options.epilogue);
  RunValues values = values_of(options, y);  // x may repeat
  values.scalars[0] = options.value;
  call.run(context, values, stream, [&] {
    TensorTransform transform;
    transform.x = x.spec();
    transform.y = y.spec();
    transform.pad_begin.assign(options.pad_begin.begin(), options.pad_begin.begin() + x.rank());
    transform.pad_end.assign(options.pad_end.begin(), options.pad_end.begin() + x.rank());
    transform.blend = blend_of(options);
    transform.dynamic_batch = options.dynamic_batch;
    return with_user_code(transform.request(), y, options.epilogue);
  });
}

void tensor_add(Context& context, const Tensor& x, const Tensor& y, float alpha, float beta, Stream stream) {
  tensor_transform(context, x, y, {.alpha = alpha, .beta = beta}, stream);
}

void tensor_scale(Context& context, const Tensor& y, float alpha, Stream stream) {
  tensor_transform(context, y, y, {.alpha = alpha}, stream);
}

void tensor_set(Context& context, const Tensor& y, float value, Stream stream) {
  tensor_set(context, y, value, Epilogue(), stream);
}

void tensor_set(Context& context, const Tensor& y, float value, const Epilogue& epilogue, Stream stream) {
  constexpr std::string_view operation = "tensor_set";
  NamedCall call(operation, CallKind::tensor_set, {{"y", &y, true}});
  call.add_user_code(operation, epilogue);
  RunValues values;
  values.scalars[0] = value;
  values.user = epilogue.scalars();
  call.run(context, values, stream, [&] { return with_user_code(TensorSet{y.spec()}.request(), y, epilogue); });
}

void tensor_op(Context& context, TensorOpMode mode, const Tensor& a, const Tensor& y, const TensorOpOptions& options,
               Stream stream) {
  const std::array<const Tensor*, 1> inputs{&a};
  run_op(context, mode, inputs, y, options, stream);
}

void tensor_op(Context& context, TensorOpMode mode, const Tensor& a, const Tensor& b, const Tensor& y,
               const TensorOpOptions& options, Stream stream) {
  const std::array<const Tensor*, 2> inputs{&a, &b};
  run_op(context, mode, inputs, y, options, stream);
}

void tensor_op(Context& context, TensorOpMode mode, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& y,
               const TensorOpOptions& options, Stream stream) {
  const std::array<const Tensor*, 3> inputs{&a, &b, &c};
  run_op(context, mode, inputs, y, options, stream);
}

}  // namespace kiln
