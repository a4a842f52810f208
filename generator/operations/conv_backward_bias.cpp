#include "kiln/generator/operations/conv_backward_bias.h"

#include <fmt/format.h>

#include "operations/convolution.h"
#include "operations/operations.h"
#include "operations/short_form.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

class ConvBackwardBiasOperation final : public Operation {
 public:
  std::string_view name() const override { return "conv_backward_bias"; }
  std::string_view summary() const override {
    return "gradient of convolution with respect to its bias: sums over all dimensions but the channels";
  }
  std::string short_form(const Request& request) const override {
    return fmt::format("conv bias gradient {}{}", extents_words(request.at("dy")), operand_words(request, "dy"));
  }
  std::string_view prologue_operand() const override { return "dy"; }
  std::optional<size_t> prologue_channel_dimension(int /*rank*/) const override { return 1; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "dy",
         .role = Role::input,
         .extents = "N K and up to three spatial dimensions",
         .dtypes = DTypes::floating_or_fp8},
        {.name = "db",
         .role = Role::output,
         .batched = false,
         .extents = "K",
         .left_out = "dtype of dy",
         .dtypes = DTypes::floating_or_fp8},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> none;
    return none;
  }

  void complete_attributes(Request&) const override {}

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* dy = request.find("dy");
    if (operand != "db" || dy == nullptr) return std::nullopt;
    check_gradient(request);
    return TensorSpec::packed(dy->dtype, {dy->extents[1]}, "n");
  }

  void validate(const Request& request) const override {
    check_gradient(request);
    require_extents(request, "db", request.at("db"), {request.at("dy").extents[1]}, "one element a channel of dy");
  }

  Work work(const Request& request) const override {
    const TensorSpec &dy = request.at("dy"), &db = request.at("db");
    Work work;
    work.flops = static_cast<double>(dy.elements());
    work.read_bytes = bytes_of(dy) + (request.blend.beta != Scale::zero ? bytes_of(db) : 0);
    work.write_bytes = bytes_of(db);
    return work;
  }

 private:
  static void check_gradient(const Request& request) {
    const TensorSpec& dy = request.at("dy");
    if (dy.rank() < 2) {
      refuse(request, fmt::format("dy has {} dimensions", dy.rank()),
             "it takes N,K and up to three spatial dimensions");
    }
    if (dy.extents[1] < 1) refuse(request, "dy has no channels", "");
  }
};

}  // namespace

const Operation& conv_backward_bias_operation() {
  static const ConvBackwardBiasOperation definition;
  return definition;
}

ConvBackwardBias ConvBackwardBias::of(const Request& request) {
  ConvBackwardBias view;
  view.dy = request.at("dy");
  view.db = request.at("db");
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request ConvBackwardBias::request() const {
  Request request;
  request.operation = "conv_backward_bias";
  request.operands = {{"dy", dy}};
  if (!db.extents.empty()) request.operands.push_back({"db", db});
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

int64_t ConvBackwardBias::pixels() const {
  int64_t pixels = 1;
  for (size_t i = 2; i < dy.extents.size(); ++i) pixels *= dy.extents[i];
  return pixels;
}

}  // namespace kiln
