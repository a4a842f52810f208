#include "kiln/tensor_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "kiln/base/error.h"
#include "operation_call.h"

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
  run_call<"tensor_op">(context, stream, [&](auto& call) {
    call.operand("a", input(0));
    call.operand("b", input(1));
    call.operand("c", input(2));
    call.operand("y", y);
    call.word("mode", mode);
    say_common(call, options, y);
    call.user_code(options.epilogue);
  });
}

}  // namespace

void tensor_transform(Context& context, const Tensor& x, const Tensor& y, const TransformOptions& options,
                      Stream stream) {
  const auto rank = static_cast<size_t>(x.rank());
  std::array<int64_t, 2 * Tensor::max_rank> pads;
  std::copy_n(options.pad_begin.begin(), rank, pads.begin());
  std::copy_n(options.pad_end.begin(), rank, pads.begin() + rank);
  run_call<"tensor_transform">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("y", y);
    call.ints("pad", std::span<const int64_t>(pads.data(), 2 * rank));
    say_common(call, options, y);  // x may repeat
    call.number("value", options.value);
    call.user_code(options.epilogue);
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
  run_call<"tensor_set">(context, stream, [&](auto& call) {
    call.operand("y", y);
    call.number("value", value);
    call.user_code(epilogue);
  });
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

void tensor_op_backward(Context& context, TensorOpMode mode, TensorOpInput input, const Tensor& dy, const Tensor& dx,
                        const TensorOpBackwardOptions& options, Stream stream) {
  run_call<"tensor_op_backward">(context, stream, [&](auto& call) {
    call.operand("dy", dy);
    call.operand("a", options.a);
    call.operand("b", options.b);
    call.operand("dx", dx);
    call.word("mode", mode);
    call.word("input", input);
    say_common(call, options, dy);
    call.user_code(options.epilogue);
  });
}

}  // namespace kiln
