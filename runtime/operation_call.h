// The frame of every operation call around its own shape: find the plan, or make it, and run it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "call_numbers.h"
#include "call_request.h"
#include "context_impl.h"
#include "epochs.h"
#include "host_memory.h"
#include "kiln/generator/operations/activation.h"

namespace kiln {

/// Memory of a call's own for what it makes in between.
struct Workspace {
  void* memory = nullptr;  ///< Null: the Context's.
  int64_t bytes = 0;
};

/// Calls `run` with the plan of a call; `make_request` gives its request if this is the first one.
template <class MakeRequest, class Run>
void with_plan(Context::Impl& context, const CallKey& key, Stream stream, const MakeRequest& make_request,
               const Run& run) {
  const uint64_t hash = key.hash();
  {
    const epochs::Reading reading;
    const LoadedPlan* const plan = context.table().find(key, hash);
    if (plan != nullptr) {
      if (!plan->stands_in() || !context.is_captured(stream)) return run(*plan);
      context.note_use(*plan);  // it may be all that there is, and is soon looked up again: others are given up before
    }
  }
  // Once for each shape, or for a captured call that an open kernel would serve: small code rather than fast code. Not
  // within the Reading, which would keep what others give up until a compile has ended.
  const std::shared_ptr<const LoadedPlan> made = with_host_memory([&]() __attribute__((cold, noinline)) {
    std::shared_ptr<const LoadedPlan> plan = context.plan_of_call(context.as_demanded(make_request()), stream);
    context.table().insert(key, hash, plan.get());
    return plan;
  });
  run(*made);
}

/// Runs `plan`. Throws as Plan::run(), and Error(invalid_argument) for a `workspace` that is too small.
void run_plan(Context::Impl& context, const LoadedPlan& plan, Stream stream, std::span<const Address> operands,
              const RunValues& values, const Workspace& workspace = {});

/// Runs the call of an operation that `say` tells: all its parts, once, to whatever it is given. It is given a
/// CallNumbers, and a CallRequest too if this is the first call of its shape.
template <OperationName operation, class Say>
void run_call(Context& context, Stream stream, const Say& say) {
  const CallShape& shape = call_shape<operation>();
  CallNumbers call(shape);
  say(call);
  call.finish();
  Context::Impl& impl = context.impl();
  const auto make_request = [&]() __attribute__((cold, noinline)) {
    CallRequest request(shape);
    say(request);
    return request.finished();
  };
  with_plan(impl, call.key(), stream, make_request,
            [&](const LoadedPlan& plan) { run_plan(impl, plan, stream, call.addresses(), call.values()); });
}

/// alpha, beta and the batch, which the options of most operations have. `images`: an operand that has the batch.
template <class Call, class Options>
void say_common(Call& call, const Options& options, const Tensor& images) {
  call.blend(options.alpha, options.beta);
  call.dynamic_batch(options.dynamic_batch, images);
}

/// Stages or user code, and the operands of stages.
template <class Call>
void say_staged(Call& call, const Epilogue& epilogue) {
  call.operand("bias", epilogue.bias());
  call.operand("residual", epilogue.residual());
  call.epilogue(epilogue);
}

/// The numbers of an activation: those that an Activation or ActivationOptions has, and the usual ones for the others.
template <class Call, class WithNumbers>
void say_activation_numbers(Call& call, const WithNumbers& activation) {
  const ActivationNumbers usual = usual_numbers(activation.mode);
  call.number("slope", activation.slope.value_or(usual.slope));
  call.number("offset", activation.offset.value_or(usual.offset));
  call.number("low", activation.low.value_or(usual.low));
  call.number("high", activation.high.value_or(usual.high));
}

/// How windows move along the spatial axes of `like`.
template <class Call, class Options>
void say_steps(Call& call, const Options& options, const Tensor& like) {
  call.per_axis("pad", like, {options.depth.pad_front, options.pad.top, options.pad.left},
                {options.depth.pad_back, options.pad.bottom, options.pad.right});
  call.per_axis("stride", like, {options.depth.stride, options.stride.h, options.stride.w});
  call.per_axis("dilation", like, {options.depth.dilation, options.dilation.h, options.dilation.w});
}

}  // namespace kiln
