#include "kiln/generator/operations/reduce.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "operations/axes.h"
#include "operations/operations.h"
#include "operations/pointwise.h"
#include "operations/reduce_words.h"
#include "operations/short_form.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

using enum ReduceMode;

constexpr std::array<std::pair<ReduceMode, std::string_view>, 9> modes = {{{add, "add"},
                                                                           {mul, "mul"},
                                                                           {min, "min"},
                                                                           {max, "max"},
                                                                           {amax, "amax"},
                                                                           {mean, "mean"},
                                                                           {norm1, "norm1"},
                                                                           {norm2, "norm2"},
                                                                           {mul_no_zeros, "mul_no_zeros"}}};

class ReduceOperation final : public Operation {
 public:
  std::string_view name() const override { return "reduce"; }
  std::string_view summary() const override { return "sums, products, extremes and norms along any axes"; }
  std::string short_form(const Request& request) const override {
    return fmt::format("{} reduction {}{}, axes {}", request.word("mode"), extents_words(request.at("x")),
                       operand_words(request, "x"), axes_words(request));
  }
  bool has_order_of_sums() const override { return true; }
  std::optional<std::string> why_images_mix(const Request& request) const override {
    return why_axes_mix_images(request.ints("axes"), "is reduced");
  }
  size_t batch_dimensions(const Request& request, std::string_view operand) const override {
    return dimensions_before_axes(request, request.ints("axes"), operand);
  }
  std::string_view prologue_operand() const override { return "x"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x",
         .role = Role::input,
         .extents = "1 to 5 dimensions",
         .dtypes = DTypes::floating | DTypes::integers},
        {.name = "y",
         .role = Role::output,
         .extents = "as x, with 1 along the axes",
         .left_out = "dtype and layout of x",
         .dtypes = DTypes::floating | DTypes::integers},
        naming_elements({.name = "indices",
                         .role = Role::output,
                         .printing = Printing::when_set,
                         .extents = "as y",
                         .left_out = "not computed",
                         .summary = "the positions of the extremes, with min, max and amax",
                         .dtypes = DTypes::only_i32}),
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        axes_attribute({}, "the dimensions to reduce"),
        {"mode", std::string("add"), Printing::always, reduce_mode_words(), "how the elements are combined"},
    };
    return definitions;
  }

  void complete_attributes(Request& request) const override { complete_axes(request, "x"); }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* x = request.find("x");
    if (operand != "y" || x == nullptr) return std::nullopt;
    return laid_out_like(*x, reduced_extents(request, x->extents));
  }

  void validate(const Request& request) const override {
    require_rank(request, "x");
    check_axes(request, "x");
    const TensorSpec& x = request.at("x");
    const std::string_view reason = "those of x, and 1 along the axes";
    require_extents(request, "y", request.at("y"), reduced_extents(request, x.extents), reason);
    const TensorSpec* indices = request.find("indices");
    if (indices == nullptr) return;
    if (!has_indices(reduce_mode_of(request))) {
      refuse(request, fmt::format("mode={} has no indices", request.word("mode")), "min, max and amax have");
    }
    require_extents(request, "indices", *indices, request.at("y").extents, "those of y");
    if (Reduce::of(request).row_length() > std::numeric_limits<int32_t>::max()) {
      refuse(request, "a row has more positions than i32 has numbers", "leave the indices out");
    }
  }

  Work work(const Request& request) const override {
    Work work = pointwise_work(request, 0);
    work.flops = static_cast<double>(request.at("x").elements());
    if (const TensorSpec* indices = request.find("indices")) work.write_bytes += bytes_of(*indices);
    return work;
  }
};

}  // namespace

const Operation& reduce_operation() {
  static const ReduceOperation definition;
  return definition;
}

std::string_view to_string(ReduceMode mode) {
  const auto index = static_cast<size_t>(mode);
  return index < modes.size() ? modes[index].second : "?";
}

const std::vector<ReduceMode>& reduce_modes() {
  static const std::vector<ReduceMode> all = [] {
    std::vector<ReduceMode> list;
    for (const auto& [mode, word] : modes) list.push_back(mode);
    return list;
  }();
  return all;
}

bool has_indices(ReduceMode mode) {
  return mode == min || mode == max || mode == amax;
}

int64_t Reduce::row_length() const {
  int64_t elements = 1;
  for (const int64_t axis : axes) elements *= x.extents[static_cast<size_t>(axis)];
  return elements;
}

Reduce Reduce::of(const Request& request) {
  Reduce view;
  view.x = request.at("x");
  view.y = request.at("y");
  if (const TensorSpec* indices = request.find("indices")) view.indices = *indices;
  view.axes = request.ints("axes");
  view.mode = reduce_mode_of(request);
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request Reduce::request() const {
  Request request;
  request.operation = "reduce";
  request.operands = {{"x", x}};
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  if (!indices.extents.empty()) request.operands.push_back({"indices", indices});
  request.attributes = {{"axes", axes}, {"mode", std::string(to_string(mode))}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
