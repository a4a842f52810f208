// What every operation call does around its own shape: find the plan, or make it, and run it.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "call_key.h"
#include "context_impl.h"
#include "host_memory.h"
#include "kiln/plan.h"

namespace kiln {

/// Tells operations apart in a CallKey.
enum class CallKind : int64_t { conv_forward, pool_forward, softmax_forward };

/// The class of a scale's value.
inline Scale scale_of(float value) {
  return value == 1.0f ? Scale::one : value == 0.0f ? Scale::zero : Scale::any;
}

/// Whether two tensors are the same elements at the same positions.
bool is_same_view(const Tensor& a, const Tensor& b);

/// Throws Error(invalid_argument) if an element of `y` is one of `other`. Interleaved regions of one tensor are told
/// apart; tensors of different dtypes or unrelated strides must lie in separate ranges of memory.
void refuse_overlap(std::string_view operation, const Tensor& y, std::string_view name, const Tensor& other);

/// What `options` of an operation say about one call. `x`: the operand that has the batch.
template <class Options>
RunValues values_of(const Options& options, const Tensor& x) {
  RunValues values;
  values.alpha = options.alpha;
  values.beta = options.beta;
  if (options.dynamic_batch) values.n = x.extent(0);
  return values;
}

/// Runs the plan of `key`; `make_request` gives its request if this is the first call.
template <class MakeRequest>
void run_call(Context& context, const CallKey& key, std::span<const Address> operands, const RunValues& values,
              Stream stream, const MakeRequest& make_request) {
  Context::Impl& impl = context.impl();
  const uint64_t hash = key.hash();
  const LoadedPlan* plan = impl.table().find(key, hash);
  if (plan == nullptr) {
    plan = with_host_memory([&] {
      std::shared_ptr<const LoadedPlan> made = impl.plan(make_request());
      const LoadedPlan* const loaded = made.get();
      impl.table().insert(key, hash, std::move(made));
      return loaded;
    });
  }
  impl.log_call(*plan);
  const int64_t bytes = plan->executable.workspace_bytes();
  if (bytes == 0) return plan->run(stream, operands, nullptr, values);
  const WorkspacePool::Lease workspace = impl.workspaces().lease(stream, bytes);
  plan->run(stream, operands, workspace.address(), values);
}

/// How a call of an operation from x to y ends: as run_call(), once the two are known not to overlap.
template <class Options, class MakeRequest>
void run_unary_call(std::string_view operation, Context& context, const CallKey& key, const Tensor& x, const Tensor& y,
                    const Options& options, Stream stream, const MakeRequest& make_request) {
  refuse_overlap(operation, y, "x", x);
  const std::array<Address, 2> operands = {x, y};
  run_call(context, key, operands, values_of(options, x), stream, make_request);
}

}  // namespace kiln
