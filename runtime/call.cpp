#include "kiln/call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/base/nearest.h"
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
  what.remove_prefix(std::min(what.find_first_not_of(" \t"), what.size()));
  return call_shape(what.substr(0, what.find_first_of(" \t")));
}

// The arguments of a call at the places that its operation has for their names. What they point to is the caller's.
class Arguments {
 public:
  Arguments(std::string_view what, std::span<const NamedTensor> tensors, const CallOptions& options)
      : what_(what), options_(options), shape_(shape_of(what)) {
    if (options.epilogue.count() > 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: a call by name takes no Epilogue of stages", shape_.operation->name()),
                  "write them into the text: epilogue=bias+relu");
    }
    for (const NamedTensor& named : tensors) put(tensors_, shape_.operands, "tensor", named.name, &named.tensor);
    for (const NamedScalar& named : options.numbers) put_number(named);
    for (const NamedInteger& named : options.integers) {
      put(integers_, shape_.operation->integers(), "integer", named.name, named.value);
    }
  }

  const CallShape& shape() const { return shape_; }

  template <class Call>
  void say(Call& call) const {
    for (size_t i = 0; i < shape_.operands.size(); ++i) {
      call.operand(shape_.operands[i].name, tensors_[i].value_or(nullptr));
    }
    call.text(what_);
    call.blend(alpha_.value_or(1), beta_.value_or(0));
    for (const BlendShape& blend : shape_.blends) {
      call.further_classes(blend.name, numbers_[blend.scalar].value_or(1), numbers_[blend.scalar + 1].value_or(0));
    }
    call.user_code(options_.epilogue);
  }

  RunValues values(const LoadedPlan& plan) const {
    RunValues values = plan.usual;
    values.alpha = alpha_.value_or(1);
    values.beta = beta_.value_or(0);
    if (clip_lo_) values.clip_lo = *clip_lo_;
    if (clip_hi_) values.clip_hi = *clip_hi_;
    values.user = options_.epilogue.scalars();
    for (const BlendShape& blend : shape_.blends) {
      values.scalars[blend.scalar] = 1;
      values.scalars[blend.scalar + 1] = 0;
    }
    for (size_t i = 0; i < numbers_.size(); ++i) values.scalars[i] = numbers_[i].value_or(values.scalars[i]);
    for (size_t i = 0; i < integers_.size(); ++i) values.integers[i] = integers_[i].value_or(0);
    if (plan.request.dynamic_batch) values.n = batch();
    return values;
  }

 private:
  [[noreturn]] void refuse_second(std::string_view kind, std::string_view name) const {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} {} is given twice", shape_.operation->name(), kind, name), "give it once");
  }

  // Puts `value` where `definitions` have `name`, which may be one of `others` besides.
  template <class Places, class Definitions, class Value>
  void put(Places& places, const Definitions& definitions, std::string_view kind, std::string_view name,
           const Value& value, std::span<const std::string_view> others = {}) {
    for (size_t i = 0; i < definitions.size(); ++i) {
      if (definitions[i].name != name) continue;
      if (places[i]) refuse_second(kind, name);
      places[i] = value;
      return;
    }
    std::vector<std::string_view> known(others.begin(), others.end());
    for (const auto& definition : definitions) known.emplace_back(definition.name);
    throw Error(ErrorCode::invalid_argument, fmt::format("{} has no {} '{}'", shape_.operation->name(), kind, name),
                did_you_mean(name, known,
                             known.empty() ? "it takes none" : fmt::format("it takes {}", fmt::join(known, ", "))));
  }

  void put_number(const NamedScalar& named) {
    constexpr std::array<std::string_view, 4> common = {"alpha", "beta", "clip_lo", "clip_hi"};
    const std::array<std::optional<float>*, 4> places = {&alpha_, &beta_, &clip_lo_, &clip_hi_};
    for (size_t i = 0; i < common.size(); ++i) {
      if (named.name != common[i]) continue;
      if (*places[i]) refuse_second("number", named.name);
      *places[i] = named.value;
      return;
    }
    put(numbers_, shape_.operation->scalars(), "number", named.name, named.value, common);
  }

  // Of a call with a dynamic batch, whose operands all have it but for those that repeat.
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
  std::array<std::optional<const Tensor*>, max_call_operands> tensors_{};
  std::optional<float> alpha_, beta_, clip_lo_, clip_hi_;
  std::array<std::optional<float>, max_operation_scalars> numbers_{};
  std::array<std::optional<uint64_t>, max_operation_integers> integers_{};
};

Request request_of(const Arguments& arguments) {
  CallRequest request(arguments.shape());
  arguments.say(request);
  return request.finished();
}

}  // namespace

void call(Context& context, std::string_view what, std::span<const NamedTensor> tensors, const CallOptions& options,
          Stream stream) {
  const Arguments arguments(what, tensors, options);
  CallNumbers call(arguments.shape(), form_by_name);
  arguments.say(call);
  call.finish();
  Context::Impl& impl = context.impl();
  const LoadedPlan& plan = plan_of(impl, call.key(), stream, [&] { return request_of(arguments); });
  run_plan(impl, plan, stream, call.addresses(), arguments.values(plan), {options.workspace, options.workspace_bytes});
}

Plan plan_of_call(Context& context, std::string_view what, std::span<const NamedTensor> tensors,
                  const CallOptions& options) {
  return context.plan(with_host_memory([&] { return request_of(Arguments(what, tensors, options)); }));
}

}  // namespace kiln
