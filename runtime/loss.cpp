#include "kiln/loss.h"

#include "named_call.h"

namespace kiln {
namespace {

bool smooths(const CrossEntropyOptions& options) {
  return options.smoothing != 0;
}

void add_options(CallKey& key, const CrossEntropyOptions& options) {
  key.add(options.ignore);
  key.add(int64_t{smooths(options)});
  key.add(flags_of(options, static_cast<int64_t>(options.reduction)));
}

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
  view.weights = spec_of(options.weights);
  view.smooths = smooths(options);
  view.blend = blend_of(options);
  view.dynamic_batch = options.dynamic_batch;
}

// `dloss` is null where it is 1.
void backward(Context& context, const Tensor& x, const Tensor& targets, const Tensor* dloss, const Tensor& dx,
              const CrossEntropyOptions& options, Stream stream) {
  constexpr std::string_view operation = "cross_entropy_backward";
  NamedCall call(operation, CallKind::cross_entropy_backward,
                 {{"x", &x},
                  {"targets", &targets},
                  {"weights", pointer_to(options.weights)},
                  {dloss_name(options), dloss},
                  {"dx", &dx, true, {"x"}}});
  add_options(call.key, options);
  call.add_user_code(operation, options.epilogue);
  call.run(context, values_of_loss(options, x), stream, [&] {
    CrossEntropyBackward gradient;
    fill(gradient, x, targets, options);
    if (dloss != nullptr) gradient.dloss = dloss->spec();
    gradient.dx = dx.spec();
    return with_user_code(gradient.request(), dx, options.epilogue);
  });
}

}  // namespace

void cross_entropy_forward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& loss,
                           const CrossEntropyOptions& options, Stream stream) {
  constexpr std::string_view operation = "cross_entropy_forward";
  NamedCall call(
      operation, CallKind::cross_entropy_forward,
      {{"x", &x}, {"targets", &targets}, {"weights", pointer_to(options.weights)}, {loss_name(options), &loss, true}});
  add_options(call.key, options);
  call.add_user_code(operation, options.epilogue);
  call.run(context, values_of_loss(options, x), stream, [&] {
    CrossEntropyForward request;
    fill(request, x, targets, options);
    request.loss = loss.spec();
    return with_user_code(request.request(), loss, options.epilogue);
  });
}

void cross_entropy_backward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& dloss,
                            const Tensor& dx, const CrossEntropyOptions& options, Stream stream) {
  backward(context, x, targets, &dloss, dx, options, stream);
}

void cross_entropy_backward(Context& context, const Tensor& x, const Tensor& targets, const Tensor& dx,
                            const CrossEntropyOptions& options, Stream stream) {
  backward(context, x, targets, nullptr, dx, options, stream);
}

}  // namespace kiln
