// What every operation call does around its own shape: find the plan, or make it, and run it.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "call_key.h"
#include "context_impl.h"
#include "host_memory.h"
#include "kiln/epilogue.h"
#include "kiln/plan.h"

namespace kiln {

/// Tells operations apart in a CallKey.
enum class CallKind : int64_t {
  conv_forward,
  pool_forward,
  softmax_forward,
  conv_backward_data,
  conv_backward_filter,
  conv_backward_bias,
  pool_backward,
  activation_forward,
  activation_backward,
  activation_backward_from_y,
  tensor_transform,
  tensor_set,
  tensor_op,
  softmax_backward,
  pool_forward_indices,
  pool_backward_from_indices,
  reduce,
  local_conv_forward,
  local_conv_backward_data,
  local_conv_backward_filter,
  gemm,
  cross_entropy_forward,
  cross_entropy_backward,
  norm_forward,
  norm_inference,
  norm_backward,
  dropout,
  local_norm_forward,
  local_norm_backward,
};

/// The class of a scale's value.
inline Scale scale_of(float value) {
  return value == 1.0f ? Scale::one : value == 0.0f ? Scale::zero : Scale::any;
}

/// Throws Error(invalid_argument) if an element of `y`, which the operation calls `output`, is one of `other`.
/// Interleaved regions of one tensor are told apart; tensors of different dtypes or unrelated strides must lie in
/// separate ranges of memory.
void refuse_overlap(std::string_view operation, const Tensor& y, std::string_view name, const Tensor& other,
                    std::string_view output = "y");

/// The same, but `other` may be `y` itself, element for element: an operation in place.
void refuse_partial_overlap(std::string_view operation, const Tensor& y, std::string_view name, const Tensor& other,
                            std::string_view output = "y");

/// The classes of two scales.
inline Blend blend_of(float alpha, float beta) {
  return {scale_of(alpha), scale_of(beta)};
}

/// The classes of a call's scales.
template <class Options>
Blend blend_of(const Options& options) {
  return blend_of(options.alpha, options.beta);
}

/// Classes as four bits of a word of a CallKey.
inline int64_t word_of(const Blend& blend) {
  return static_cast<int64_t>(blend.alpha) | static_cast<int64_t>(blend.beta) << 2;
}

/// What all operations' options have, as one word of a CallKey. `mode`, which an operation may define: of 32 bits, so
/// that one which there is not is never taken for another.
template <class Options>
int64_t flags_of(const Options& options, int64_t mode = 0) {
  const Blend blend = blend_of(options);
  return mode << 32 | static_cast<int64_t>(blend.alpha) << 8 | static_cast<int64_t>(blend.beta) << 12 |
         int64_t{options.dynamic_batch} << 16;
}

/// The liberties of a call's arithmetic as bits of a mode for flags_of().
inline int64_t word_of(const Arithmetic& arithmetic) {
  return int64_t{arithmetic.tf32} << 1 | int64_t{arithmetic.fast} << 2 | int64_t{arithmetic.deterministic} << 3;
}

/// What `options` of an operation say about one call. `x`: the operand that has the batch.
template <class Options>
RunValues values_of(const Options& options, const Tensor& x) {
  RunValues values;
  values.alpha = options.alpha;
  values.beta = options.beta;
  if constexpr (requires { options.epilogue; }) values.user = options.epilogue.scalars();
  if (options.dynamic_batch) values.n = x.extent(0);
  return values;
}

/// The same, with the bounds of an epilogue of stages.
template <class Options>
RunValues staged_values_of(const Options& options, const Tensor& x) {
  RunValues values = values_of(options, x);
  values.clip_lo = options.epilogue.clip_lo();
  values.clip_hi = options.epilogue.clip_hi();
  return values;
}

/// Throws Error(invalid_argument) if stage `stage` has no tensor: one made by itself, Epilogue(EpilogueStage::bias).
void require_tensor(std::string_view operation, EpilogueStage stage, const std::optional<Tensor>& tensor);

/// The stages of `epilogue` as `view`, the typed view of a request, has them. Throws as require_tensor().
template <class View>
void set_stages(std::string_view operation, const Epilogue& epilogue, View& view) {
  if (epilogue.bias()) view.bias = epilogue.bias()->spec();
  if (epilogue.residual()) view.residual = epilogue.residual()->spec();
  for (int i = 0; i < epilogue.count(); ++i) {
    const EpilogueStage stage = epilogue.stage(i);
    if (stage == EpilogueStage::bias) require_tensor(operation, stage, epilogue.bias());
    if (stage == EpilogueStage::add) require_tensor(operation, stage, epilogue.residual());
    view.epilogue.push_back(stage);
  }
}

/// Throws Error(invalid_argument) if the epilogue has stages: only user code suits `operation`.
void refuse_stages(std::string_view operation, const Epilogue& epilogue);

/// `request`, whose result is `y`, with the epilogue's user code, if it has any. Throws Error(invalid_argument) if a
/// tensor that the code reads does not fit y.
Request with_user_code(Request request, const Tensor& y, const Epilogue& epilogue);

/// The addresses of a call's operands, in the order of its request.
class CallOperands {
 public:
  CallOperands(std::initializer_list<Address> own) {
    for (const Address& address : own) add(address);
  }
  void add(const Address& address) { addresses_[count_++] = address; }
  /// Adds the tensors of the epilogue's user code, if it has any. Throws Error(invalid_argument) if one overlaps y,
  /// which the operation calls `output`.
  void add_user_code(std::string_view operation, const Tensor& y, const Epilogue& epilogue,
                     std::string_view output = "y");
  /// Adds the tensors of an epilogue of stages or of user code. The residual may be y itself.
  void add_epilogue(std::string_view operation, const Tensor& y, const Epilogue& epilogue,
                    std::string_view output = "y");

  std::span<const Address> addresses() const { return {addresses_.data(), count_}; }

 private:
  // The most: a normalisation's gradients, 12, and what user code may read.
  std::array<Address, 12 + Expression::max_tensors> addresses_{};
  size_t count_ = 0;
};

/// Runs the plan of `key`; `make_request` gives its request if this is the first call.
template <class MakeRequest>
void run_call(Context& context, const CallKey& key, std::span<const Address> operands, const RunValues& values,
              Stream stream, const MakeRequest& make_request) {
  Context::Impl& impl = context.impl();
  const uint64_t hash = key.hash();
  const LoadedPlan* plan = impl.table().find(key, hash);
  if (plan == nullptr) {
    plan = with_host_memory([&] {
      std::shared_ptr<const LoadedPlan> made = impl.plan_of_call(make_request(), stream);
      const LoadedPlan* const loaded = made.get();
      impl.table().insert(key, hash, std::move(made));
      return loaded;
    });
  }
  impl.log_call(*plan);
  if (plan->executable.workspace_bytes() == 0) return plan->run(stream, operands, {}, values);
  impl.run_with_workspace(*plan, stream, operands, values);
}

}  // namespace kiln
