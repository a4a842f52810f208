#include "judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "kiln/base/parallel.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tolerance.h"

namespace kiln::checking {
namespace {

// Distance between neighbouring stored numbers around `value`, at least that of the smallest normal ones.
double storage_step(DType dtype, double value) {
  if (!is_floating(dtype)) return 1;
  const DTypeTraits& row = traits(dtype);
  const int exponent = value == 0 ? row.least_exponent : std::max(std::ilogb(value), row.least_exponent);
  return std::ldexp(1.0, exponent - row.digits + 1);
}

// Keeps the element that comes closest to its bound, or exceeds it most.
void note_error(Finding& finding, double error, double bound) {
  const bool first = finding.checked == 0;
  ++finding.checked;
  // error / bound, compared without dividing by a bound of zero.
  if (first || error * finding.bound > finding.max_error * bound || (finding.bound == 0 && error > finding.max_error)) {
    finding.max_error = error;
    finding.bound = bound;
  }
}

// Adds what was found among later elements.
void add(const Finding& later, Finding& all) {
  const int64_t checked = all.checked + later.checked;
  if (later.checked > 0) note_error(all, later.max_error, later.bound);
  all.checked = checked;
  if (all.wrong.empty()) all.wrong = later.wrong;
}

bool same_class(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return true;
}

std::string where(std::span<const int64_t> coordinate) {
  return fmt::format("({})", fmt::join(coordinate, ","));
}

size_t logical_index(const TensorSpec& spec, std::span<const int64_t> coordinate) {
  int64_t index = 0;
  for (size_t d = 0; d < coordinate.size(); ++d) index = index * spec.extents[d] + coordinate[d];
  return static_cast<size_t>(index);
}

// Widens the range of right values where the element may be `slack` further off.
void widen(reference::Expected& expected, float slack) {
  expected.transcendental += static_cast<double>(slack) / 0x1p-24;
  expected.unspecified = expected.unspecified || std::isinf(slack);
}

// The first n of dimension 0 of `spec`.
TensorSpec part(TensorSpec spec, int64_t n) {
  if (spec.rank() > 0) spec.extents[0] = n;
  return spec;
}

}  // namespace

std::string text_of_errors(double max_error, double bound) {
  const auto text = [](double value, int digits) { return fmt::format("{:.{}g}", value, digits); };
  int digits = 3;
  while (digits < std::numeric_limits<double>::max_digits10 && max_error != bound &&
         text(max_error, digits) == text(bound, digits)) {
    ++digits;
  }
  return fmt::format("largest error {} of {} allowed", text(max_error, digits), text(bound, digits));
}

Judge::Judge(const Request& request, const std::string& output, const reference::Bindings& bindings, bool full,
             int64_t samples, uint64_t seed, std::vector<float> slack)
    : request_(request), name_(output), output_(request.at(output)), slack_(std::move(slack)) {
  const reference::Oracle oracle(request_, bindings, output);
  if (full) {
    const std::vector<reference::Expected> all = oracle.all();
    points_.reserve(all.size());
    reference::for_each_coordinate(output_, [&](std::span<const int64_t> coordinate) {
      points_.push_back({{coordinate.begin(), coordinate.end()}, all[points_.size()]});
    });
  } else {
    std::vector<reference::Coordinate> sampled = reference::sample_coordinates(output_, samples, seed);
    const std::vector<reference::Expected> expected = oracle.at_each(sampled);
    for (size_t i = 0; i < sampled.size(); ++i) points_.push_back({std::move(sampled[i]), expected[i]});
  }
  for (Point& point : points_) {
    if (!point.expected.unspecified && std::isfinite(point.expected.value)) {
      arithmetic_error_ = std::max(arithmetic_error_, reference::arithmetic_error(request_, point.expected));
    }
    if (!slack_.empty()) widen(point.expected, slack_[logical_index(output_, point.coordinate)]);
  }
}

bool Judge::is_allowed(std::span<const int64_t> coordinate, double got) const {
  const auto values = allowed_.find(logical_index(output_, coordinate));
  return values != allowed_.end() &&
         std::find(values->second.begin(), values->second.end(), got) != values->second.end();
}

void Judge::look_at(const Point& point, std::span<const std::byte> output, Finding& finding) const {
  const double got = reference::read(output_, output, point.coordinate);
  if (is_allowed(point.coordinate, got)) {
    ++finding.checked;
    return;
  }
  const bool right = reference::is_right(request_, point.expected, got);
  const double bound = reference::bound(request_, point.expected);
  if (!right && finding.wrong.empty()) {
    finding.wrong = fmt::format("{} is wrong at {}: got {}, the reference has {} +- {:.3g}", name_,
                                where(point.coordinate), got, point.expected.value, bound);
  }
  if (std::isfinite(got) && std::isfinite(bound) && std::isfinite(point.expected.value)) {
    note_error(finding, std::abs(got - point.expected.value), bound);
  } else {
    ++finding.checked;
  }
}

Finding Judge::with_reference(std::span<const std::byte> output, int64_t n) const {
  Finding finding;
  for (const Point& point : points_) {
    if (point.coordinate[0] < n) look_at(point, output, finding);
  }
  return finding;
}

Finding Judge::with_trusted(std::span<const std::byte> output, std::span<const std::byte> trusted, int64_t n) const {
  // Layers of networks have up to some 10^9 elements: on all of the machine's threads, then joined in order.
  std::map<size_t, Finding> parts;
  std::mutex mutex;
  const TensorSpec compared = part(output_, n);
  for_each_part(static_cast<size_t>(compared.elements()), 4096, [&](size_t begin, size_t end) {
    Finding finding = with_trusted(output, trusted, compared, begin, end);
    const std::scoped_lock lock(mutex);
    parts.emplace(begin, std::move(finding));
  });
  Finding all;
  for (const auto& [begin, finding] : parts) add(finding, all);
  return all;
}

Finding Judge::with_trusted(std::span<const std::byte> output, std::span<const std::byte> trusted,
                            const TensorSpec& compared, size_t begin, size_t end) const {
  Finding finding;
  size_t at = begin;
  const auto look = [&](std::span<const int64_t> coordinate) {
    const double slack = slack_.empty() ? 0 : slack_[at++];
    const double got = reference::read(output_, output, coordinate);
    const double want = is_allowed(coordinate, got) ? got : reference::read(output_, trusted, coordinate);
    // Each of the two is off by the arithmetic and by rounding to storage. The sampled elements have the arithmetic
    // error of all but a few, which twice as much covers. Exact arithmetic leaves no room at all.
    const double apart = 4 * arithmetic_error_ + slack;
    const double room = apart == 0 ? 0 : apart + storage_step(output_.dtype, std::max(std::abs(got), std::abs(want)));
    const double error = same_class(got, want) && std::isfinite(got) ? std::abs(got - want) : 0;
    if ((!same_class(got, want) || error > room) && !std::isinf(slack) && finding.wrong.empty()) {
      finding.wrong = fmt::format("{} is wrong at {}: got {}, the trusted variant has {} +- {:.3g}", name_,
                                  where(coordinate), got, want, room);
    }
    note_error(finding, error, room);
  };
  reference::for_each_coordinate(compared, static_cast<int64_t>(begin), static_cast<int64_t>(end), look);
  return finding;
}

std::vector<float> Judge::margins() const {
  std::vector<float> margins(static_cast<size_t>(output_.elements()), static_cast<float>(4 * arithmetic_error_));
  if (points_.size() != margins.size()) return margins;  // sampled: as in with_trusted()
  for (size_t i = 0; i < margins.size(); ++i) {
    const reference::Expected& expected = points_[i].expected;
    // NaN may stand beside an infinity: sums of the finite terms may overflow to the other one.
    const bool maybe_nan =
        std::isinf(expected.value) && reference::is_right(request_, expected, std::numeric_limits<double>::quiet_NaN());
    if (expected.unspecified || expected.any_not_finite || maybe_nan)
      margins[i] = std::numeric_limits<float>::infinity();
    else if (std::isfinite(expected.value))
      margins[i] = static_cast<float>(2 * reference::arithmetic_error(request_, expected));
    else
      margins[i] = 0;
  }
  return margins;
}

std::optional<size_t> first_difference(std::span<const std::byte> a, std::span<const std::byte> b) {
  constexpr size_t least = 1 << 16;
  const size_t bytes = std::min(a.size(), b.size());
  std::optional<size_t> first;
  std::mutex mutex;
  for_each_part(bytes, least, [&](size_t begin, size_t end) {
    if (std::memcmp(a.data() + begin, b.data() + begin, end - begin) == 0) return;
    while (a[begin] == b[begin]) ++begin;
    const std::scoped_lock lock(mutex);
    first = std::min(first.value_or(begin), begin);
  });
  return first;
}

std::optional<std::string> stray_write(const TensorSpec& spec, int64_t n, std::span<const std::byte> before,
                                       std::span<const std::byte> after) {
  const TensorSpec written = part(spec, n);
  const size_t bytes = static_cast<size_t>(reference::byte_span(spec));
  const size_t element = static_cast<size_t>(size_of(spec.dtype));
  std::vector<std::byte> restored;
  std::span<const std::byte> rest = after;
  size_t from = 0;
  if (written.elements() * static_cast<int64_t>(element) == reference::byte_span(written)) {
    from = static_cast<size_t>(reference::byte_span(written));  // no gaps: only what lies behind
  } else {
    restored.assign(after.begin(), after.end());
    reference::for_each_at_once(written, [&](size_t, std::span<const int64_t> coordinate) {
      const size_t at = static_cast<size_t>(reference::offset_of(spec, coordinate)) * element;
      std::memcpy(restored.data() + at, before.data() + at, element);
    });
    rest = restored;
  }
  const std::optional<size_t> stray =
      first_difference(rest.subspan(from, bytes - from), before.subspan(from, bytes - from));
  if (!stray) return std::nullopt;
  return fmt::format("element offset {}", (from + *stray) / element);
}

}  // namespace kiln::checking
