#include "kiln/generator/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"

namespace kiln {
namespace {

const AttributeValue& attribute(const Request& request, std::string_view name) {
  for (const Attribute& candidate : request.attributes) {
    if (candidate.name == name) return candidate.value;
  }
  throw Error(ErrorCode::internal, fmt::format("{} has no attribute {}", request.operation, name));
}

}  // namespace

std::string_view to_string(Scale scale) {
  switch (scale) {
    case Scale::zero:
      return "0";
    case Scale::one:
      return "1";
    case Scale::any:
      return "any";
  }
  return "?";
}

std::optional<Scale> scale_called(std::string_view name) {
  for (const Scale scale : all_scales) {
    if (name == to_string(scale)) return scale;
  }
  return std::nullopt;
}

std::string_view to_string(EpilogueStage stage) {
  switch (stage) {
    case EpilogueStage::bias:
      return "bias";
    case EpilogueStage::add:
      return "add";
    case EpilogueStage::relu:
      return "relu";
    case EpilogueStage::clip:
      return "clip";
  }
  return "?";
}

KeyedRequest::KeyedRequest(Request request) {
  std::string key = request.key();
  data_ = std::make_shared<const Data>(Data{std::move(request), std::move(key)});
}

const TensorSpec* Request::find(std::string_view operand) const {
  for (const Operand& candidate : operands) {
    if (candidate.name == operand) return &candidate.spec;
  }
  return nullptr;
}

const TensorSpec& Request::at(std::string_view operand) const {
  if (const TensorSpec* spec = find(operand)) return *spec;
  throw Error(ErrorCode::internal, fmt::format("{} has no operand {}", operation, operand));
}

const std::vector<int64_t>& Request::ints(std::string_view name) const {
  if (const auto* values = std::get_if<std::vector<int64_t>>(&attribute(*this, name))) return *values;
  throw Error(ErrorCode::internal, fmt::format("attribute {} of {} is not a list of integers", name, operation));
}

const std::string& Request::word(std::string_view name) const {
  if (const auto* value = std::get_if<std::string>(&attribute(*this, name))) return *value;
  throw Error(ErrorCode::internal, fmt::format("attribute {} of {} is not a word", name, operation));
}

bool Request::has(EpilogueStage stage) const {
  return std::find(epilogue.begin(), epilogue.end(), stage) != epilogue.end();
}

int64_t Request::batch() const {
  for (const OperandDefinition& definition : kiln::operation(operation).operands()) {
    const TensorSpec* spec = definition.repeats ? nullptr : find(definition.name);
    if (spec != nullptr && !spec->extents.empty()) return spec->extents.front();
  }
  if (operands.empty() || operands.front().spec.extents.empty()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("no operand says the batch of this {}", operation),
                "give the operands their extents");
  }
  return operands.front().spec.extents.front();
}

bool is_epilogue_operand(std::string_view operand) {
  return operand.starts_with(user_epilogue_prefix);
}

bool is_prologue_operand(std::string_view operand) {
  return operand.starts_with(user_prologue_prefix);
}

bool is_user_operand(std::string_view operand) {
  return is_epilogue_operand(operand) || is_prologue_operand(operand);
}

std::string user_operand_name(const Expression& code, size_t i) {
  if (i >= code.tensors().size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("tensor {} of user code that reads {}", i, code.tensors().size()),
                "count from 0, below tensors().size()");
  }
  const bool enters = i >= code.epilogue_tensors();
  return std::string(enters ? user_prologue_prefix : user_epilogue_prefix) + code.tensors()[i];
}

bool is_per_channel(const Request& request, const TensorSpec& spec) {
  return spec.rank() == 1 && !kiln::operation(request.operation).channel_name().empty();
}

Request Request::with_batch(int64_t n) const {
  if (!dynamic_batch) {
    throw Error(ErrorCode::invalid_argument, "the batch of this request is fixed", "add n=? to the request");
  }
  if (n < 0 || n > batch()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("batch {} is outside 0 to {}, the bucket of this request", n, batch()),
                "ask for a plan of the right bucket");
  }
  Request fixed = *this;
  fixed.dynamic_batch = false;
  for (Operand& operand : fixed.operands) {
    if (is_batched(*this, operand.name)) operand.spec.extents.front() = n;
  }
  return fixed;
}

int64_t batch_bucket(int64_t n) {
  constexpr int64_t most = int64_t{1} << 62;
  if (n < 0 || n > most) {
    throw Error(ErrorCode::invalid_argument, fmt::format("no bucket holds a batch of {}", n), "a batch is 0 to 2^62");
  }
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

}  // namespace kiln
