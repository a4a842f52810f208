#include "kiln/loss.h"

#include "operation_call.h"

namespace kiln {
namespace {

bool smooths(const CrossEntropyOptions& options) {
  return options.smoothing != 0;
}

// The key of a call, and the addresses of its operands in the order of the request: the logits and targets, weights if
// there are any, and the others.
struct LossCall {
  CallKey key;
  CallOperands operands;

  LossCall(CallKind kind, const Tensor& x, const Tensor& targets, const CrossEntropyOptions& options)
      : key(static_cast<int64_t>(kind)), operands{x, targets} {
    key.add(x);
    key.add(targets);
    key.add(options.ignore);
    key.add(int64_t{options.weights.has_value()} << 1 | int64_t{smooths(options)});
    key.add(flags_of(options, static_cast<int64_t>(options.reduction)));
    if (options.weights) add(*options.weights);
  }

  void add(const Tensor& tensor) {
    key.add(tensor);
    operands.add(tensor);
  }
};

RunValues values_of_loss(const CrossEntropyOptions& options, const Tensor& x) {
  RunValues values = values_of(options, x);
  values.scalars[0] = options.smoothing;
  return values;
}

// What requests call the loss, and its gradient.
std::string_view loss_name(const CrossEntropyOptions& options) {
  return options.reduction == LossReduction::none ? "losses" : "loss";
}
std::string_view dloss_name(const CrossEntropyOptions& options) {
  return options.reduction == LossReduction::none ? "dlosses" : "dloss";
}

void fill(CrossEntropy& view, const Tensor& x, const Tensor& targets, const CrossEntropyOptions& options) {
  view.x = x.spec();
  view.targets = targets.spec();
  view.reduction = options.reduction;
  view.ignore = options.ignore;
  if (options.weights) view.weights = options.weights->spec();
  view.smooths = smooths(options);
  view.blend = blend_of(options);
  view.dynamic_batch = options.dynamic_batch;
}

// `dloss` is null where it is 1.
void backward(Context& context, CallKind kind, const Tensor& x, const Tensor& targets, const Tensor* dloss,
              const Tensor& dx, const CrossEntropyOptions& options, Stream stream) {
  constexpr std::string_view operation = "cross_entropy_backward";
  refuse_partial_overlap(operation, dx, "x", x, "dx");
  refuse_overlap(operation, dx, "targets", targets, "dx");
  if (dloss != nullptr) refuse_overlap(operation, dx, dloss_name(options), *dloss, "dx");
  if (options.weights) refuse_overlap(operation, dx, "weights", *options.weights, "dx");
  LossCall call(kind, x, targets, options);
  if (dloss != nullptr) call.add(*dloss);
  call.add(dx);
  run_call(context, call.key, call.operands.addresses(), values_of_loss(options, x), stream, [&] {
    CrossEntropyBackward gradient;
    fill(gradient, x, targets, options);
    if (dloss != nullptr) gradient.dloss = dloss->spec();
    gradient.dx = dx.spec();
    return gradient.request();
  });
}

}  // namespace

void cross_entropy_forward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& loss,
                           const CrossEntropyOptions& options, Stream stream) {
  constexpr std::string_view operation = "cross_entropy_forward";
  refuse_overlap(operation, loss, "x", x, loss_name(options));
  refuse_overlap(operation, loss, "targets", targets, loss_name(options));
  if (options.weights) refuse_overlap(operation, loss, "weights", *options.weights, loss_name(options));
  LossCall call(CallKind::cross_entropy_forward, x, targets, options);
  call.add(loss);
  run_call(context, call.key, call.operands.addresses(), values_of_loss(options, x), stream, [&] {
    CrossEntropyForward request;
    fill(request, x, targets, options);
    request.loss = loss.spec();
    return request.request();
  });
}

void cross_entropy_backward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& dloss,
                            const Tensor& dx, const CrossEntropyOptions& options, Stream stream) {
  backward(context, CallKind::cross_entropy_backward, x, targets, &dloss, dx, options, stream);
}

void cross_entropy_backward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& dx,
                            const CrossEntropyOptions& options, Stream stream) {
  backward(context, CallKind::cross_entropy_backward_of_one, x, targets, nullptr, dx, options, stream);
}

}  // namespace kiln
