#include "call_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "call_numbers.h"
#include "kiln/base/error.h"
#include "kiln/generator/operation.h"

namespace kiln {
namespace {

// The part of d, h and w that `like` has, behind N and C.
std::vector<int64_t> axes_of(const Tensor& like, const std::array<int64_t, 3>& values) {
  const auto [d, h, w] = values;
  if (like.rank() == 3) return {w};
  if (like.rank() == 5) return {d, h, w};
  return {h, w};
}

// Throws unless `names` of an operation have `name` at index `number`.
template <class Definitions>
void require_name(const CallShape& shape, const Definitions& names, size_t number, std::string_view name) {
  if (number < names.size() && names[number].name == name) return;
  throw Error(ErrorCode::internal, fmt::format("a call of {} says {} out of place", shape.operation->name(), name));
}

Request with_code(Request request, const Tensor& result, const Expression& code, std::span<const Tensor> read) {
  std::vector<TensorSpec> tensors;
  for (size_t i = 0; i < read.size(); ++i) {
    const Tensor& tensor = read[i];
    // The request of a dynamic batch knows the top of its bucket only.
    if (tensor.rank() == result.rank() && tensor.extent(0) != result.extent(0) && tensor.extent(0) != 1) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{}: {} has other extents than {}: {} along the first dimension, not {}", request.operation,
                      code.tensors()[i], result_of(request).name, tensor.extent(0), result.extent(0)),
          "give it that extent, or 1 where it repeats");
    }
    tensors.push_back(tensor.spec());
  }
  return with_user_code(std::move(request), code, tensors);
}

}  // namespace

CallRequest::CallRequest(const CallShape& shape) : shape_(shape) {
  request_.operation = std::string(shape.operation->name());
}

void CallRequest::operand(std::string_view name, const Tensor* tensor) {
  require_name(shape_, shape_.operands, operands_, name);
  // Tensors that user code reads stand behind all operands, in the order in which a call names them.
  if (has_said_code_) {
    throw Error(ErrorCode::internal,
                fmt::format("a call of {} says {} behind its user code", shape_.operation->name(), name));
  }
  const size_t number = operands_++;
  if (tensor == nullptr) return;
  request_.operands.push_back({std::string(name), tensor->spec()});
  if ((shape_.written >> number & 1) != 0 && !result_) result_ = *tensor;
}

void CallRequest::attribute(std::string_view name, AttributeValue value) {
  request_.attributes.push_back({std::string(name), std::move(value)});
}

void CallRequest::per_axis(std::string_view name, const Tensor& like, const std::array<int64_t, 3>& values) {
  attribute(name, axes_of(like, values));
}

void CallRequest::per_axis(std::string_view name, const Tensor& like, const std::array<int64_t, 3>& begin,
                           const std::array<int64_t, 3>& end) {
  std::vector<int64_t> values = axes_of(like, begin);
  std::ranges::copy(axes_of(like, end), std::back_inserter(values));
  attribute(name, std::move(values));
}

void CallRequest::blend(float alpha, float beta) {
  request_.blend = {scale_of(alpha), scale_of(beta)};
}

void CallRequest::blend(std::string_view name, float alpha, float beta) {
  number(fmt::format("{}_alpha", name), alpha);
  number(fmt::format("{}_beta", name), beta);
  further_classes(name, alpha, beta);
}

void CallRequest::further_classes(std::string_view name, float alpha, float beta) {
  const auto append = [&](std::string_view which, float value) {
    attribute(fmt::format("{}_{}", name, which), std::string(to_string(scale_of(value))));
  };
  append("alpha", alpha);
  append("beta", beta);
}

void CallRequest::number(std::string_view name, float /*value*/) {
  require_name(shape_, shape_.operation->scalars(), numbers_++, name);
}

void CallRequest::integer(std::string_view name, uint64_t /*value*/) {
  require_name(shape_, shape_.operation->integers(), integers_++, name);
}

void CallRequest::epilogue(const Epilogue& epilogue, std::span<const Tensor> tensors) {
  for (int i = 0; i < epilogue.count(); ++i) {
    const EpilogueStage stage = epilogue.stage(i);
    const bool lacks_tensor =
        (stage == EpilogueStage::bias && !epilogue.bias()) || (stage == EpilogueStage::add && !epilogue.residual());
    if (lacks_tensor) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: the epilogue stage {} has no tensor", request_.operation, to_string(stage)),
                  "write kiln::bias(values) or kiln::add(residual)");
    }
    request_.epilogue.push_back(stage);
  }
  user_code(epilogue, tensors);
}

void CallRequest::text(std::string_view text) {
  Request said = Request::parse_call(text);
  said.operands = std::move(request_.operands);
  said.blend = request_.blend;
  std::ranges::move(request_.attributes, std::back_inserter(said.attributes));
  request_ = std::move(said);
  has_text_ = true;
}

// A value that a function forgets to say would have its default in every call, and one plan would serve all values of
// it.
void CallRequest::require_all_said() const {
  const Operation& operation = *shape_.operation;
  const auto require = [&](bool said, std::string_view name) {
    if (said) return;
    throw Error(ErrorCode::internal, fmt::format("a call of {} does not say {}", operation.name(), name));
  };
  const auto require_up_to = [&](size_t said, const auto& names) {
    if (said < names.size()) require(false, names[said].name);
  };
  require_up_to(operands_, shape_.operands);
  if (has_text_) return;
  require_up_to(numbers_, operation.scalars());
  require_up_to(integers_, operation.integers());
  for (const AttributeDefinition& attribute : operation.attributes()) {
    const auto said = std::ranges::find(request_.attributes, attribute.name, &Attribute::name);
    require(said != request_.attributes.end() || attribute.printing == Printing::never, attribute.name);
  }
}

Request CallRequest::finished() const {
  require_all_said();
  Request request = kiln::finished(request_);
  if (code_ == nullptr) return request;
  return with_code(std::move(request), *result_, *code_, user_tensors_);
}

}  // namespace kiln
