#include "kiln/generator/operations/softmax_forward.h"

#include <fmt/format.h>

#include "operations/operations.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

class SoftmaxForwardOperation final : public Operation {
 public:
  std::string_view name() const override { return "softmax_forward"; }
  std::string_view summary() const override { return "softmax and log-softmax over any axis"; }
  bool takes_user_code() const override { return true; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {"x", Role::input, true, Printing::always, "1 to 5 dimensions"},
        {"y", Role::output, true, Printing::always, "as x"},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        {"axis", Ints{1}, Printing::always, {}, "the axis that is normalised; negative counts from the end"},
        {"mode", std::string("accurate"), Printing::always, {"accurate", "log"}, "log gives the logarithm"},
    };
    return definitions;
  }

  void complete_attributes(Request& request) const override {
    expand(request, "axis", 1, 1);
    const TensorSpec* x = request.find("x");
    const int64_t axis = request.ints("axis").front();
    if (x != nullptr && axis < 0) set_ints(request, "axis", {axis + x->rank()});
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* x = request.find("x");
    if (operand != "y" || x == nullptr) return std::nullopt;
    return laid_out_like(*x, x->extents);
  }

  void validate(const Request& request) const override {
    const TensorSpec& x = request.at("x");
    const int64_t axis = request.ints("axis").front();
    if (x.rank() < 1 || x.rank() > 5) refuse(request, "x must have 1 to 5 dimensions", "");
    if (axis < 0 || axis >= x.rank()) {
      refuse(request, fmt::format("axis {} is outside the {} dimensions of x", axis, x.rank()), "");
    }
    if (request.dynamic_batch && axis == 0) {
      refuse(request, "the batch cannot be dynamic along the axis that is normalised", "fix the batch");
    }
    require_extents(request, "y", request.at("y"), x.extents, "those of x");
  }

  Work work(const Request& request) const override {
    const TensorSpec &x = request.at("x"), &y = request.at("y");
    Work work;
    work.flops = 5.0 * static_cast<double>(x.elements());  // max, subtract, exp, add, scale
    work.read_bytes = static_cast<double>(x.elements()) * size_of(x.dtype);
    work.write_bytes = static_cast<double>(y.elements()) * size_of(y.dtype);
    if (request.blend.beta != Scale::zero) work.read_bytes += work.write_bytes;
    return work;
  }
};

}  // namespace

const Operation& softmax_forward_operation() {
  static const SoftmaxForwardOperation definition;
  return definition;
}

SoftmaxForward SoftmaxForward::of(const Request& request) {
  SoftmaxForward view;
  view.x = request.at("x");
  view.y = request.at("y");
  view.axis = request.ints("axis").front();
  view.mode = request.word("mode") == "log" ? SoftmaxMode::log : SoftmaxMode::accurate;
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request SoftmaxForward::request() const {
  Request request;
  request.operation = "softmax_forward";
  request.operands = {{"x", x}};
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  request.attributes = {{"axis", Ints{axis}}, {"mode", std::string(mode == SoftmaxMode::log ? "log" : "accurate")}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

int64_t SoftmaxForward::rows() const {
  int64_t rows = 1;
  for (size_t i = 0; i < x.extents.size(); ++i) {
    if (static_cast<int64_t>(i) != axis) rows *= x.extents[i];
  }
  return rows;
}

}  // namespace kiln
