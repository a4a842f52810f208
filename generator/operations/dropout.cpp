#include "kiln/generator/operations/dropout.h"

#include "operations/operations.h"
#include "operations/pointwise.h"

namespace kiln {
namespace {

class DropoutOperation final : public ElementwiseOperation {
 public:
  std::string_view name() const override { return "dropout"; }
  std::string_view summary() const override {
    return "dropout, and its gradient, by a random sequence that a seed makes again";
  }
  std::string_view prologue_operand() const override { return "x"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x", .role = Role::input, .extents = "1 to 5 dimensions", .summary = "for the gradient, dy"},
        in_place({.name = "y",
                  .role = Role::output,
                  .extents = "as x",
                  .left_out = "dtype and layout of x",
                  .summary = "for the gradient, dx"},
                 {"x"}),
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> none;
    return none;
  }

  const std::vector<ScalarDefinition>& scalars() const override {
    static const std::vector<ScalarDefinition> scalars = {
        {"p", 0.5F, 0.375F, "the share of elements that become 0, from 0 to 1"}};
    return scalars;
  }

  std::vector<ScalarRule> scalar_rules(const Request&) const override { return {{0, 0, 1, "give 0 to 1"}}; }

  const std::vector<IntegerDefinition>& integers() const override {
    static const std::vector<IntegerDefinition> integers = {
        {"seed", 0x243f6a8885a308d3, "the key of the random sequence"},
        {"offset", 0x0000000113198a2e, "the place in that sequence: another one for each call"},
    };
    return integers;
  }
};

}  // namespace

const Operation& dropout_operation() {
  static const DropoutOperation definition;
  return definition;
}

Dropout Dropout::of(const Request& request) {
  return {request.at("x"), request.at("y"), request.blend, request.dynamic_batch};
}

Request Dropout::request() const {
  Request request;
  request.operation = "dropout";
  request.operands = {{"x", x}};
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
