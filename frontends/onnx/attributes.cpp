#include "onnx/attributes.h"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/base/error.h"
#include "onnx/load.h"

namespace kiln::onnx_frontend {

const onnx::AttributeProto* Attributes::find(std::string_view name) const {
  const auto& attributes = node_.attribute();
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const onnx::AttributeProto& attribute) { return attribute.name() == name; });
  return found == attributes.end() ? nullptr : &*found;
}

const onnx::AttributeProto* Attributes::find(std::string_view name, onnx::AttributeProto::AttributeType type) const {
  const onnx::AttributeProto* attribute = find(name);
  if (attribute != nullptr && attribute->type() != type) {
    throw Error(ErrorCode::parse_error, fmt::format("{}: attribute {} is of type {}, expected {}", describe(node_),
                                                    name, onnx::AttributeProto::AttributeType_Name(attribute->type()),
                                                    onnx::AttributeProto::AttributeType_Name(type)));
  }
  return attribute;
}

int64_t Attributes::integer(std::string_view name, int64_t fallback) const {
  const onnx::AttributeProto* attribute = find(name, onnx::AttributeProto::INT);
  return attribute == nullptr ? fallback : attribute->i();
}

std::optional<double> Attributes::real(std::string_view name) const {
  const onnx::AttributeProto* attribute = find(name, onnx::AttributeProto::FLOAT);
  return attribute == nullptr ? std::nullopt : std::optional<double>(attribute->f());
}

std::string Attributes::word(std::string_view name, std::string_view fallback) const {
  const onnx::AttributeProto* attribute = find(name, onnx::AttributeProto::STRING);
  return attribute == nullptr ? std::string(fallback) : attribute->s();
}

std::vector<int64_t> Attributes::integers(std::string_view name, size_t count, int64_t fallback) const {
  std::optional<std::vector<int64_t>> values = integers(name);
  if (!values) {
    return std::vector<int64_t>(count, fallback);
  }
  if (values->size() != count) {
    throw Error(ErrorCode::parse_error, fmt::format("{}: attribute {} has {} values, expected {}", describe(node_),
                                                    name, values->size(), count));
  }
  return *std::move(values);
}

std::optional<std::vector<int64_t>> Attributes::integers(std::string_view name) const {
  const onnx::AttributeProto* attribute = find(name, onnx::AttributeProto::INTS);
  if (attribute == nullptr) return std::nullopt;
  return std::vector<int64_t>(attribute->ints().begin(), attribute->ints().end());
}

std::optional<std::vector<double>> Attributes::reals(std::string_view name) const {
  const onnx::AttributeProto* attribute = find(name, onnx::AttributeProto::FLOATS);
  if (attribute == nullptr) return std::nullopt;
  return std::vector<double>(attribute->floats().begin(), attribute->floats().end());
}

std::optional<std::vector<std::string>> Attributes::words(std::string_view name) const {
  const onnx::AttributeProto* attribute = find(name, onnx::AttributeProto::STRINGS);
  if (attribute == nullptr) return std::nullopt;
  return std::vector<std::string>(attribute->strings().begin(), attribute->strings().end());
}

}  // namespace kiln::onnx_frontend
