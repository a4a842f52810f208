// kiln describe: what requests of an operation may say.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "checks.h"
#include "command_line.h"
#include "commands.h"
#include "json.h"
#include "kiln/generator/operation.h"
#include "output.h"
#include "request_examples.h"
#include "table.h"

namespace kiln::cli {
namespace {

struct DescribeOptions {
  std::string operation;
  Output output;
};

std::string_view role_text(Role role) {
  switch (role) {
    case Role::input:
      return "input";
    case Role::output:
      return "output";
    case Role::updated:
      return "updated";
  }
  return "?";
}

std::vector<std::string_view> dtypes_of(const OperandDefinition& operand) {
  std::vector<std::string_view> names;
  for (const DType dtype : all_dtypes) {
    if (operand.dtypes.holds(dtype)) names.push_back(to_string(dtype));
  }
  return names;
}

// The first output: what alpha, beta and the epilogue apply to.
std::string_view result_name(const Operation& operation) {
  for (const OperandDefinition& operand : operation.operands()) {
    if (operand.role == Role::output) return operand.name;
  }
  return {};
}

// Whether a prologue knows the channel of an element. The rank only shifts it.
bool prologue_knows_channel(const Operation& operation) {
  return operation.prologue_channel_dimension(operation.most_dimensions()).has_value();
}

std::string_view example_of(const Operation& operation) {
  const std::string start = fmt::format("\n{} ", operation.name());
  const size_t at = one_of_each.find(start) + 1;
  return one_of_each.substr(at, one_of_each.find('\n', at) - at);
}

Json or_null(std::string_view text) {
  return text.empty() ? Json() : Json(text);
}

// "x", "x or y", "x, y or dy".
std::string alternatives(const std::vector<std::string_view>& names) {
  std::string text(names.front());
  for (size_t i = 1; i < names.size(); ++i) text += fmt::format("{}{}", i + 1 < names.size() ? ", " : " or ", names[i]);
  return text;
}

std::string remarks_of(const OperandDefinition& operand) {
  if (operand.may_be.empty()) return operand.summary;
  const std::string in_place = fmt::format("may be {} itself", alternatives(operand.may_be));
  return operand.summary.empty() ? in_place : fmt::format("{}; {}", in_place, operand.summary);
}

Json json_of(const Operation& operation) {
  Json operands = Json::array(), attributes = Json::array(), words = Json::array();
  for (const OperandDefinition& operand : operation.operands()) {
    operands.push_back({{"name", operand.name},
                        {"role", role_text(operand.role)},
                        {"dtypes", dtypes_of(operand)},
                        {"extents", operand.extents},
                        {"left_out", or_null(operand.left_out)},
                        {"optional", operand.printing == Printing::when_set},
                        {"may_be", operand.may_be},
                        {"summary", remarks_of(operand)}});
  }
  for (const AttributeDefinition& attribute : operation.attributes()) {
    attributes.push_back({{"name", attribute.name},
                          {"default", or_null(attribute_text(attribute.fallback))},
                          {"words", attribute.words},
                          {"summary", attribute.summary}});
  }
  for (const CommonWord& word : common_words(operation)) {
    words.push_back(
        {{"name", word.name}, {"values", or_null(word.values)}, {"default", word.fallback}, {"summary", word.summary}});
  }
  Json numbers = Json::array(), integers = Json::array();
  for (const ScalarDefinition& scalar : operation.scalars()) {
    numbers.push_back({{"name", scalar.name},
                       {"default", scalar.fallback ? Json(*scalar.fallback) : Json()},
                       {"in_checks", scalar.in_checks},
                       {"summary", scalar.summary}});
  }
  for (const IntegerDefinition& integer : operation.integers()) {
    integers.push_back(
        {{"name", integer.name}, {"default", 0}, {"in_checks", integer.in_checks}, {"summary", integer.summary}});
  }
  const bool has_prologue = !operation.prologue_operand().empty();
  return {{"operation", operation.name()},
          {"summary", operation.summary()},
          {"most_dimensions", operation.most_dimensions()},
          {"operands", operands},
          {"attributes", attributes},
          {"words", words},
          {"numbers", numbers},
          {"integers", integers},
          {"result", result_name(operation)},
          {"channel", or_null(operation.channel_name())},
          {"prologue", or_null(operation.prologue_operand())},
          {"prologue_channel", has_prologue && prologue_knows_channel(operation) ? Json("c") : Json()},
          {"example", example_of(operation)}};
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

void print(const Table& table, const Output& output) {
  if (!table.empty()) fmt::print("\n{}", output.print(table));
}

void print_operands(const Operation& operation, const Output& output) {
  Table table({"operand", "role", "dtypes", "extents", "left out", "remarks"});
  for (const OperandDefinition& operand : operation.operands()) {
    const std::vector<std::string_view> dtypes = dtypes_of(operand);
    table.add({operand.name, std::string(role_text(operand.role)),
               dtypes.size() == all_dtypes.size() ? "any" : fmt::format("{}", fmt::join(dtypes, ", ")), operand.extents,
               operand.left_out.empty() ? "has to be given" : operand.left_out, remarks_of(operand)});
  }
  print(table, output);
}

void print_attributes(const Operation& operation, const Output& output) {
  Table table({"attribute", "default", "meaning", "values"});
  for (const AttributeDefinition& attribute : operation.attributes()) {
    table.add({attribute.name, or_dash(attribute_text(attribute.fallback)), attribute.summary,
               attribute.words.empty() ? "numbers" : fmt::format("{}", fmt::join(attribute.words, ", "))});
  }
  print(table, output);
}

void print_words(const Operation& operation, const Output& output) {
  Table table({"common word", "default", "meaning", "values"});
  for (const CommonWord& word : common_words(operation)) {
    table.add({std::string(word.name), std::string(word.fallback), std::string(word.summary), or_dash(word.values)});
  }
  print(table, output);
}

void print_numbers(const Operation& operation, const Output& output) {
  Table table({"number of the call", ">default", ">in kiln run", "meaning"});
  for (const ScalarDefinition& scalar : operation.scalars()) {
    table.add({scalar.name, scalar.fallback ? fmt::format("{}", *scalar.fallback) : "by the function",
               fmt::format("{}", scalar.in_checks), scalar.summary});
  }
  for (const IntegerDefinition& integer : operation.integers()) {
    table.add({integer.name, "0", fmt::format("{}", integer.in_checks), "integer: " + integer.summary});
  }
  print(table, output);
}

void print_user_code(const Operation& operation) {
  fmt::print("\nuser code: an epilogue on {}", result_name(operation));
  if (!operation.channel_name().empty()) fmt::print(", whose channel it calls {}", operation.channel_name());
  if (operation.prologue_operand().empty()) {
    fmt::print("; no prologue\n");
    return;
  }
  fmt::print("; a prologue on {}", operation.prologue_operand());
  if (prologue_knows_channel(operation)) fmt::print(", whose channel it calls c");
  fmt::print("\n");
}

void print_operation(const Operation& operation, const Output& output) {
  fmt::print("{}: {}\n", operation.name(), operation.summary());
  print_operands(operation, output);
  print_attributes(operation, output);
  print_words(operation, output);
  print_numbers(operation, output);
  print_user_code(operation);
  fmt::print("example: kiln explain '{}'\n", example_of(operation));
}

int describe_operations(const DescribeOptions& options) {
  std::vector<const Operation*> described = operations();
  if (!options.operation.empty()) described = {&operation(options.operation)};
  if (options.output.json) {
    Json list = Json::array();
    for (const Operation* one : described) list.push_back(json_of(*one));
    print_json({{"operations", list}});
  } else if (!options.operation.empty()) {
    print_operation(*described.front(), options.output);
  } else {
    Table table({"operation", "what it computes"});
    for (const Operation* one : described) table.add({std::string(one->name()), std::string(one->summary())});
    fmt::print("{}", options.output.print(table));
  }
  return success;
}

}  // namespace

void add_describe(Command app, int& exit_code) {
  auto options = std::make_shared<DescribeOptions>();
  const Command command = app.add_command("describe", "list the operations, or the parts of an operation's requests");
  std::vector<std::string> names;
  for (const Operation* one : operations()) names.emplace_back(one->name());
  command.add_option("operation", options->operation, "the operation; without one, all are listed")
      .check(one_of(std::move(names)));
  options->output.add_to(command);
  command.footer("Example: kiln describe conv_forward\nRequest syntax: docs/request-syntax.md.");
  command.on_chosen([options, &exit_code] { exit_code = describe_operations(*options); });
}

}  // namespace kiln::cli
