#include "argument_json.h"

#include "json_fields.h"
#include "kiln/base/checked.h"

namespace kiln::execution {
namespace {

using nlohmann::json;

struct ArgumentToJson {
  json operator()(const OperandArgument& argument) const {
    return {{"operand", argument.name}, {"offset", argument.offset}};
  }
  json operator()(const WorkspaceArgument& argument) const {
    return {{"workspace", argument.offset}, {"bytes", argument.bytes}};
  }
  json operator()(Scalar scalar) const { return {{"scalar", static_cast<int>(scalar)}}; }
  json operator()(const UserArgument&) const { return {{"user", true}}; }
  json operator()(const OperationScalar& scalar) const { return {{"own", scalar.index}}; }
  json operator()(const OperationInteger& integer) const { return {{"integer", integer.index}}; }
  json operator()(const TensorMapArgument& map) const {
    json extents = json::array();
    for (const Count& extent : map.extents) extents.push_back(to_json(extent));
    return {{"map", std::visit(*this, map.memory)},
            {"dtype", to_string(map.dtype)},
            {"extents", extents},
            {"byte_strides", map.byte_strides},
            {"box", map.box},
            {"swizzle", static_cast<int>(map.swizzle)}};
  }
};

OperandArgument operand_from(const json& value) {
  return {value.at("operand").get<std::string>(), integer<int64_t>(value.at("offset"))};
}

WorkspaceArgument range_from(const json& value, int64_t workspace_bytes) {
  const auto offset = integer<int64_t>(value.at("workspace"));
  if (value.contains("bytes")) return {offset, integer<int64_t>(value.at("bytes"))};
  return {offset, checked_subtract(workspace_bytes, offset).value_or(0)};
}

TensorMapArgument map_from(const json& value, int64_t workspace_bytes) {
  TensorMapArgument map;
  const json& memory = value.at("map");
  if (memory.contains("operand")) {
    map.memory = operand_from(memory);
  } else {
    map.memory = range_from(memory, workspace_bytes);
  }
  const std::optional<DType> dtype = parse_dtype(value.at("dtype").get<std::string>());
  if (!dtype) throw json::other_error::create(501, "a tensor map is of an unknown type", &value);
  map.dtype = *dtype;
  for (const json& extent : value.at("extents")) map.extents.push_back(count_from_json(extent));
  for (const json& stride : value.at("byte_strides")) map.byte_strides.push_back(integer<int64_t>(stride));
  for (const json& extent : value.at("box")) map.box.push_back(integer<unsigned>(extent));
  map.swizzle = static_cast<Swizzle>(integer<int>(value.at("swizzle")));
  return map;
}

}  // namespace

json to_json(const Count& count) {
  return {count.fixed, count.per_n, count.divisor};
}

json to_json(const Argument& argument) {
  return std::visit(ArgumentToJson{}, argument);
}

Count count_from_json(const json& value) {
  return {integer<int64_t>(value.at(0)), integer<int64_t>(value.at(1)), integer<int64_t>(value.at(2))};
}

Argument argument_from_json(const json& value, int64_t workspace_bytes) {
  if (value.contains("operand")) return operand_from(value);
  if (value.contains("workspace")) return range_from(value, workspace_bytes);
  if (value.contains("user")) return UserArgument{};
  if (value.contains("own")) return OperationScalar{integer<size_t>(value.at("own"))};
  if (value.contains("integer")) return OperationInteger{integer<size_t>(value.at("integer"))};
  if (value.contains("map")) return map_from(value, workspace_bytes);
  return static_cast<Scalar>(integer<int>(value.at("scalar")));
}

}  // namespace kiln::execution
