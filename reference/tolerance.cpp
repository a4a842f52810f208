#include "kiln/reference/tolerance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "evaluator.h"
#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/convert.h"
#include "kiln/reference/tensor_memory.h"

namespace kiln::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Error of each product, from rounding its factors: with tf32 ten stored bits, perhaps truncated, so 2^-10 for each of
/// two factors, and their product.
double factor_error(const Request& request) {
  return request.arithmetic.tf32 ? 0x1p-9 + 0x1p-20 : 0;
}

/// Digits that both sums and factors keep.
int exact_digits(const Request& request) {
  return request.arithmetic.tf32 ? 11 : std::numeric_limits<float>::digits;
}

/// Whether finite terms may make infinities of both signs, and these a NaN, which storing does not saturate.
bool may_be_nan(const Request& request, const Expected& expected) {
  return is_floating(expected.storage) && std::isfinite(expected.value) &&
         std::isinf(arithmetic_error(request, expected));
}

Mismatch mismatch(const Request& request, std::span<const int64_t> coordinate, const Expected& expected, double got) {
  return {.output = {},
          .checked = 0,
          .wrong = 1,
          .coordinate = Coordinate(coordinate.begin(), coordinate.end()),
          .expected = expected,
          .got = got,
          .bound = bound(request, expected)};
}

/// Judges outputs one after the other and keeps the first wrong one.
class Judge {
 public:
  Judge(const Request& request, std::string name, const TensorSpec& spec, std::span<const std::byte> output)
      : request_(request), name_(std::move(name)), spec_(spec), output_(output) {
    if (static_cast<int64_t>(output.size()) < byte_span(spec)) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{} of {} has {} bytes, but {} are given to compare", name_,
                                                           request.key(), byte_span(spec), output.size()));
    }
  }

  void judge(std::span<const int64_t> coordinate, const Expected& expected) {
    ++checked_;
    const double got = read(spec_, output_, coordinate);
    if (is_right(request_, expected, got)) {
      return;
    }
    if (!first_) {
      first_ = mismatch(request_, coordinate, expected, got);
    } else {
      ++first_->wrong;
    }
  }

  std::optional<Mismatch> verdict() {
    if (first_) {
      first_->checked = checked_;
      first_->output = name_;
    }
    return first_;
  }

 private:
  const Request& request_;
  std::string name_;
  const TensorSpec& spec_;
  std::span<const std::byte> output_;
  int64_t checked_ = 0;
  std::optional<Mismatch> first_;
};

}  // namespace

double arithmetic_error(const Request& request, const Expected& expected) {
  if (expected.magnitude > largest_sum) {
    return infinity;
  }
  constexpr double transcendental_unit = 0x1p-24;
  double error = expected.transcendental * transcendental_unit;
  if (!sums_are_exact(expected, exact_digits(request))) {
    const auto roundings = static_cast<double>(expected.roundings);
    error += (roundings * 0x1p-24 + factor_error(request)) * expected.magnitude +
             roundings * std::numeric_limits<float>::denorm_min();
  }
  return error;
}

Accepted accepted(const Request& request, const Expected& expected) {
  if (expected.unspecified) {
    return {-infinity, infinity};
  }
  const DType storage = expected.storage;
  if (!std::isfinite(expected.value)) {
    // Integers have neither NaN nor infinities; a store in 8 bits makes no infinity, but a copy keeps it.
    const double stored = expected.copied ? expected.value : round_to(storage, expected.value);
    return {stored, stored};
  }
  const double error = arithmetic_error(request, expected);
  return {round_to(storage, expected.value - error), round_to(storage, expected.value + error)};
}

bool is_right(const Request& request, const Expected& expected, double got) {
  if (expected.unspecified) {
    return true;
  }
  if (expected.any_not_finite) {
    return !std::isfinite(got) || std::fabs(got) == std::fabs(round_to(expected.storage, infinity));
  }
  if (std::isnan(expected.value) && is_floating(expected.storage)) {
    return std::isnan(got);
  }
  // Where sums of finite terms may overflow, infinities of both signs may meet and give NaN.
  if (std::isnan(got) && std::isinf(expected.value)) {
    return expected.finite_magnitude > largest_sum;
  }
  const Accepted range = accepted(request, expected);
  const bool anything = (range.low == -infinity && range.high == infinity) || may_be_nan(request, expected);
  return anything || (got >= range.low && got <= range.high);
}

double bound(const Request& request, const Expected& expected) {
  if (std::isnan(expected.value)) {
    return 0;
  }
  const Accepted range = accepted(request, expected);
  if (std::isinf(expected.value)) {
    return expected.unspecified ? infinity : 0;
  }
  return std::max(range.high - expected.value, expected.value - range.low);
}

std::string Mismatch::text() const {
  return fmt::format("{} of {} elements of {} are wrong, first at ({}): got {:.9g}, expected {:.9g} +- {:.2g}", wrong,
                     checked, output, fmt::join(coordinate, ","), got, expected.value, bound);
}

std::optional<Mismatch> compare(const Request& request, const Bindings& bindings, std::span<const std::byte> output,
                                std::string_view name) {
  const Oracle oracle(request, bindings, name);
  Judge judge(request, name.empty() ? result_of(request).name : std::string(name), oracle.output(), output);
  const std::vector<Expected> expected = oracle.all();
  size_t index = 0;
  for_each_coordinate(oracle.output(),
                      [&](std::span<const int64_t> coordinate) { judge.judge(coordinate, expected[index++]); });
  return judge.verdict();
}

std::optional<Mismatch> compare_at(const Request& request, const Bindings& bindings, std::span<const std::byte> output,
                                   std::span<const Coordinate> coordinates, std::string_view name) {
  const Oracle oracle(request, bindings, name);
  Judge judge(request, name.empty() ? result_of(request).name : std::string(name), oracle.output(), output);
  const std::vector<Expected> expected = oracle.at_each(coordinates);
  for (size_t i = 0; i < coordinates.size(); ++i) judge.judge(coordinates[i], expected[i]);
  return judge.verdict();
}

}  // namespace kiln::reference
