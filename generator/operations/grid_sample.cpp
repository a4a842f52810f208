#include "kiln/generator/operations/grid_sample.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operations/grid_words.h"
#include "operations/operations.h"
#include "operations/short_form.h"
#include "operations/spatial.h"
#include "operations/words.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

constexpr std::array grid_modes = {GridMode::linear, GridMode::nearest, GridMode::cubic};
constexpr std::array grid_paddings = {GridPadding::zeros, GridPadding::border, GridPadding::reflection};

void take_sampling(const Request& request, GridSampling& view) {
  view.mode = word_of(request, "mode", grid_modes);
  view.padding = word_of(request, "padding", grid_paddings);
  view.ends = ends_of(request);
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
}

Request request_of(const GridSampling& view, std::string operation) {
  Request request;
  request.operation = std::move(operation);
  request.attributes = {{"mode", std::string(to_string(view.mode))},
                        {"padding", std::string(to_string(view.padding))},
                        {"ends", std::string(to_string(view.ends))}};
  request.blend = view.blend;
  request.dynamic_batch = view.dynamic_batch;
  return request;
}

OperandDefinition image(std::string name, Role role, std::string left_out, std::string summary) {
  return {.name = std::move(name),
          .role = role,
          .extents = "N C H W; N C D H W",
          .left_out = std::move(left_out),
          .summary = std::move(summary)};
}
OperandDefinition sampled(std::string name, Role role, std::string left_out, std::string summary) {
  return {.name = std::move(name),
          .role = role,
          .extents = "N C P Q; N C Z P Q",
          .left_out = std::move(left_out),
          .summary = std::move(summary)};
}

// Parts that the three share. `image_name` and `sampled_name`: the operands with the extents of x and of y.
class GridOperation : public Operation {
 public:
  GridOperation(std::string_view image_name, std::string_view sampled_name)
      : image_name_(image_name), sampled_name_(sampled_name) {}

  bool adds_in_any_order() const final { return true; }

  const std::vector<AttributeDefinition>& attributes() const final {
    static const std::vector<AttributeDefinition> definitions = {
        {"mode", std::string("linear"), Printing::always, words_of(grid_modes),
         "elements around a position: two along each axis, the nearest, or four"},
        {"padding", std::string("zeros"), Printing::always, words_of(grid_paddings),
         "elements outside x: 0, the nearest of x, or those of x mirrored at its ends"},
        ends_attribute(),
    };
    return definitions;
  }
  void complete_attributes(Request&) const final {}

  Work work(const Request& request) const final {
    const TensorSpec& outputs = request.at(sampled_name_);
    const GridMode mode = word_of(request, "mode", grid_modes);
    const int axes = outputs.rank() - 2;
    const double taps = mode == GridMode::nearest ? 1 : mode == GridMode::cubic ? 16 : axes == 2 ? 4 : 8;
    Work work;
    work.flops = 2 * taps * static_cast<double>(outputs.elements());
    add_each_operand(request, work);
    return work;
  }

  void validate(const Request& request) const final {
    check_inputs(request);
    require_extents(request, sampled_name_, request.at(sampled_name_), sampled_extents(request),
                    "N and C of the image, and the positions of grid");
    if (const TensorSpec* const dgrid = request.find("dgrid")) {
      require_extents(request, "dgrid", *dgrid, request.at("grid").extents, "those of grid");
    }
  }

 protected:
  std::string words(const Request& request) const {
    return fmt::format("grid sample {} at {}{}{}", extents_words(request.at(image_name_)),
                       extents_words(request.at(sampled_name_)), mode_words(request),
                       operand_words(request, image_name_));
  }

  // Extents of y, after check_inputs().
  Ints sampled_extents(const Request& request) const {
    const Ints &x = request.at(image_name_).extents, &grid = request.at("grid").extents;
    Ints extents = {x[0], x[1]};
    extents.insert(extents.end(), grid.begin() + 1, grid.end() - 1);
    return extents;
  }

  // Refuses an image and a grid that no request has.
  void check_inputs(const Request& request) const {
    const TensorSpec &x = request.at(image_name_), &grid = request.at("grid");
    const int axes = x.rank() - 2;
    if (axes != 2 && axes != 3) {
      refuse(request, fmt::format("{} has {} dimensions", image_name_, x.rank()), "it is N,C,H,W or N,C,D,H,W");
    }
    if (grid.rank() != x.rank() || grid.extents.back() != axes) {
      refuse(request, fmt::format("grid has extents {}", extents_words(grid)),
             axes == 2 ? "it is N,P,Q,2" : "it is N,Z,P,Q,3");
    }
    if (grid.extents[0] != x.extents[0]) {
      refuse(request, fmt::format("grid has batch {}", grid.extents[0]), fmt::format("give {}", x.extents[0]));
    }
    for (size_t i = 2; i < x.extents.size(); ++i) {
      if (x.extents[i] >= 1 && x.extents[i] <= most_elements_of_grid_axis) continue;
      refuse(request, fmt::format("{} has extents {}", image_name_, extents_words(x)),
             fmt::format("give 1 to {} along each axis", most_elements_of_grid_axis));
    }
    if (axes == 3 && word_of(request, "mode", grid_modes) == GridMode::cubic) {
      refuse(request, "mode=cubic in 3-D", "use linear or nearest");
    }
  }

 private:
  static std::string mode_words(const Request& request) {
    std::string words = ", " + request.word("mode");
    if (request.word("padding") != "zeros") words += ", " + request.word("padding");
    if (request.word("ends") != "edges") words += ", " + request.word("ends");
    return words;
  }

  const std::string image_name_, sampled_name_;
};

class GridSampleOperation final : public GridOperation {
 public:
  GridSampleOperation() : GridOperation("x", "y") {}
  std::string_view name() const override { return "grid_sample"; }
  std::string_view summary() const override { return "elements of x at positions that a grid gives"; }
  std::string_view channel_name() const override { return "c"; }
  std::string short_form(const Request& request) const override { return words(request); }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {image("x", Role::input, "", ""),
                                                               grid_operand("grid", Role::input, "", coordinates_words),
                                                               sampled("y", Role::output, "dtype and layout of x", "")};
    return definitions;
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    if (operand != "y" || request.find("x") == nullptr || request.find("grid") == nullptr) return std::nullopt;
    check_inputs(request);
    return laid_out_like(request.at("x"), sampled_extents(request));
  }
};

class GridSampleBackwardDataOperation final : public GridOperation {
 public:
  GridSampleBackwardDataOperation() : GridOperation("dx", "dy") {}
  std::string_view name() const override { return "grid_sample_backward_data"; }
  std::string_view summary() const override { return "the gradient of grid_sample by x"; }
  std::string_view channel_name() const override { return "c"; }
  std::string short_form(const Request& request) const override { return "gradient of " + words(request); }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {sampled("dy", Role::input, "", "the gradient of y"),
                                                               grid_operand("grid", Role::input, "", coordinates_words),
                                                               image("dx", Role::output, "", "")};
    return definitions;
  }
  std::optional<TensorSpec> implied_operand(const Request&, std::string_view) const override { return std::nullopt; }
};

class GridSampleBackwardGridOperation final : public GridOperation {
 public:
  GridSampleBackwardGridOperation() : GridOperation("x", "dy") {}
  std::string_view name() const override { return "grid_sample_backward_grid"; }
  std::string_view summary() const override { return "the gradient of grid_sample by the grid"; }
  std::string short_form(const Request& request) const override { return "gradient by the grid of " + words(request); }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        sampled("dy", Role::input, "", "the gradient of y"), image("x", Role::input, "", ""),
        grid_operand("grid", Role::input, "", coordinates_words),
        grid_operand("dgrid", Role::output, "dtype and layout of grid", "")};
    return definitions;
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* const grid = request.find("grid");
    if (operand != "dgrid" || grid == nullptr) return std::nullopt;
    return laid_out_like(*grid, grid->extents);
  }
};

}  // namespace

std::string_view to_string(GridMode mode) {
  switch (mode) {
    case GridMode::linear:
      return "linear";
    case GridMode::nearest:
      return "nearest";
    case GridMode::cubic:
      return "cubic";
  }
  return "?";
}

std::string_view to_string(GridPadding padding) {
  switch (padding) {
    case GridPadding::zeros:
      return "zeros";
    case GridPadding::border:
      return "border";
    case GridPadding::reflection:
      return "reflection";
  }
  return "?";
}

std::string_view to_string(GridEnds ends) {
  switch (ends) {
    case GridEnds::edges:
      return "edges";
    case GridEnds::centres:
      return "centres";
  }
  return "?";
}

const Operation& grid_sample_operation() {
  static const GridSampleOperation definition;
  return definition;
}
const Operation& grid_sample_backward_data_operation() {
  static const GridSampleBackwardDataOperation definition;
  return definition;
}
const Operation& grid_sample_backward_grid_operation() {
  static const GridSampleBackwardGridOperation definition;
  return definition;
}

GridSample GridSample::of(const Request& request) {
  GridSample view;
  take_sampling(request, view);
  view.x = request.at("x");
  view.grid = request.at("grid");
  view.y = request.at("y");
  return view;
}

Request GridSample::request() const {
  Request request = request_of(*this, "grid_sample");
  request.operands = {{"x", x}, {"grid", grid}};
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  return finished(std::move(request));
}

GridSampleBackwardData GridSampleBackwardData::of(const Request& request) {
  GridSampleBackwardData view;
  take_sampling(request, view);
  view.dy = request.at("dy");
  view.grid = request.at("grid");
  view.dx = request.at("dx");
  return view;
}

Request GridSampleBackwardData::request() const {
  Request request = request_of(*this, "grid_sample_backward_data");
  request.operands = {{"dy", dy}, {"grid", grid}, {"dx", dx}};
  return finished(std::move(request));
}

GridSampleBackwardGrid GridSampleBackwardGrid::of(const Request& request) {
  GridSampleBackwardGrid view;
  take_sampling(request, view);
  view.dy = request.at("dy");
  view.x = request.at("x");
  view.grid = request.at("grid");
  view.dgrid = request.at("dgrid");
  return view;
}

Request GridSampleBackwardGrid::request() const {
  Request request = request_of(*this, "grid_sample_backward_grid");
  request.operands = {{"dy", dy}, {"x", x}, {"grid", grid}};
  if (!dgrid.extents.empty()) request.operands.push_back({"dgrid", dgrid});
  return finished(std::move(request));
}

}  // namespace kiln
