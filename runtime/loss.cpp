#include "kiln/loss.h"

#include "operation_call.h"

namespace kiln {
namespace {

CallKey key_of(CallKind kind, std::initializer_list<const Tensor*> tensors, const CrossEntropyOptions& options) {
  CallKey key(static_cast<int64_t>(kind));
  for (const Tensor* tensor : tensors) key.add(*tensor);
  key.add(options.ignore);
  key.add(flags_of(options, static_cast<int64_t>(options.reduction)));
  return key;
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
  view.blend = blend_of(options);
  view.dynamic_batch = options.dynamic_batch;
}

Request backward_request(const Tensor& x, const Tensor& targets, const Tensor* dloss, const Tensor& dx,
                         const CrossEntropyOptions& options) {
  CrossEntropyBackward gradient;
  fill(gradient, x, targets, options);
  if (dloss != nullptr) gradient.dloss = dloss->spec();
  gradient.dx = dx.spec();
  return gradient.request();
}

}  // namespace

void cross_entropy_forward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& loss,
                           const CrossEntropyOptions& options, Stream stream) {
  refuse_overlap("cross_entropy_forward", loss, "x", x, loss_name(options));
  refuse_overlap("cross_entropy_forward", loss, "targets", targets, loss_name(options));
  run_call(context, key_of(CallKind::cross_entropy_forward, {&x, &targets, &loss}, options),
           CallOperands{x, targets, loss}.addresses(), values_of(options, x), stream, [&] {
             CrossEntropyForward request;
             fill(request, x, targets, options);
             request.loss = loss.spec();
             return request.request();
           });
}

void cross_entropy_backward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& dloss,
                            const Tensor& dx, const CrossEntropyOptions& options, Stream stream) {
  refuse_partial_overlap("cross_entropy_backward", dx, "x", x, "dx");
  refuse_overlap("cross_entropy_backward", dx, "targets", targets, "dx");
  refuse_overlap("cross_entropy_backward", dx, dloss_name(options), dloss, "dx");
  run_call(context, key_of(CallKind::cross_entropy_backward, {&x, &targets, &dloss, &dx}, options),
           CallOperands{x, targets, dloss, dx}.addresses(), values_of(options, x), stream,
           [&] { return backward_request(x, targets, &dloss, dx, options); });
}

void cross_entropy_backward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& dx,
                            const CrossEntropyOptions& options, Stream stream) {
  refuse_partial_overlap("cross_entropy_backward", dx, "x", x, "dx");
  refuse_overlap("cross_entropy_backward", dx, "targets", targets, "dx");
  run_call(context, key_of(CallKind::cross_entropy_backward_of_one, {&x, &targets, &dx}, options),
           CallOperands{x, targets, dx}.addresses(), values_of(options, x), stream,
           [&] { return backward_request(x, targets, nullptr, dx, options); });
}

}  // namespace kiln
