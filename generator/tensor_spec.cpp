#include "kiln/generator/tensor_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "kiln/base/checked.h"
#include "kiln/base/error.h"
#include "kiln/base/nearest.h"
#include "text_parsing.h"

namespace kiln {
namespace {

// Far beyond any real tensor, and small enough that products of a size and an element's bytes cannot overflow.
constexpr int64_t max_elements = int64_t{1} << 58;

int64_t checked_product(int64_t a, int64_t b) {
  const std::optional<int64_t> result = checked_multiply(a, b);
  if (!result || *result > max_elements) {
    throw Error(ErrorCode::invalid_argument, "a tensor has more than 2^58 elements", "check its extents and strides");
  }
  return *result;
}

// Strides of a tensor without gaps whose memory order is `order`, outermost first.
std::vector<int64_t> packed_strides(const std::vector<int64_t>& extents, std::string_view order) {
  const std::string_view letters = dimension_letters(static_cast<int>(extents.size()));
  std::vector<int64_t> strides(extents.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t dimension = letters.find(order[i]);
    strides[dimension] = stride;
    stride = checked_product(stride, std::max<int64_t>(extents[dimension], 1));
  }
  return strides;
}

bool is_permutation_of(std::string_view order, std::string_view letters) {
  return order.size() == letters.size() && std::is_permutation(order.begin(), order.end(), letters.begin());
}

void require_strides(const TensorSpec& spec) {
  if (spec.strides.size() == spec.extents.size()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a tensor has {} strides for {} extents", spec.strides.size(), spec.extents.size()),
              "give one stride a dimension, or make it with TensorSpec::packed()");
}

bool same_memory_order(const TensorSpec& spec, const std::vector<int64_t>& strides) {
  for (size_t i = 0; i < strides.size(); ++i) {
    if (spec.extents[i] > 1 && spec.strides[i] != strides[i]) return false;
  }
  return true;
}

[[noreturn]] void malformed(std::string_view text, std::string_view what) {
  throw Error(ErrorCode::parse_error, fmt::format("'{}' is not a tensor: {}", text, what),
              "write dtype:extents:layout, for example f16:32x64x56x56:nhwc");
}

std::vector<int64_t> parse_ints(std::string_view whole, std::string_view part, char separator, std::string_view what) {
  std::vector<int64_t> values;
  for (std::string_view piece : text::split(part, separator)) {
    const std::optional<int64_t> value = text::parse_int(piece);
    if (!value) malformed(whole, fmt::format("'{}' is not {}", piece, what));
    if (*value < 0)
      malformed(whole, fmt::format("'{}' is negative: {} is a number of elements, 0 or more", piece, what));
    values.push_back(*value);
  }
  return values;
}

std::string unknown_dtype(std::string_view name) {
  std::vector<std::string_view> known;
  for (const DType dtype : all_dtypes) known.push_back(to_string(dtype));
  const std::string hint = did_you_mean(name, known, fmt::format("known are {}", fmt::join(known, ", ")));
  return fmt::format("unknown dtype '{}'; {}", name, hint);
}

int parse_alignment(std::string_view whole, std::string_view part) {
  const std::optional<int64_t> value = text::parse_int(part);
  if (!value || *value < 1 || *value > 4096 || (*value & (*value - 1)) != 0) {
    malformed(whole, fmt::format("alignment '{}' is not a power of two up to 4096", part));
  }
  return static_cast<int>(*value);
}

}  // namespace

std::string_view dimension_letters(int rank) {
  switch (rank) {
    case 1:
      return "n";
    case 2:
      return "nc";
    case 3:
      return "ncw";
    case 4:
      return "nchw";
    case 5:
      return "ncdhw";
    case 6:
      return "ngcdhw";
    default:
      return "";
  }
}

TensorSpec TensorSpec::packed(DType dtype, std::vector<int64_t> extents, std::string_view order, int alignment) {
  TensorSpec spec;
  spec.dtype = dtype;
  spec.extents = std::move(extents);
  spec.alignment = alignment;
  const std::string_view letters = dimension_letters(spec.rank());
  if (letters.empty() || !is_permutation_of(order, letters)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is not a layout of a tensor of {} dimensions", order, spec.rank()),
                letters.empty() ? "give strides instead" : fmt::format("use the letters {} in memory order", letters));
  }
  spec.strides = packed_strides(spec.extents, order);
  spec.canonicalise();
  return spec;
}

TensorSpec TensorSpec::parse(std::string_view whole) {
  std::string_view rest = whole;
  int alignment = default_alignment;
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    alignment = parse_alignment(whole, rest.substr(at + 1));
    rest = rest.substr(0, at);
  }
  const std::vector<std::string_view> parts = text::split(rest, ':');
  if (parts.size() < 2 || parts.size() > 3) malformed(whole, "expected dtype:extents:layout");
  const std::optional<DType> dtype = parse_dtype(parts[0]);
  if (!dtype) malformed(whole, unknown_dtype(parts[0]));
  if (parts[1].find('?') != std::string_view::npos)
    malformed(whole, "extents are numbers here; those of `kiln bundle --open` may be ?, those of `--sweep` ?NAME");
  std::vector<int64_t> extents = parse_ints(whole, parts[1], 'x', "an extent");
  const std::string_view letters = dimension_letters(static_cast<int>(extents.size()));
  if (letters.empty()) malformed(whole, "it has more than 6 dimensions");
  const std::string_view layout = parts.size() == 3 ? parts[2] : letters;
  if (is_permutation_of(layout, letters)) return packed(*dtype, std::move(extents), layout, alignment);
  if (layout.find_first_not_of("-0123456789,") != std::string_view::npos) {
    malformed(whole, fmt::format("layout '{}' is neither an order of {} nor strides", layout, letters));
  }
  TensorSpec spec{*dtype, std::move(extents), parse_ints(whole, layout, ',', "a stride"), alignment};
  if (spec.strides.size() != spec.extents.size()) {
    malformed(whole, fmt::format("{} strides for {} extents", spec.strides.size(), spec.extents.size()));
  }
  spec.canonicalise();
  return spec;
}

std::string TensorSpec::print() const {
  const std::optional<std::string> name = order();
  std::string line =
      fmt::format("{}:{}:{}", to_string(dtype), text::join(extents, "x"), name ? *name : text::join(strides, ","));
  if (alignment != default_alignment) line += fmt::format("@{}", alignment);
  return line;
}

int64_t TensorSpec::elements() const {
  int64_t product = 1;
  for (int64_t extent : extents) product = checked_product(product, extent);
  return product;
}

int64_t TensorSpec::span() const {
  require_strides(*this);
  int64_t last = 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 0) return 0;
    last += checked_product(extents[i] - 1, strides[i]);
    if (last > max_elements) checked_product(last, 2);  // reports
  }
  return last + 1;
}

bool TensorSpec::is_packed(std::string_view order) const {
  require_strides(*this);
  return is_permutation_of(order, dimension_letters(rank())) &&
         same_memory_order(*this, packed_strides(extents, order));
}

// Among the orders that fit, where extents are 1, the usual ones come first: nchw, then nhwc.
std::optional<std::string> TensorSpec::order() const {
  require_strides(*this);
  const std::string letters(dimension_letters(rank()));
  if (letters.empty()) return std::nullopt;
  if (is_packed(letters)) return letters;
  std::string order = letters;
  if (rank() >= 3) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  if (is_packed(order)) return order;
  std::sort(order.begin(), order.end());
  do {
    if (is_packed(order)) return order;
  } while (std::next_permutation(order.begin(), order.end()));
  return std::nullopt;
}

void TensorSpec::canonicalise() {
  if (const std::optional<std::string> name = order()) {
    strides = packed_strides(extents, *name);
    return;
  }
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] <= 1) strides[i] = 1;
  }
}

}  // namespace kiln
