#include "kiln/generator/operations/tensor_ops.h"
#include "operations/operations.h"
#include "operations/pointwise.h"
#include "operations/short_form.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

class TensorSetOperation final : public Operation {
 public:
  std::string_view name() const override { return "tensor_set"; }
  std::string_view summary() const override { return "one value in every element"; }
  std::string short_form(const Request& request) const override { return "set " + result_words(request); }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "y",
         .role = Role::output,
         .extents = "1 to 5 dimensions",
         .dtypes = DTypes::floating | DTypes::integers},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> none;
    return none;
  }

  const std::vector<ScalarDefinition>& scalars() const override {
    static const std::vector<ScalarDefinition> scalars = {{"value", 0, 2.625F, "what every element becomes"}};
    return scalars;
  }

  bool has_blend() const override { return false; }  // the value is scaled already

  void complete_attributes(Request&) const override {}
  std::optional<TensorSpec> implied_operand(const Request&, std::string_view) const override { return std::nullopt; }

  void validate(const Request& request) const override { require_rank(request, "y"); }

  Work work(const Request& request) const override { return pointwise_work(request, 0); }
};

}  // namespace

const Operation& tensor_set_operation() {
  static const TensorSetOperation definition;
  return definition;
}

TensorSet TensorSet::of(const Request& request) {
  return {.y = request.at("y"), .dynamic_batch = request.dynamic_batch};
}

Request TensorSet::request() const {
  Request request;
  request.operation = "tensor_set";
  request.operands = {{"y", y}};
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
