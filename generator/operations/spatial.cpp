#include "operations/spatial.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "kiln/base/error.h"
#include "text_parsing.h"

namespace kiln {
namespace {

// Keeps every sum and product of window arithmetic far inside 64 bits.
constexpr int64_t max_window_value = std::numeric_limits<int32_t>::max();

}  // namespace

void refuse(const Request& request, std::string_view what, std::string_view hint) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", request.operation, what), std::string(hint));
}

std::vector<int64_t> given_ints(const Request& request, std::string_view name) {
  for (const Attribute& attribute : request.attributes) {
    if (attribute.name != name) continue;
    if (const auto* values = std::get_if<std::vector<int64_t>>(&attribute.value)) return *values;
    refuse(request, fmt::format("{}={} is not a list of integers", name, std::get<std::string>(attribute.value)), "");
  }
  return {};
}

void set_ints(Request& request, std::string_view attribute, std::vector<int64_t> values) {
  for (Attribute& candidate : request.attributes) {
    if (candidate.name != attribute) continue;
    candidate.value = std::move(values);
    return;
  }
}

void expand(Request& request, std::string_view attribute, size_t axes, size_t sides) {
  const std::vector<int64_t> given = given_ints(request, attribute);
  std::vector<int64_t> values;
  if (given.size() == 1) {
    values.assign(axes * sides, given.front());
  } else if (given.size() == axes) {
    for (size_t side = 0; side < sides; ++side) values.insert(values.end(), given.begin(), given.end());
  } else if (given.size() == axes * sides) {
    values = given;
  } else {
    refuse(request, fmt::format("{}={} has {} values", attribute, text::join(given, ","), given.size()),
           sides == 2 ? fmt::format("give {} (both sides) or {} (begins, then ends)", axes, axes * sides)
                      : fmt::format("give {}", axes));
  }
  set_ints(request, attribute, std::move(values));
}

int spatial_axes(const Request& request, std::string_view operand) {
  const TensorSpec* spec = request.find(operand);
  if (spec == nullptr) return 2;
  if (spec->rank() < 3 || spec->rank() > 5) {
    refuse(request, fmt::format("{} has {} dimensions", operand, spec->rank()),
           "it takes N,C,W or N,C,H,W or N,C,D,H,W: 1-D, 2-D or 3-D");
  }
  return spec->rank() - 2;
}

std::vector<int64_t> pad_side(const Request& request, bool end) {
  const std::vector<int64_t>& pads = request.ints("pad");
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(pads.size() / 2);
  return end ? std::vector<int64_t>(middle, pads.end()) : std::vector<int64_t>(pads.begin(), middle);
}

WindowSteps steps_of(const Request& request) {
  return {.pad_begin = pad_side(request, false),
          .pad_end = pad_side(request, true),
          .stride = request.ints("stride"),
          .dilation = request.ints("dilation")};
}

std::vector<int64_t> given_or(const std::vector<int64_t>& values, int64_t fallback) {
  return values.empty() ? std::vector<int64_t>{fallback} : values;
}

std::vector<int64_t> pads_of(const std::vector<int64_t>& begin, const std::vector<int64_t>& end) {
  if (begin.empty() && end.empty()) return {0};
  std::vector<int64_t> pads = begin;
  pads.resize(std::max(begin.size(), end.size()), 0);
  pads.insert(pads.end(), end.begin(), end.end());
  pads.resize(2 * std::max(begin.size(), end.size()), 0);
  return pads;
}

void check_axis(const Request& request, const WindowAxis& axis, std::string_view name) {
  const auto in_range = [&](int64_t value, int64_t least, std::string_view what) {
    if (value >= least && value <= max_window_value) return;
    refuse(request, fmt::format("{} {} is {}", what, name, value),
           value < least ? fmt::format("it must be {} or more", least)
                         : fmt::format("it must lie between {} and {}", least, max_window_value));
  };
  in_range(axis.window, 1, "the window of");
  in_range(axis.stride, 1, "the stride of");
  in_range(axis.dilation, 1, "the dilation of");
  in_range(axis.pad_begin, 0, "the padding in front of");
  in_range(axis.pad_end, 0, "the padding behind");
  in_range(axis.extent, 1, "the extent of");
}

void refuse_large_window(const Request& request, std::string_view what, const WindowAxis& axis, std::string_view name,
                         std::string_view input) {
  refuse(request,
         fmt::format("the {} does not fit into the padded input: along {} it spans {} elements, and {} has {} with its "
                     "padding",
                     what, name, axis.reach(), input, axis.padded()),
         fmt::format("pad more or use a smaller {}", what));
}

TensorSpec laid_out_like(const TensorSpec& like, std::vector<int64_t> extents) {
  const std::string logical(dimension_letters(like.rank()));
  return TensorSpec::packed(like.dtype, std::move(extents), like.order().value_or(logical), like.alignment);
}

void require_extents(const Request& request, std::string_view operand, const TensorSpec& spec,
                     const std::vector<int64_t>& expected, std::string_view reason) {
  if (spec.extents == expected) return;
  refuse(
      request,
      fmt::format("{} has extents {}, expected {}", operand, text::join(spec.extents, "x"), text::join(expected, "x")),
      reason);
}

double bytes_of(const TensorSpec& spec) {
  return static_cast<double>(spec.elements()) * size_of(spec.dtype);
}

void add_each_operand(const Request& request, Work& work) {
  for (const Operand& operand : request.operands) {
    (is_written(request, operand.name) ? work.write_bytes : work.read_bytes) += bytes_of(operand.spec);
  }
  if (request.blend.beta != Scale::zero) work.read_bytes += bytes_of(result_of(request).spec);
}

}  // namespace kiln
