#include "kiln/generator/operations/scatter.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "operations/operations.h"
#include "operations/pointwise.h"
#include "operations/short_form.h"
#include "operations/spatial.h"
#include "operations/words.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

constexpr std::array scatter_modes = {ScatterMode::add, ScatterMode::mul, ScatterMode::min, ScatterMode::max};

int64_t axis_of_scatter(const Request& request) {
  return request.ints("axis").front();
}

class ScatterOperation final : public Operation {
 public:
  std::string_view name() const override { return "scatter"; }
  std::string_view summary() const override {
    return "elements that are brought together where indices say along one dimension";
  }
  bool adds_in_any_order() const override { return true; }
  std::string short_form(const Request& request) const override {
    const std::string& mode = request.word("mode");
    return fmt::format("scatter {} into {}{}{}", extents_words(request.at("updates")), extents_words(request.at("y")),
                       mode == "add" ? "" : ", " + mode, operand_words(request, "updates"));
  }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "updates", .role = Role::input, .extents = "along `axis` any, in every other dimension y's"},
        {.name = "indices",
         .role = Role::input,
         .extents = "along `axis` those of updates, in every other dimension y's or 1",
         .summary = "negative ones count from the end; what one outside y names is left out; an extent of 1 repeats",
         .dtypes = DTypes::only_i32,
         .repeats = true},
        {.name = "y", .role = Role::output, .extents = "1 to 5 dimensions"},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        {"axis", Ints{0}, Printing::always, {}, "the dimension of y that indices count along; negative: from the end"},
        {"mode", std::string("add"), Printing::always, words_of(scatter_modes),
         "what becomes of the updates that name one element; of none that is 0, 1, infinity, or -infinity"}};
    return definitions;
  }

  void complete_attributes(Request& request) const override {
    expand(request, "axis", 1, 1);
    const TensorSpec* y = request.find("y");
    const int64_t axis = axis_of_scatter(request);
    if (y != nullptr && axis < 0 && axis >= -y->rank()) set_ints(request, "axis", {axis + y->rank()});
  }

  std::optional<TensorSpec> implied_operand(const Request&, std::string_view) const override { return std::nullopt; }

  void validate(const Request& request) const override {
    require_rank(request, "y");
    const TensorSpec &y = request.at("y"), &updates = request.at("updates"), &indices = request.at("indices");
    const int64_t axis = axis_of_scatter(request);
    if (axis < 0 || axis >= y.rank()) {
      refuse(request, fmt::format("axis {} is outside the {} dimensions of y", axis, y.rank()),
             fmt::format("give 0 to {}, or -1 for the last", y.rank() - 1));
    }
    const auto along = static_cast<size_t>(axis);
    if (updates.rank() != y.rank() || indices.rank() != y.rank()) {
      refuse(request,
             fmt::format("updates have {} dimensions, indices {}, y has {}", updates.rank(), indices.rank(), y.rank()),
             "give them y's; indices with extents of 1 where they repeat");
    }
    if (y.extents[along] > std::numeric_limits<int32_t>::max()) {
      refuse(request, fmt::format("y has extent {} along the axis", y.extents[along]),
             "indices are i32: give 2^31 - 1 at most");
    }
    Ints expected = y.extents;
    expected[along] = updates.extents[along];
    require_extents(request, "updates", updates, expected, "y's, but along the axis");
    for (size_t i = 0; i < expected.size(); ++i) {
      if (indices.extents[i] == expected[i] || (i != along && indices.extents[i] == 1)) continue;
      refuse(
          request,
          fmt::format("along dimension {} indices have extent {} and updates {}", i, indices.extents[i], expected[i]),
          i == along ? "they have to be equal" : "they have to be equal, or that of indices 1");
    }
    if (request.dynamic_batch && axis == 0) {
      refuse(request, "the batch cannot be dynamic along the axis that indices count along",
             "fix the batch, or give y a dimension of 1 in front");
    }
  }

  Work work(const Request& request) const override {
    Work work;
    work.flops = static_cast<double>(request.at("updates").elements());
    add_each_operand(request, work);
    return work;
  }
};

}  // namespace

std::string_view to_string(ScatterMode mode) {
  switch (mode) {
    case ScatterMode::add:
      return "add";
    case ScatterMode::mul:
      return "mul";
    case ScatterMode::min:
      return "min";
    case ScatterMode::max:
      return "max";
  }
  return "?";
}

const Operation& scatter_operation() {
  static const ScatterOperation definition;
  return definition;
}

Scatter Scatter::of(const Request& request) {
  return {request.at("updates"),
          request.at("indices"),
          request.at("y"),
          axis_of_scatter(request),
          word_of(request, "mode", scatter_modes),
          request.blend,
          request.dynamic_batch};
}

Request Scatter::request() const {
  Request request;
  request.operation = "scatter";
  request.operands = {{"updates", updates}, {"indices", indices}, {"y", y}};
  request.attributes = {{"axis", Ints{axis}}, {"mode", std::string(to_string(mode))}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
