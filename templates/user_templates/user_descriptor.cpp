#include "user_templates/user_descriptor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/base/nearest.h"
#include "kiln/generator/operation.h"

namespace kiln {
namespace {

// "; did you mean rules?", or nothing.
std::string suggestion(std::string_view word, std::span<const std::string_view> known) {
  const std::string meant = did_you_mean(word, known);
  return meant.empty() ? meant : "; " + meant;
}

using Json = nlohmann::ordered_json;

constexpr size_t largest_file = 256 * 1024;
constexpr int deepest_condition = 8;
constexpr size_t most_parameters = 16, most_values = 64, most_conditions = 64, most_constants = 64, most_launches = 8,
                 most_arguments = 32;
constexpr int64_t most_points = 4096;
constexpr size_t longest_name = 64, longest_words = 200;

// A value of the document with the place where it stands.
class Field {
 public:
  Field(const std::string& file, std::string path, const Json& value)
      : file_(file), path_(std::move(path)), value_(value) {}

  const std::string& path() const { return path_; }
  const Json& value() const { return value_; }

  [[noreturn]] void fail(std::string_view what, std::string_view expected) const {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {}{}", file_, path_.empty() ? "" : fmt::format("field '{}': ", path_), what),
                expected.empty() ? std::string() : fmt::format("expected {}", expected));
  }

  Field at(const std::string& key) const {
    return {file_, path_.empty() ? key : fmt::format("{}.{}", path_, key), value_.at(key)};
  }
  bool has(const std::string& key) const { return value_.contains(key); }

  std::vector<Field> elements(size_t least, size_t most, std::string_view what) const {
    const std::string expected = fmt::format("{} to {} {} in a list", least, most, what);
    if (!value_.is_array()) fail(fmt::format("is {}", described()), expected);
    if (value_.size() < least || value_.size() > most) fail(fmt::format("has {} elements", value_.size()), expected);
    std::vector<Field> list;
    for (size_t i = 0; i < value_.size(); ++i) list.emplace_back(file_, fmt::format("{}[{}]", path_, i), value_[i]);
    return list;
  }

  // The members of an object whose keys the author chooses.
  std::vector<std::pair<std::string, Field>> members(size_t most, std::string_view what) const {
    if (!value_.is_object()) fail(fmt::format("is {}", described()), fmt::format("an object of {}", what));
    if (value_.size() > most) fail(fmt::format("has {} members", value_.size()), fmt::format("at most {}", most));
    std::vector<std::pair<std::string, Field>> list;
    for (const auto& [key, value] : value_.items()) list.emplace_back(key, at(key));
    return list;
  }

  void require_members(std::initializer_list<std::string_view> known,
                       std::initializer_list<std::string_view> needed) const {
    if (!value_.is_object()) fail(fmt::format("is {}", described()), "an object");
    for (const auto& [key, value] : value_.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      fail(fmt::format("there is an unknown field '{:.64}'{}", key, suggestion(key, known)),
           fmt::format("one of {}", fmt::join(known, ", ")));
    }
    for (const std::string_view key : needed) {
      if (!value_.contains(key)) fail(fmt::format("the field '{}' is missing", key), "");
    }
  }

  const std::string& string(std::string_view expected) const {
    if (!value_.is_string()) fail(fmt::format("is {}", described()), expected);
    return value_.get_ref<const std::string&>();
  }

  int64_t integer(int64_t least, int64_t most) const {
    const std::string expected = fmt::format("an integer from {} to {}", least, most);
    if (!value_.is_number_integer()) fail(fmt::format("is {}", described()), expected);
    // Unsigned numbers beyond 2^63 would wrap around.
    const bool fits = !value_.is_number_unsigned() ||
                      value_.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    const auto number = value_.get<int64_t>();
    if (!fits || number < least || number > most) fail(fmt::format("is {}", described()), expected);
    return number;
  }

  bool boolean() const {
    if (!value_.is_boolean()) fail(fmt::format("is {}", described()), "true or false");
    return value_.get<bool>();
  }

  DescriptorExpression expression() const {
    constexpr std::string_view expected = "an expression of integers in quotes, or an integer";
    std::string text;
    if (value_.is_number_integer())
      text = std::to_string(integer(0, std::numeric_limits<int32_t>::max()));
    else
      text = string(expected);
    try {
      return {path_, IntegerExpression(text)};
    } catch (const Error& error) {
      fail(fmt::format("'{:.200}': {}", text, error.message()), expected);
    }
  }

 private:
  // The value's type, in few words.
  std::string described() const {
    switch (value_.type()) {
      case Json::value_t::object:
        return "an object";
      case Json::value_t::array:
        return "a list";
      case Json::value_t::string:
        return "a string";
      default:
        return fmt::format("{:.40}", value_.dump(-1, ' ', true, Json::error_handler_t::replace));
    }
  }

  const std::string& file_;
  std::string path_;
  const Json& value_;
};

// Line and column of a byte, both from 1.
std::pair<size_t, size_t> position_of(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t start = before.rfind('\n');
  return {line, std::max<size_t>(1, before.size() - (start == std::string_view::npos ? 0 : start + 1))};
}

// Refuses what a parser would let pass: keys that stand twice, and depth.
class Guard {
 public:
  explicit Guard(const std::string& file) : file_(file) {}

  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    if (depth > deepest_condition)
      throw Error(ErrorCode::parse_error, fmt::format("{}: it nests more than {} deep", file_, deepest_condition));
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end && !keys_.empty()) keys_.pop_back();
    if (event == Json::parse_event_t::key && !keys_.empty() && !keys_.back().insert(value.get<std::string>()).second) {
      throw Error(ErrorCode::parse_error,
                  fmt::format("{}: the field '{:.64}' stands twice", file_, value.get<std::string>()));
    }
    return true;
  }

 private:
  const std::string& file_;
  std::vector<std::set<std::string>> keys_;
};

Json parse_json(const std::string& file, std::string_view text) {
  if (text.size() > largest_file) {
    throw Error(ErrorCode::parse_error,
                fmt::format("{}: it has {} bytes, the most is {}", file, text.size(), largest_file));
  }
  Guard guard(file);
  try {
    return Json::parse(text,
                       [&](int depth, Json::parse_event_t event, Json& value) { return guard(depth, event, value); });
  } catch (const Json::parse_error& error) {
    const auto [line, column] = position_of(text, error.byte);
    throw Error(ErrorCode::parse_error, fmt::format("{}: line {}, column {}: this is not JSON", file, line, column),
                "check the brackets, commas and quotation marks there");
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::parse_error, fmt::format("{}: {}", file, error.what()));
  }
}

bool is_name(std::string_view text, char first, char last) {
  const auto letter = [&](char c) { return c >= first && c <= last; };
  return !text.empty() && text.size() <= longest_name && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

std::vector<UserDescriptor::Condition> conditions(const Field& field) {
  std::vector<UserDescriptor::Condition> list;
  for (const auto& [words, condition] : field.members(most_conditions, "conditions by the words for where they fail")) {
    if (words.empty() || words.size() > longest_words) {
      condition.fail(fmt::format("its name has {} characters", words.size()), fmt::format("1 to {}", longest_words));
    }
    list.push_back({words, condition.expression()});
  }
  return list;
}

std::vector<UserDescriptor::Parameter> parameters(const Field& field) {
  std::vector<UserDescriptor::Parameter> list;
  int64_t points = 1;
  for (const auto& [name, values] : field.members(most_parameters, "lists of values by name")) {
    if (!is_name(name, 'A', 'Z')) values.fail("its name is none", "upper-case letters, digits and underscores");
    UserDescriptor::Parameter parameter{name, {}};
    for (const Field& value : values.elements(1, most_values, "integers")) {
      parameter.values.push_back(value.integer(0, std::numeric_limits<int32_t>::max()));
    }
    std::set<int64_t> distinct(parameter.values.begin(), parameter.values.end());
    if (distinct.size() != parameter.values.size()) values.fail("a value stands twice", "distinct values");
    points *= static_cast<int64_t>(parameter.values.size());
    if (points > most_points) field.fail("there are too many points", fmt::format("at most {} in all", most_points));
    list.push_back(std::move(parameter));
  }
  return list;
}

std::vector<UserDescriptor::Constant> constants(const Field& field) {
  std::vector<UserDescriptor::Constant> list;
  for (const auto& [name, value] : field.members(most_constants, "expressions by name")) {
    if (!is_name(name, 'A', 'Z')) value.fail("its name is none", "upper-case letters, digits and underscores");
    list.push_back({name, value.expression()});
  }
  return list;
}

UserDescriptor::LaunchArgument argument(const Field& field, const Operation& operation) {
  if (field.value().is_object()) {
    field.require_members({"workspace"}, {"workspace"});
    return field.at("workspace").expression();
  }
  const std::string& name = field.string("the name of a value, or {\"workspace\": offset}");
  constexpr std::array<std::pair<std::string_view, Scalar>, 5> scalars = {{{"n", Scalar::n},
                                                                           {"alpha", Scalar::alpha},
                                                                           {"beta", Scalar::beta},
                                                                           {"clip_lo", Scalar::clip_lo},
                                                                           {"clip_hi", Scalar::clip_hi}}};
  std::string known = "user, n, alpha, beta, clip_lo, clip_hi";
  for (const OperandDefinition& operand : operation.operands()) {
    if (operand.name == name) return Argument(OperandArgument{name});
    known += ", " + operand.name;
  }
  for (const auto& [scalar, value] : scalars) {
    if (scalar == name) return Argument(value);
  }
  if (name == "user") return Argument(UserArgument{});
  for (size_t i = 0; i < operation.scalars().size(); ++i) {
    const std::string& scalar = operation.scalars()[i].name;
    if (scalar == name) return Argument(OperationScalar{i});
    known += ", " + scalar;
  }
  for (size_t i = 0; i < operation.integers().size(); ++i) {
    const std::string& integer = operation.integers()[i].name;
    if (integer == name) return Argument(OperationInteger{i});
    known += ", " + integer;
  }
  field.fail(fmt::format("there is no value '{:.64}'", name), "one of " + known);
}

UserDescriptor::Extent extent(const Field& field) {
  if (!field.value().is_object()) return {field.expression(), std::nullopt};
  field.require_members({"per_image", "per_block"}, {"per_image", "per_block"});
  return {field.at("per_image").expression(), field.at("per_block").expression()};
}

UserDescriptor::LaunchStep launch(const Field& field, const Operation& operation) {
  field.require_members({"kernel", "grid", "block", "dynamic_shared", "arguments"},
                        {"kernel", "grid", "block", "arguments"});
  UserDescriptor::LaunchStep step;
  const Field kernel = field.at("kernel");
  step.kernel = kernel.string("the name of a kernel");
  if (!is_name(step.kernel, 'a', 'z')) kernel.fail("it is no name", "lower-case letters, digits and underscores");
  for (const Field& entry : field.at("grid").elements(1, 3, "extents")) step.grid.push_back(extent(entry));
  for (const Field& entry : field.at("block").elements(1, 3, "extents")) step.block.push_back(entry.expression());
  if (field.has("dynamic_shared")) step.dynamic_shared = field.at("dynamic_shared").expression();
  for (const Field& entry : field.at("arguments").elements(1, most_arguments, "arguments")) {
    step.arguments.push_back(argument(entry, operation));
  }
  return step;
}

}  // namespace

UserDescriptor parse_user_descriptor(const std::string& name, const std::string& file, std::string_view json) {
  const Json document = parse_json(file, json);
  const Field root(file, "", document);
  root.require_members({"kiln_template", "summary", "operation", "applies", "parameters", "constants", "rules",
                        "launches", "workspace", "deterministic", "prologue", "efficiency"},
                       {"kiln_template", "operation", "launches"});
  (void)root.at("kiln_template").integer(1, 1);
  UserDescriptor descriptor;
  descriptor.name = name;
  const Field operation = root.at("operation");
  descriptor.operation = operation.string("the name of an operation");
  const Operation* definition = find_operation(descriptor.operation);
  if (definition == nullptr) {
    std::vector<std::string_view> known;
    for (const Operation* each : operations()) known.push_back(each->name());
    operation.fail(fmt::format("there is no such operation{}", suggestion(descriptor.operation, known)),
                   fmt::format("one of {}", fmt::join(known, ", ")));
  }
  if (root.has("summary")) (void)root.at("summary").string("a sentence");
  if (root.has("applies")) descriptor.applies = conditions(root.at("applies"));
  if (root.has("parameters")) descriptor.parameters = parameters(root.at("parameters"));
  if (root.has("constants")) descriptor.constants = constants(root.at("constants"));
  if (root.has("rules")) descriptor.rules = conditions(root.at("rules"));
  for (const Field& entry : root.at("launches").elements(1, most_launches, "launches")) {
    descriptor.launches.push_back(launch(entry, *definition));
  }
  if (root.has("workspace")) descriptor.workspace = root.at("workspace").expression();
  if (root.has("deterministic")) descriptor.deterministic = root.at("deterministic").boolean();
  if (root.has("prologue")) descriptor.prologue = root.at("prologue").boolean();
  if (root.has("efficiency")) descriptor.efficiency = root.at("efficiency").integer(1, 100);
  return descriptor;
}

}  // namespace kiln
