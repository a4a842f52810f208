#include "product_sum.h"

#include <algorithm>
#include <cmath>

#include "kiln/generator/operation.h"

namespace kiln::reference {
namespace {

/// Digits of the significand of f16 and tf32, the widest factors of tensor cores.
constexpr int most_digits = 11;

/// Whether a tensor core's factor holds all numbers of the type, or as much of them as the request demands.
bool is_factor(const Arithmetic& arithmetic, DType dtype) {
  const bool integer = dtype == DType::i8 || dtype == DType::u8;
  return integer || (is_floating(dtype) && traits(dtype).digits <= most_digits) ||
         (dtype == DType::f32 && arithmetic.tf32);
}

/// Part of a sum: `products` of its terms, none of which is larger than `largest`.
Expected part_of(const Expected& sum, int64_t products, double largest) {
  Expected part = sum;
  part.magnitude = std::min(sum.magnitude, static_cast<double>(products) * largest);
  return part;
}

/// Adds the error of products and sums of some of them that are rounded to a type, or leaves the sum open where these
/// may overflow.
void permit_sums_in(DType dtype, int64_t products, double largest, Expected& sum) {
  const DTypeTraits& sums = traits(dtype);
  const int64_t together = std::min(products, TensorCores::narrow_products);
  const Expected part = part_of(sum, together, largest);
  sum.unspecified = sum.unspecified || part.magnitude > sums.largest;
  if (sum.unspecified || sums_are_exact(part, sums.digits)) return;
  const double least = std::ldexp(1.0, sums.least_exponent - sums.digits + 1);
  const double error =
      std::ldexp(static_cast<double>(together) * sum.magnitude, -sums.digits) + static_cast<double>(products) * least;
  sum.transcendental += std::ldexp(2 * error, 24);
}

/// The least normal number, which a denormal one is aligned like; integers are far above it.
double least_normal(DType dtype) {
  return is_floating(dtype) ? std::ldexp(1.0, traits(dtype).least_exponent) : 0;
}

/// The least denormal number that a factor may be cut to; 0 for types that are not cut.
double least_cut(DType dtype) {
  return dtype == DType::f32 ? std::ldexp(1.0, traits(dtype).least_exponent - (most_digits - 1)) : 0;
}

}  // namespace

TensorCores TensorCores::of(const Arithmetic& arithmetic, DType a, DType b) {
  // Products of integers alone are exact, and so are their sums.
  const bool permitted = is_factor(arithmetic, a) && is_factor(arithmetic, b) && (is_floating(a) || is_floating(b));
  if (!permitted) return {};
  const auto is_byte = [](DType dtype) { return is_floating(dtype) && size_of(dtype) == 1; };
  return {.permitted = true,
          .bytes = is_byte(a) && is_byte(b),
          .promotes = !arithmetic.fast,
          .least_a = least_normal(a),
          .least_b = least_normal(b),
          .cut_a = least_cut(a),
          .cut_b = least_cut(b)};
}

TensorCores TensorCores::of(const Request& request, const Bindings& bindings, std::string_view a, std::string_view b) {
  const auto type_of = [&](std::string_view name) {
    const bool widened = bindings.input_type && name == operation(request.operation).prologue_operand();
    return widened ? *bindings.input_type : request.at(name).dtype;
  };
  TensorCores cores = of(request.arithmetic, type_of(a), type_of(b));
  if (!request.arithmetic.fast) return cores;
  const DType storage = request.operands.front().spec.dtype;
  const DType type = traits(storage).may_hold_sums ? storage : bindings.input_type.value_or(storage);
  if (traits(type).may_hold_sums) cores.narrow_sums = type;
  return cores;
}

void ProductSum::add(double a, double b) {
  const double term = a * b;
  add_term(sum_, term);
  if (std::isfinite(term)) {
    largest_ = std::max(largest_, std::fabs(term));
    // A prologue's results may be infinite in the type that they are rounded to.
    const bool may_overflow =
        cores_.narrow_sums && std::max(std::fabs(a), std::fabs(b)) > traits(*cores_.narrow_sums).largest;
    if (may_overflow) leave_open();
  }
  if (!cores_.permitted || term == 0 || std::isnan(term)) return;
  if (std::isinf(term)) {
    const bool may_be_nan =
        (std::isinf(a) && std::fabs(b) < cores_.cut_b) || (std::isinf(b) && std::fabs(a) < cores_.cut_a);
    if (may_be_nan) sum_.any_not_finite = true;
    return;
  }
  const double aligned = std::max(std::fabs(a), cores_.least_a) * std::max(std::fabs(b), cores_.least_b);
  sum_.magnitude += aligned - std::fabs(term);
  largest_ = std::max(largest_, aligned);
}

Expected ProductSum::finished() const {
  Expected sum = sum_;
  const int64_t products = sum.roundings;
  if (cores_.narrow_sums) permit_sums_in(*cores_.narrow_sums, products, largest_, sum);
  if (!cores_.permitted) return sum;
  sum.roundings = 2 * products;
  if (!cores_.bytes || !std::isfinite(sum.magnitude)) return sum;
  constexpr int digits = 13;
  const int64_t together = cores_.promotes ? std::min(products, TensorCores::promoted_products) : products;
  if (!sums_are_exact(part_of(sum, together, largest_), digits)) {
    sum.transcendental += static_cast<double>(together) * std::ldexp(sum.magnitude, 24 - digits);
  }
  return sum;
}

}  // namespace kiln::reference
