// NamedCall: the tensors of an operation call by their names: which may be which, the key and the operands.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "operation_call.h"

namespace kiln {

/// One tensor of a call, by the name that its operation has for it.
struct CallTensor {
  std::string_view name;
  const Tensor* tensor = nullptr;  // null: not there
  bool is_output = false;
  std::array<std::string_view, 3> may_be{};  // the tensors whose place an output may take
};

/// The parts of an optional tensor that a CallTensor and a request's view want.
inline const Tensor* pointer_to(const std::optional<Tensor>& tensor) {
  return tensor ? &*tensor : nullptr;
}
inline std::optional<TensorSpec> spec_of(const std::optional<Tensor>& tensor) {
  return tensor ? std::optional(tensor->spec()) : std::nullopt;
}

/// A call with tensors in the order of its request, which may differ from that of the function's arguments.
class NamedCall {
 public:
  /// What tells this call from others of its kind. It has the tensors; the caller adds the rest.
  CallKey key;

  /// Throws Error(invalid_argument) if an output shares an element with an input or with an output before it, unless
  /// it is one of the tensors that it may be, element for element.
  NamedCall(std::string_view operation, CallKind kind, std::span<const CallTensor> tensors);
  NamedCall(std::string_view operation, CallKind kind, std::initializer_list<CallTensor> tensors)
      : NamedCall(operation, kind, std::span(tensors.begin(), tensors.size())) {}

  /// Adds an epilogue whose residual, if it has one, is among the tensors, and what its user code reads, if there is
  /// any. Throws Error(invalid_argument) if one of that code's tensors overlaps an output.
  void add_epilogue(std::string_view operation, const Epilogue& epilogue) {
    key.add(epilogue);
    if (epilogue.code()) add_user_tensors(operation, epilogue);
  }

  /// The same, but throws if the epilogue has stages, too.
  void add_user_code(std::string_view operation, const Epilogue& epilogue) {
    refuse_stages(operation, epilogue);
    add_epilogue(operation, epilogue);
  }

  /// Runs the plan of the key; `make_request` gives its request if this is the first call.
  template <class MakeRequest>
  void run(Context& context, const RunValues& values, Stream stream, const MakeRequest& make_request) const {
    run_call(context, key, operands_.addresses(), values, stream, make_request);
  }

 private:
  struct Output {
    std::string_view name;
    const Tensor* tensor;
  };

  void add_user_tensors(std::string_view operation, const Epilogue& epilogue);

  CallOperands operands_{};
  std::array<Output, 5> outputs_{};  // the most: y and the statistics of a normalisation
  size_t output_count_ = 0;
};

}  // namespace kiln
