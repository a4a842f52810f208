// Reference of norm_backward: the sums of a row, then the formula; dw and db by their own sums.
#include <algorithm>
#include <utility>

#include "kiln/generator/operations/norm.h"
#include "operations/norm.h"
#include "operations/rows.h"

namespace kiln::reference {
namespace {

// Of g = dy w, or dy, and of g xhat: their sums, and those of the terms' magnitudes.
struct GradientRow {
  double g = 0, g_xhat = 0, size = 0, size_xhat = 0;
  bool weighted = true;  // w is finite throughout
};

class NormBackwardEvaluator final : public RowEvaluator<GradientRow> {
 public:
  NormBackwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : RowEvaluator(std::move(call), bindings, output, "axes"),
        backward_(NormBackward::of(request())),
        of_parameter_(is_parameter(output)),
        dy_(tensor("dy")),
        x_(tensor("x")),
        inverse_(backward_.inv_deviation, tensor("inv_deviation")) {
    if (backward_.w) w_.emplace(*backward_.w, tensor("w"));
    if (backward_.mean) mean_.emplace(*backward_.mean, tensor("mean"));
    if (backward_.y) y_.emplace(tensor("y"));
    if (of_parameter_) go_along(repeated(this->output().extents));
  }

 protected:
  GradientRow row_at(std::span<const int64_t> coordinate) const override {
    GradientRow row;
    if (output_name() == "dresidual") return row;
    for_each_of_row(coordinate, [&](const Coordinate& at) {
      const double g = g_at(at), xhat = xhat_at(at);
      row.g += g;
      row.g_xhat += g * xhat;
      row.size += std::fabs(g);
      row.size_xhat += std::fabs(g * xhat);
      row.weighted = row.weighted && (!w_ || std::isfinite((*w_)[at]));
    });
    return row;
  }

  Expected element(const GradientRow& row, std::span<const int64_t> at) const override {
    const auto count = static_cast<double>(row_length());
    if (output_name() == "dresidual") return approximately(dy_at(at), 0);
    if (output_name() == "db") return sum_of(row.g, count * unit * row.size, row.size);
    if (output_name() == "dw") return sum_of(row.g_xhat, (count + 4) * unit * row.size_xhat, row.size_xhat);
    if (!row.weighted) return approximately(0, std::nan(""));  // kernels may multiply by w before or after they add
    const double g = g_at(at), xhat = xhat_at(at), inverse = inverse_[at];
    const double centre = backward_.mode == NormMode::rms ? 0 : row.g / count;
    const double along = xhat * (row.g_xhat / count);
    const double sizes = backward_.mode == NormMode::rms ? 0 : row.size / count;
    const double error =
        unit * std::fabs(inverse) *
        (5 * std::fabs(g) + (count + 6) * sizes + (count + 10) * std::fabs(xhat) * row.size_xhat / count);
    const double largest = std::max({row.size, row.size_xhat, std::fabs(g), std::fabs(xhat), std::fabs(along)});
    return sum_of(inverse * (g - centre - along), error, largest);
  }

 private:
  static bool is_parameter(std::string_view output) { return output == "dw" || output == "db"; }

  // Along which dw and db are sums.
  static std::vector<int64_t> repeated(const std::vector<int64_t>& extents) {
    std::vector<int64_t> axes;
    for (size_t d = 0; d < extents.size(); ++d) {
      if (extents[d] == 1) axes.push_back(static_cast<int64_t>(d));
    }
    return axes;
  }

  // NaN where the definition has it; anything where sums may overflow, or infinities make what they will.
  static Expected sum_of(double value, double error, double largest) {
    const bool open = !std::isnan(value) && !(largest <= float_max);
    return approximately(value, open ? std::nan("") : std::isnan(value) ? 0 : error + 0x1p-126);
  }

  double dy_at(std::span<const int64_t> at) const { return !y_ || (*y_)[at] > 0 ? dy_[at] : 0; }
  double g_at(std::span<const int64_t> at) const { return w_ && !of_parameter_ ? dy_at(at) * (*w_)[at] : dy_at(at); }
  double xhat_at(std::span<const int64_t> at) const { return (x_[at] - (mean_ ? (*mean_)[at] : 0)) * inverse_[at]; }

  NormBackward backward_;
  bool of_parameter_;
  Tensor dy_, x_;
  Repeating inverse_;
  std::optional<Repeating> w_, mean_;
  std::optional<Tensor> y_;
};

}  // namespace

std::unique_ptr<const Oracle::Evaluator> norm_backward_evaluator(Request request, const Bindings& bindings,
                                                                 std::string_view output) {
  return std::make_unique<NormBackwardEvaluator>(std::move(request), bindings, output);
}

}  // namespace kiln::reference
