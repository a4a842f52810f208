#include "kiln/generator/operations/pool_forward.h"

#include <fmt/format.h>

#include "operations/operations.h"
#include "operations/pool_window.h"
#include "operations/short_form.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

class PoolForwardOperation final : public Operation {
 public:
  std::string_view name() const override { return "pool_forward"; }
  std::string_view summary() const override {
    return "maximum and average pooling in 1-D, 2-D and 3-D, global pooling";
  }
  std::string short_form(const Request& request) const override {
    return fmt::format("{} pool {}{}, {}{}", request.word("mode"), extents_words(request.at("x")),
                       operand_words(request, "x"), pool_window_words(request, "x"), steps_words(steps_of(request)));
  }
  bool has_order_of_sums() const override { return true; }
  std::string_view channel_name() const override { return "c"; }
  std::string_view prologue_operand() const override { return "x"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x",
         .role = Role::input,
         .extents = "N C W; N C H W; N C D H W",
         .summary = "integers with mode=max only",
         .dtypes = DTypes::floating | DTypes::integers},
        {.name = "y",
         .role = Role::output,
         .extents = "N C Q; N C P Q; N C Z P Q",
         .left_out = "dtype and layout of x",
         .summary = "integers with mode=max only",
         .dtypes = DTypes::floating | DTypes::integers},
        naming_positions({.name = "indices",
                          .role = Role::output,
                          .printing = Printing::when_set,
                          .extents = "as y",
                          .left_out = "not computed",
                          .summary = "the positions of the maxima, with mode=max only",
                          .dtypes = DTypes::only_i32},
                         "x"),
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = [] {
      std::vector<AttributeDefinition> all = pooling_attributes();
      all.push_back({"ceil",
                     Ints{0},
                     Printing::never,
                     {},
                     "where y is left out, 1 rounds its extents up, but omits a last window that would start in the "
                     "padding at the end"});
      return all;
    }();
    return definitions;
  }

  void complete_attributes(Request& request) const override {
    complete_pool_window(request, "x");
    expand(request, "ceil", 1, 1);
    const int64_t ceil = request.ints("ceil").front();
    if (ceil != 0 && ceil != 1) refuse(request, fmt::format("ceil is {}", ceil), "give 0 or 1");
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    if (operand != "y" || request.find("x") == nullptr) return std::nullopt;
    check_pool_input(request, "x");
    const TensorSpec& x = request.at("x");
    const bool ceil = request.ints("ceil").front() != 0;
    Ints extents = {x.extents[0], x.extents[1]};
    for (int i = 0; i < x.rank() - 2; ++i) {
      const WindowAxis axis = pool_axis(request, "x", i);
      extents.push_back(ceil ? axis.outputs_ceil() : axis.outputs_floor());
    }
    return laid_out_like(x, std::move(extents));
  }

  void validate(const Request& request) const override {
    check_pool_input(request, "x");
    check_pool_output(request, "x", "y");
    check_has_fractions(request, "x");
    check_has_fractions(request, "y");
    check_has_maxima(request);
    check_pool_indices(request, "y");
  }

  // An average of integers would have to say how it rounds.
  static void check_has_fractions(const Request& request, std::string_view operand) {
    const DType dtype = request.at(operand).dtype;
    if (pooling_of(request).mode == PoolMode::max || is_floating(dtype)) return;
    refuse(request, fmt::format("{} is {}", operand, to_string(dtype)),
           fmt::format("averages are of {}; integers have a maximum", to_string(DTypes::floating)));
  }

  Work work(const Request& request) const override {
    const TensorSpec &x = request.at("x"), &y = request.at("y");
    Work work;
    work.flops = static_cast<double>(y.elements());
    for (const int64_t taps : request.ints("window")) work.flops *= static_cast<double>(taps);
    work.read_bytes = bytes_of(x);
    work.write_bytes = bytes_of(y);
    if (request.blend.beta != Scale::zero) work.read_bytes += work.write_bytes;
    if (const TensorSpec* indices = request.find("indices")) work.write_bytes += bytes_of(*indices);
    return work;
  }
};

}  // namespace

const Operation& pool_forward_operation() {
  static const PoolForwardOperation definition;
  return definition;
}

PoolForward PoolForward::of(const Request& request) {
  PoolForward view;
  static_cast<Pooling&>(view) = pooling_of(request);
  view.x = request.at("x");
  view.y = request.at("y");
  if (const TensorSpec* indices = request.find("indices")) view.indices = *indices;
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request PoolForward::request() const {
  Request request;
  request.operation = "pool_forward";
  request.operands = {{"x", x}};
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  if (!indices.extents.empty()) request.operands.push_back({"indices", indices});
  request.attributes = attributes_of(*this);
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
