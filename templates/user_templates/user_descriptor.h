// The descriptor of a user template, NAME.json: what docs/user-code.md documents, as a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/generator/program.h"
#include "kiln/templates/integer_expression.h"

namespace kiln {

/// An expression with the field that it stands in: "launches[0].block[1]".
struct DescriptorExpression {
  std::string field;
  IntegerExpression expression;
};

struct UserDescriptor {
  struct Parameter {
    std::string name;
    std::vector<int64_t> values;
  };
  /// A condition under the words that a user reads where it does not hold.
  struct Condition {
    std::string words;
    DescriptorExpression holds;
  };
  struct Constant {
    std::string name;
    DescriptorExpression value;
  };
  /// Blocks: a number, or ceil(per_image * n / per_block) for the n of the call.
  struct Extent {
    DescriptorExpression blocks;                    ///< or items of an image
    std::optional<DescriptorExpression> per_block;  ///< if it follows the batch
  };
  /// An operand, a scalar, the user code's values, or an offset into the workspace.
  using LaunchArgument = std::variant<Argument, DescriptorExpression>;
  struct LaunchStep {
    std::string kernel;
    std::vector<Extent> grid;                 ///< 1 to 3
    std::vector<DescriptorExpression> block;  ///< 1 to 3
    std::optional<DescriptorExpression> dynamic_shared;
    std::vector<LaunchArgument> arguments;
  };

  std::string name;       ///< Name of the algorithm: the file's name.
  std::string operation;  ///< Exists.
  std::vector<Condition> applies;
  std::vector<Parameter> parameters;
  std::vector<Constant> constants;
  std::vector<Condition> rules;
  std::vector<LaunchStep> launches;  ///< At least one.
  std::optional<DescriptorExpression> workspace;
  bool deterministic = true;
  bool prologue = false;    ///< Its kernels pass x through user_entered().
  int64_t efficiency = 10;  ///< Percent of the roofline that estimates assume.
};

/// Parses and checks a descriptor, but for names in expressions, which depend on the operation. `file` stands in
/// messages. Throws Error(parse_error) with line and column for malformed JSON, and Error(invalid_argument) naming the
/// field, what is there and what was expected: unknown and missing fields, wrong types, values out of range.
UserDescriptor parse_user_descriptor(const std::string& name, const std::string& file, std::string_view json);

}  // namespace kiln
