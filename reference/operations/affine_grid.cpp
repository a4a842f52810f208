// References of affine_grid and its gradient.
#include "kiln/generator/operations/affine_grid.h"

#include <utility>

#include "evaluator.h"
#include "operations/bounded.h"

namespace kiln::reference {
namespace {

/// The factor of column `column` of a matrix at a coordinate of the grid: exact in f32.
double factor_of(std::span<const int64_t> at, const TensorSpec& grid, GridEnds ends, int64_t column) {
  const int64_t axes = grid.rank() - 2;
  if (column == axes) return 1;
  const auto axis = static_cast<size_t>(axes - column);  // columns are along w first
  const int64_t size = grid.extents[axis], steps = ends == GridEnds::edges ? size : size - 1;
  if (steps == 0) return 0;
  return static_cast<float>(static_cast<double>(2 * at[axis] + 1 - size) / static_cast<double>(steps));
}

class AffineGridEvaluator final : public Oracle::Evaluator {
 public:
  AffineGridEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output), view_(AffineGrid::of(request())), theta_(tensor("theta")) {}

 protected:
  Expected operation_at(std::span<const int64_t> at) const override {
    BoundedSum sum;
    for (int64_t column = 0; column < view_.grid.rank() - 1; ++column) {
      sum.add(factor_of(at, view_.grid, view_.ends, column), {theta_[Coordinate{at[0], at.back(), column}], 0});
    }
    return sum.result().expected();
  }

 private:
  AffineGrid view_;
  Tensor theta_;
};

class AffineGridBackwardEvaluator final : public Oracle::Evaluator {
 public:
  AffineGridBackwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        view_(AffineGridBackward::of(request())),
        dgrid_(tensor("dgrid")) {}

 protected:
  Expected operation_at(std::span<const int64_t> element) const override {
    TensorSpec image = view_.dgrid;
    image.extents.front() = image.extents.back() = 1;
    BoundedSum sum;
    for_each_coordinate(image, [&](std::span<const int64_t> place) {
      Coordinate at(place.begin(), place.end());
      at.front() = element[0];
      at.back() = element[1];
      sum.add(factor_of(at, view_.dgrid, view_.ends, element[2]), {dgrid_[at], 0});
    });
    return sum.result().expected();
  }

 private:
  AffineGridBackward view_;
  Tensor dgrid_;
};

}  // namespace

Reference affine_grid_reference() {
  return {make_evaluator<AffineGridEvaluator>};
}
Reference affine_grid_backward_reference() {
  return {make_evaluator<AffineGridBackwardEvaluator>};
}

}  // namespace kiln::reference
