#include "kiln/generator/operations/affine_grid.h"

#include <fmt/format.h>

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

OperandDefinition matrices(std::string name, Role role, std::string left_out, std::string summary) {
  return {.name = std::move(name),
          .role = role,
          .extents = "N 2 3; N 3 4",
          .left_out = std::move(left_out),
          .summary = std::move(summary)};
}

// Parts that the two share. `grid_name` and `theta_name`: the operands with the extents of grid and of theta.
class AffineGridOperations : public Operation {
 public:
  AffineGridOperations(std::string_view grid_name, std::string_view theta_name)
      : grid_name_(grid_name), theta_name_(theta_name) {}

  bool adds_in_any_order() const final { return true; }

  const std::vector<AttributeDefinition>& attributes() const final {
    static const std::vector<AttributeDefinition> definitions = {ends_attribute()};
    return definitions;
  }
  void complete_attributes(Request&) const final {}

  Work work(const Request& request) const final {
    const TensorSpec& grid = request.at(grid_name_);
    Work work;
    work.flops = 2.0 * (grid.rank() - 1) * static_cast<double>(grid.elements());
    add_each_operand(request, work);
    return work;
  }

  void validate(const Request& request) const final {
    const TensorSpec& grid = request.at(grid_name_);
    require_extents(request, theta_name_, request.at(theta_name_), extents_of_theta(request),
                    "a matrix for each image");
    for (size_t i = 1; i + 1 < grid.extents.size(); ++i) {
      if (grid.extents[i] <= most_elements_of_grid_axis) continue;
      refuse(request, fmt::format("{} has extents {}", grid_name_, extents_words(grid)),
             fmt::format("give at most {} along each axis", most_elements_of_grid_axis));
    }
  }

 protected:
  std::string words(const Request& request) const {
    return fmt::format("affine grid {}{}{}", extents_words(request.at(grid_name_)),
                       request.word("ends") == "edges" ? "" : ", " + request.word("ends"),
                       operand_words(request, grid_name_));
  }

  // Refuses a grid that no request has.
  Ints extents_of_theta(const Request& request) const {
    const TensorSpec& grid = request.at(grid_name_);
    const int axes = grid.rank() - 2;
    if ((axes != 2 && axes != 3) || grid.extents.back() != axes) {
      refuse(request, fmt::format("{} has extents {}", grid_name_, extents_words(grid)), "it is N,P,Q,2 or N,Z,P,Q,3");
    }
    return {grid.extents[0], axes, axes + 1};
  }

 private:
  const std::string grid_name_, theta_name_;
};

class AffineGridOperation final : public AffineGridOperations {
 public:
  AffineGridOperation() : AffineGridOperations("grid", "theta") {}
  std::string_view name() const override { return "affine_grid"; }
  std::string_view summary() const override { return "positions of an affine map, for grid_sample"; }
  std::string short_form(const Request& request) const override { return words(request); }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        matrices("theta", Role::input, "", "a matrix for each image: rows for w, h, and in 3-D d"),
        grid_operand("grid", Role::output, "", coordinates_words)};
    return definitions;
  }
  std::optional<TensorSpec> implied_operand(const Request&, std::string_view) const override { return std::nullopt; }
};

class AffineGridBackwardOperation final : public AffineGridOperations {
 public:
  AffineGridBackwardOperation() : AffineGridOperations("dgrid", "dtheta") {}
  std::string_view name() const override { return "affine_grid_backward"; }
  std::string_view summary() const override { return "the gradient of affine_grid by the matrices"; }
  std::string short_form(const Request& request) const override { return "gradient of " + words(request); }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        grid_operand("dgrid", Role::input, "", "the gradient of grid"),
        matrices("dtheta", Role::output, "dtype of dgrid, dense", "")};
    return definitions;
  }
  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* const dgrid = request.find("dgrid");
    if (operand != "dtheta" || dgrid == nullptr) return std::nullopt;
    return TensorSpec::packed(dgrid->dtype, extents_of_theta(request), dimension_letters(3));
  }
};

}  // namespace

const Operation& affine_grid_operation() {
  static const AffineGridOperation definition;
  return definition;
}
const Operation& affine_grid_backward_operation() {
  static const AffineGridBackwardOperation definition;
  return definition;
}

AffineGrid AffineGrid::of(const Request& request) {
  return {request.at("theta"), request.at("grid"), ends_of(request), request.blend, request.dynamic_batch};
}

Request AffineGrid::request() const {
  Request request;
  request.operation = "affine_grid";
  request.operands = {{"theta", theta}, {"grid", grid}};
  request.attributes = {{"ends", std::string(to_string(ends))}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

AffineGridBackward AffineGridBackward::of(const Request& request) {
  return {request.at("dgrid"), request.at("dtheta"), ends_of(request), request.blend, request.dynamic_batch};
}

Request AffineGridBackward::request() const {
  Request request;
  request.operation = "affine_grid_backward";
  request.operands = {{"dgrid", dgrid}};
  if (!dtheta.extents.empty()) request.operands.push_back({"dtheta", dtheta});
  request.attributes = {{"ends", std::string(to_string(ends))}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
