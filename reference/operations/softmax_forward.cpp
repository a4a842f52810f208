// Reference of softmax_forward: maximum, sum of exponentials, quotient or logarithm; row by row.
#include "kiln/generator/operations/softmax_forward.h"

#include "operations/rows.h"
#include "operations/softmax_row.h"

namespace kiln::reference {
namespace {

class SoftmaxForwardEvaluator final : public RowEvaluator<SoftmaxRow> {
 public:
  SoftmaxForwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : RowEvaluator(std::move(call), bindings, output, "axis"),
        mode_(SoftmaxForward::of(request()).mode),
        x_(tensor("x")) {}

 protected:
  SoftmaxRow row_at(std::span<const int64_t> coordinate) const override {
    return SoftmaxRow::of(
        [&](const auto& visit) { for_each_of_row(coordinate, [&](const Coordinate& at) { visit(x_[at]); }); });
  }

  Expected element(const SoftmaxRow& row, std::span<const int64_t> coordinate) const override {
    const double x = x_[coordinate];
    return mode_ == SoftmaxMode::log ? row.log_probability(x) : row.probability(x);
  }

 private:
  SoftmaxMode mode_;
  Tensor x_;
};

}  // namespace

Reference softmax_forward_reference() {
  return {make_evaluator<SoftmaxForwardEvaluator>, slack::of_softmax};
}

}  // namespace kiln::reference
