#include "onnx/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kiln/base/error.h"
#include "onnx/attributes.h"
#include "onnx/load.h"

namespace kiln::onnx_frontend {
namespace {

constexpr int64_t largest = std::numeric_limits<int32_t>::max();  // keeps sums and products inside 64 bits

std::array<int64_t, 2> pair(const std::vector<int64_t>& values, size_t first = 0) {
  return {values[first], values[first + 1]};
}

void check_range(const onnx::NodeProto& node, std::string_view attribute, const std::array<int64_t, 2>& values,
                 int64_t least) {
  for (const int64_t value : values) {
    if (value < least || value > largest) {
      throw Error(ErrorCode::parse_error,
                  fmt::format("{}: {} holds {}, expected {} to {}", describe(node), attribute, value, least, largest));
    }
  }
}

std::array<int64_t, 2> kernel_of(const onnx::NodeProto& node, const Attributes& attributes,
                                 const std::optional<std::array<int64_t, 2>>& filter) {
  if (!attributes.has("kernel_shape")) {
    if (!filter) {
      throw Error(ErrorCode::parse_error, fmt::format("{}: attribute kernel_shape is missing", describe(node)));
    }
    return *filter;
  }
  const auto kernel = pair(attributes.integers("kernel_shape", 2, 1));
  if (filter && kernel != *filter) {
    throw Error(ErrorCode::parse_error, fmt::format("{}: kernel_shape is {}x{}, but the filter is {}x{}",
                                                    describe(node), kernel[0], kernel[1], (*filter)[0], (*filter)[1]));
  }
  return kernel;
}

/// Pads so that the output has ceil(extent / stride) elements; an odd one goes to the end, or to the start.
void pad_same(Window& window, size_t d, int64_t extent, bool odd_at_end) {
  const int64_t outputs = (extent + window.stride[d] - 1) / window.stride[d];
  const int64_t reach = (outputs - 1) * window.stride[d] + window.dilation[d] * (window.kernel[d] - 1) + 1;
  const int64_t padding = std::max<int64_t>(reach - extent, 0);
  const int64_t smaller = padding / 2, larger = padding - smaller;
  window.pad_begin[d] = odd_at_end ? smaller : larger;
  window.pad_end[d] = odd_at_end ? larger : smaller;
}

void read_padding(const onnx::NodeProto& node, const Attributes& attributes, const std::vector<int64_t>& extents,
                  Window& window) {
  const std::string mode = attributes.word("auto_pad", "NOTSET");
  if (mode == "NOTSET" || mode.empty()) {
    const std::vector<int64_t> pads = attributes.integers("pads", 4, 0);
    window.pad_begin = pair(pads, 0);
    window.pad_end = pair(pads, 2);
    check_range(node, "pads", window.pad_begin, 0);
    check_range(node, "pads", window.pad_end, 0);
  } else if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    for (size_t d = 0; d < 2; ++d) {
      pad_same(window, d, extents[2 + d], mode == "SAME_UPPER");
    }
  } else if (mode != "VALID") {
    throw Error(
        ErrorCode::parse_error,
        fmt::format("{}: auto_pad is '{}', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID", describe(node), mode));
  }
}

int64_t count_outputs(const onnx::NodeProto& node, const Window& window, size_t d, int64_t extent, bool ceil) {
  const int64_t reach = window.dilation[d] * (window.kernel[d] - 1) + 1;
  const int64_t room = extent + window.pad_begin[d] + window.pad_end[d] - reach;
  if (room < 0) {
    throw Error(ErrorCode::parse_error,
                fmt::format("{}: the window spans {} elements along {}, but the padded input has {}", describe(node),
                            reach, d == 0 ? "h" : "w", room + reach));
  }
  if (!ceil) {
    return room / window.stride[d] + 1;
  }
  const int64_t outputs = (room + window.stride[d] - 1) / window.stride[d] + 1;
  const bool last_starts_in_padding = (outputs - 1) * window.stride[d] >= extent + window.pad_begin[d];
  return last_starts_in_padding ? outputs - 1 : outputs;
}

}  // namespace

Window window_of(const onnx::NodeProto& node, const std::vector<int64_t>& extents,
                 std::optional<std::array<int64_t, 2>> kernel) {
  const Attributes attributes(node);
  Window window;
  window.kernel = kernel_of(node, attributes, kernel);
  window.stride = pair(attributes.integers("strides", 2, 1));
  window.dilation = pair(attributes.integers("dilations", 2, 1));
  check_range(node, "kernel_shape", window.kernel, 1);
  check_range(node, "strides", window.stride, 1);
  check_range(node, "dilations", window.dilation, 1);
  read_padding(node, attributes, extents, window);
  const bool ceil = node.op_type() != "Conv" && attributes.integer("ceil_mode", 0) != 0;
  for (size_t d = 0; d < 2; ++d) {
    window.outputs[d] = count_outputs(node, window, d, extents[2 + d], ceil);
  }
  return window;
}

}  // namespace kiln::onnx_frontend
