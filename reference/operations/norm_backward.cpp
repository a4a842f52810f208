// Reference of norm_backward: the sums of a row, then the formula; dw and db by their own sums.
#include <algorithm>
#include <utility>

#include "kiln/generator/operations/norm.h"
#include "operations/activation.h"
#include "operations/norm.h"
#include "operations/rows.h"

namespace kiln::reference {
namespace {

// Value that an element counts with, and its error besides the roundings of sums.
struct Counted {
  double value = 0, error = 0;
  bool open = false;  // anything is right
};

// Sums over a row for g = dy w, or dy, and for g xhat: the terms, their magnitudes, and their errors.
struct GradientRow {
  double g = 0, g_xhat = 0, size = 0, size_xhat = 0, error = 0, error_xhat = 0;
  bool weighted = true;  // w is finite throughout
  bool open = false;
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
    if (backward_.activation != ActivationMode::identity) {
      numbers_ = {scalar("slope"), scalar("offset"), scalar("low"), scalar("high")};
    }
    if (backward_.b) b_.emplace(*backward_.b, tensor("b"));
    if (backward_.residual) residual_.emplace(tensor("residual"));
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
      const auto [g, error, open] = g_at(at);
      const double xhat = xhat_at(at);
      row.open = row.open || open;
      row.error += error;
      row.error_xhat += error == 0 ? 0 : error * std::fabs(xhat);
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
    if (output_name() == "dresidual") {
      const Counted passed = passed_at(at);
      return approximately(passed.value, passed.open ? std::nan("") : passed.error);
    }
    if (row.open) return approximately(0, std::nan(""));
    if (output_name() == "db") return sum_of(row.g, count * unit * row.size + row.error, row.size);
    if (output_name() == "dw") {
      return sum_of(row.g_xhat, (count + 4) * unit * row.size_xhat + row.error_xhat, row.size_xhat);
    }
    if (!row.weighted) return approximately(0, std::nan(""));  // kernels may multiply by w before or after they add
    const auto [g, own_error, open] = g_at(at);
    const double xhat = xhat_at(at), inverse = inverse_[at];
    const double centre = backward_.mode == NormMode::rms ? 0 : row.g / count;
    const double along = xhat * (row.g_xhat / count);
    const bool centred = backward_.mode == NormMode::standard;
    const double sizes = centred ? row.size / count : 0;
    const double by_counted = own_error + (centred ? row.error / count : 0) +
                              (row.error_xhat == 0 ? 0 : std::fabs(xhat) * row.error_xhat / count);
    const double roundings =
        5 * std::fabs(g) + (count + 6) * sizes + (count + 10) * std::fabs(xhat) * row.size_xhat / count;
    const double error = std::fabs(inverse) * (unit * roundings + by_counted);
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

  // Value of dy behind relu or the activation.
  Counted passed_at(std::span<const int64_t> at) const {
    if (!numbers_) return {.value = !y_ || (*y_)[at] > 0 ? dy_[at] : 0};
    const Normalised z = normalised(x_[at], mean_ ? (*mean_)[at] : 0, inverse_[at], w_ ? (*w_)[at] : 1,
                                    b_ ? (*b_)[at] : 0, residual_ ? (*residual_)[at] : 0);
    if (z.open) return {.open = true};
    const Approximated derivative = activation_derivative_near(backward_.activation, z.value, z.error, *numbers_);
    const Approximated result = activation_gradient(backward_.activation, derivative, dy_[at]);
    return {.value = result.value, .error = (1 + 0x1p-10) * unit * result.error, .open = result.open};
  }
  Counted g_at(std::span<const int64_t> at) const {
    Counted g = passed_at(at);
    if (!w_ || of_parameter_) return g;
    g.value *= (*w_)[at];
    g.error *= std::fabs((*w_)[at]);
    return g;
  }
  double xhat_at(std::span<const int64_t> at) const { return (x_[at] - (mean_ ? (*mean_)[at] : 0)) * inverse_[at]; }

  NormBackward backward_;
  bool of_parameter_;
  Tensor dy_, x_;
  Repeating inverse_;
  std::optional<Repeating> w_, b_, mean_;
  std::optional<Tensor> y_, residual_;
  std::optional<ActivationScalars> numbers_;  // of the activation, if there is one
};

}  // namespace

Reference norm_backward_reference() {
  return {make_evaluator<NormBackwardEvaluator>, slack::of_norm_backward};
}

}  // namespace kiln::reference
