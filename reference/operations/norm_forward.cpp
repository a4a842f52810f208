// References of norm_forward, norm_affine and norm_inference: mean and variance in two passes, then the formula.
#include <algorithm>
#include <utility>

#include "kiln/generator/operations/norm.h"
#include "operations/norm.h"
#include "operations/rows.h"

namespace kiln::reference {
namespace {

constexpr double root_error = 4 * unit;  // relative, of rsqrtf
constexpr double underflow = 0x1p-148;   // of a difference and a product

struct NormRow {
  double mean = 0, inverse = 0;  // and 1 / sqrt(variance + epsilon)
  double unbiased = 0;           // the variance over one less than the elements
  double mean_error = 0, inverse_error = 0, unbiased_error = 0;
};

class NormEvaluator final : public RowEvaluator<NormRow> {
 public:
  NormEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : RowEvaluator(std::move(call), bindings, output, "axes"),
        given_(request().operation == "norm_inference"),
        rms_(!given_ && request().word("mode") == "rms"),
        x_(tensor("x")),
        w_(repeating("w")),
        b_(repeating("b")),
        running_mean_(repeating("running_mean")),
        running_variance_(repeating("running_variance")) {}

 protected:
  NormRow row_at(std::span<const int64_t> coordinate) const override {
    return given_ ? given_row(coordinate) : row_of_elements(coordinate);
  }

  Expected element(const NormRow& row, std::span<const int64_t> coordinate) const override {
    if (output_name() == "mean") return approximately(row.mean, row.mean_error);
    if (output_name() == "inv_deviation") return approximately(row.inverse, row.inverse_error);
    if (output_name() == "running_mean") return running((*running_mean_)[coordinate], row.mean, row.mean_error);
    if (output_name() == "running_variance") {
      return running((*running_variance_)[coordinate], row.unbiased, row.unbiased_error);
    }
    const double w = w_ ? (*w_)[coordinate] : 1, b = b_ ? (*b_)[coordinate] : 0;
    if (output_name() == "scale") return scale(row, w);
    if (output_name() == "shift") return shift(row, w, b);
    const double x = x_[coordinate];
    const double distance = x - row.mean;
    const double scaled = w * (distance * row.inverse);
    const double largest = std::max({std::fabs(distance), std::fabs(distance * row.inverse), std::fabs(scaled)});
    if (std::isfinite(largest) && largest > float_max) return approximately(scaled + b, std::nan(""));
    const double error = std::fabs(w) * (std::fabs(row.inverse) * row.mean_error +
                                         (std::fabs(distance) + row.mean_error) * row.inverse_error) +
                         4 * unit * std::fabs(scaled) + unit * std::fabs(scaled + b) + underflow * (1 + std::fabs(w));
    // An infinite factor of a distance that rounding may have moved from or to 0: NaN and others are right.
    const bool may_be_zero = row.mean_error != 0 && !(std::fabs(distance) > row.mean_error);
    const bool is_open = may_be_zero && (std::isinf(w) || std::isinf(row.inverse));
    return std::isnan(scaled + b) && !is_open ? nan() : approximately(scaled + b, error);
  }

 private:
  // NaN comes of NaN, or of infinities: no error makes it anything else.
  static Expected nan() { return approximately(std::nan(""), 0); }

  std::optional<Repeating> repeating(const std::string& name) const {
    const TensorSpec* spec = request().find(name);
    if (spec == nullptr) return std::nullopt;
    return Repeating(*spec, tensor(name));
  }

  // Error of w / deviation.
  static double scale_error(const NormRow& row, double w) {
    const double value = w * row.inverse;
    if (std::isinf(value)) return std::isnan(row.inverse_error) ? row.inverse_error : 0;
    if (std::fabs(value) > float_max) return std::nan("");
    return std::fabs(w) * row.inverse_error + unit * std::fabs(value) + underflow;
  }

  static Expected scale(const NormRow& row, double w) {
    const double value = w * row.inverse;
    return std::isnan(value) ? nan() : approximately(value, scale_error(row, w));
  }

  static Expected shift(const NormRow& row, double w, double b) {
    const double factor = w * row.inverse, factor_error = scale_error(row, w), product = row.mean * factor;
    const double value = b - product;
    double error = std::fabs(row.mean) * factor_error + (std::fabs(factor) + factor_error) * row.mean_error +
                   unit * (std::fabs(product) + std::fabs(value)) + underflow;
    if (std::isfinite(product) && std::fabs(product) > float_max) error = std::nan("");
    if (std::isinf(factor)) {  // of a mean that rounding may have moved from or to 0: NaN and others are right
      const bool may_be_zero = row.mean_error != 0 && !(std::fabs(row.mean) > row.mean_error);
      error = may_be_zero ? std::nan("") : factor_error;
    }
    const bool is_open = std::isinf(factor) && std::isnan(error);
    return std::isnan(value) && !is_open ? nan() : approximately(value, error);
  }

  NormRow given_row(std::span<const int64_t> coordinate) const {
    NormRow row{.mean = (*running_mean_)[coordinate]};
    set_inverse(row, (*running_variance_)[coordinate], 0);
    return row;
  }

  // docs/numerics.md derives the errors.
  NormRow row_of_elements(std::span<const int64_t> coordinate) const {
    const auto count = static_cast<double>(row_length());
    double sum = 0, squares = 0, largest = 0;
    bool finite = true;
    for_each_of_row(coordinate, [&](const Coordinate& at) {
      sum += x_[at];
      largest = std::max(largest, std::fabs(x_[at]));
      finite = finite && std::isfinite(x_[at]);
    });
    if (!finite) return {std::nan(""), std::nan(""), std::nan(""), 0, 0, 0};
    NormRow row;
    row.mean = rms_ || count == 0 ? 0 : sum / count;
    for_each_of_row(coordinate, [&](const Coordinate& at) { squares += (x_[at] - row.mean) * (x_[at] - row.mean); });
    const double roundings = count + 8;
    const double variance = squares / std::max(count, 1.0);
    row.mean_error = rms_ ? 0 : roundings * unit * largest + 0x1p-149;
    row.unbiased = squares / std::max(count - 1, 1.0);
    double error = roundings * unit * variance + 2 * row.mean_error * std::sqrt(variance) +
                   row.mean_error * row.mean_error + 0x1p-126;
    if (4 * count * largest * largest > float_max) error = std::nan("");  // sums may overflow: anything is right
    row.unbiased_error = error * std::max(count, 1.0) / std::max(count - 1, 1.0) + 4 * unit * row.unbiased;
    if (std::isnan(error)) row.mean_error = error;
    set_inverse(row, variance, error);
    return row;
  }

  void set_inverse(NormRow& row, double variance, double error) const {
    const double under_root = variance + scalar("epsilon");
    row.inverse = 1 / std::sqrt(under_root);
    error += unit * under_root;
    // The largest change that the error makes, where it is not small beside the root's argument.
    const double least = under_root - error;
    const double by_error = least > 0 ? 1 / std::sqrt(least) - row.inverse : std::nan("");
    row.inverse_error = by_error + root_error * row.inverse;
    if (std::isnan(row.inverse)) row.inverse_error = 0;
    if (std::isinf(row.inverse)) row.inverse_error = std::nan("");
  }

  Expected running(double before, double now, double error) const {
    const double momentum = scalar("momentum");
    const double kept = (1 - momentum) * before, added = momentum * now;
    if (std::isnan(kept + added)) return nan();
    return approximately(kept + added, momentum * error + 3 * unit * (std::fabs(kept) + std::fabs(added)));
  }

  bool given_, rms_;
  Tensor x_;
  std::optional<Repeating> w_, b_, running_mean_, running_variance_;
};

}  // namespace

Reference norm_forward_reference() {
  return {make_evaluator<NormEvaluator>, slack::of_norm_forward};
}

Reference norm_affine_reference() {
  return {make_evaluator<NormEvaluator>, slack::of_norm_affine};
}

Reference norm_inference_reference() {
  return {.evaluator = make_evaluator<NormEvaluator>, .call = slack::of_norm_inference};
}

}  // namespace kiln::reference
