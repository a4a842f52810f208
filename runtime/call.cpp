#include "kiln/call.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "named_numbers.h"
#include "operation_call.h"

namespace kiln {
namespace {

// Tells the keys of calls by name from those of the operations' own functions.
constexpr int64_t form_by_name = 1;

const CallShape& shape_of(std::string_view what) {
  if (what.size() > CallKey::max_text) {
    throw Error(ErrorCode::invalid_argument, fmt::format("the text of a call has {} bytes", what.size()),
                fmt::format("it has {} at the most", CallKey::max_text));
  }
  return call_shape(operation_named_in(what));
}

// The arguments of a call at the places that its operation has for their names. The caller owns what they point to.
class Arguments {
 public:
  Arguments(std::string_view what, std::span<const NamedTensor> tensors, const CallOptions& options)
      : what_(what),
        options_(options),
        shape_(shape_of(what_)),
        numbers_(*shape_.operation, options.numbers, options.integers) {
    if (options.epilogue.count() > 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: a call by name takes no Epilogue of stages", shape_.operation->name()),
                  "write them into the text: epilogue=bias+relu");
    }
    for (const NamedTensor& named : tensors) {
      put_named(*shape_.operation, "tensor", named.name, &named.tensor, shape_.operands, tensors_);
    }
  }

  const CallShape& shape() const { return shape_; }

  /// Throws Error(invalid_argument) unless every operand of `request`, which may have been completed, is given.
  void require_operands(const Request& request) const {
    for (const Operand& operand : request.operands) {
      if (!is_user_operand(operand.name)) require_operand(operand.name);
    }
  }
  /// The same of what every request of the operation has.
  void require_operands() const {
    for (const OperandDefinition& operand : shape_.operation->operands()) {
      if (operand.printing == Printing::always) require_operand(operand.name);
    }
  }

  template <class Call>
  void say(Call& call) const {
    for (size_t i = 0; i < shape_.operands.size(); ++i) {
      call.operand(shape_.operands[i].name, tensors_[i].value_or(nullptr));
    }
    call.text(what_);
    call.blend(numbers_.alpha(), numbers_.beta());
    for (const BlendShape& blend : shape_.blends) {
      call.further_classes(blend.name, numbers_.scalar(blend.scalar).value_or(1),
                           numbers_.scalar(blend.scalar + 1).value_or(0));
    }
    call.user_code(options_.epilogue);
  }

  RunValues values(const LoadedPlan& plan) const {
    RunValues values = numbers_.over(plan.usual);
    values.scalars = options_.epilogue.scalars();
    if (plan.request.dynamic_batch) values.n = batch();
    return values;
  }

 private:
  void require_operand(std::string_view name) const {
    for (size_t i = 0; i < shape_.operands.size(); ++i) {
      if (shape_.operands[i].name != name || tensors_[i]) continue;
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: tensor {} is not given", shape_.operation->name(), name), "give it by that name");
    }
  }

  // Batch of a call with a dynamic batch: all operands have it except those that repeat.
  int64_t batch() const {
    const std::vector<OperandDefinition>& definitions = shape_.operation->operands();
    for (size_t i = 0; i < definitions.size(); ++i) {
      const Tensor* tensor = tensors_[i].value_or(nullptr);
      if (tensor == nullptr || !definitions[i].batched) continue;
      if (!definitions[i].repeats || tensor->extent(0) != 1) return tensor->extent(0);
    }
    return 1;  // all repeat
  }

  std::string_view what_;
  const CallOptions& options_;
  const CallShape& shape_;
  NamedNumbers numbers_;
  std::array<std::optional<const Tensor*>, max_call_operands> tensors_{};
};

Request request_of(const Arguments& arguments) {
  arguments.require_operands();
  CallRequest said(arguments.shape());
  arguments.say(said);
  Request request = said.finished();
  arguments.require_operands(request);
  return request;
}

}  // namespace

void call(Context& context, std::string_view what, std::span<const NamedTensor> tensors, const CallOptions& options,
          Stream stream) {
  const Arguments arguments(what, tensors, options);
  CallNumbers call(arguments.shape(), form_by_name);
  arguments.say(call);
  if (options.workspace != nullptr) call.workspace(options.workspace, options.workspace_bytes);
  call.finish();
  Context::Impl& impl = context.impl();
  const auto make_request = [&] {
    Request request = request_of(arguments);
    if (!request.constant_weights) return request;
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: a call has constant_weights", request.operation),
                "only a plan keeps prepared weights: plan_of_call()");
  };
  with_plan(impl, call.key(), stream, make_request, [&](const LoadedPlan& plan) {
    run_plan(impl, plan, stream, call.addresses(), arguments.values(plan),
             {options.workspace, options.workspace_bytes});
  });
}

Plan plan_of_call(Context& context, std::string_view what, std::span<const NamedTensor> tensors,
                  const CallOptions& options) {
  Context::Impl& impl = context.impl();
  return Plan(
      with_host_memory([&] { return impl.exact_plan(impl.completed(request_of(Arguments(what, tensors, options)))); }));
}

}  // namespace kiln
