#include "onnx/window.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "kiln/generator/window_axis.h"
#include "onnx/attributes.h"
#include "onnx/load.h"

namespace kiln::onnx_frontend {
namespace {

constexpr int64_t largest = std::numeric_limits<int32_t>::max();  // keeps sums and products inside 64 bits

void check_range(const onnx::NodeProto& node, std::string_view attribute, const PerAxis& values, int64_t least) {
  for (const int64_t value : values) {
    if (value < least || value > largest) {
      throw Error(ErrorCode::parse_error,
                  fmt::format("{}: {} holds {}, expected {} to {}", describe(node), attribute, value, least, largest));
    }
  }
}

/// The spatial extents of an input.
void check_spatial(const onnx::NodeProto& node, const std::vector<int64_t>& extents) {
  check_range(node, "its input", PerAxis(extents.begin() + 2, extents.end()), 0);
}

PerAxis kernel_of(const onnx::NodeProto& node, const Attributes& attributes, size_t axes,
                  const std::optional<PerAxis>& filter) {
  if (!attributes.has("kernel_shape")) {
    if (!filter) {
      throw Error(ErrorCode::parse_error, fmt::format("{}: attribute kernel_shape is missing", describe(node)));
    }
    return *filter;
  }
  PerAxis kernel = attributes.integers("kernel_shape", axes, 1);
  if (filter && kernel != *filter) {
    throw Error(ErrorCode::parse_error, fmt::format("{}: kernel_shape is {}, but the filter is {}", describe(node),
                                                    fmt::join(kernel, "x"), fmt::join(*filter, "x")));
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

bool keeps_same_size(const onnx::NodeProto& node, const std::string& mode) {
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") return true;
  if (mode == "NOTSET" || mode.empty() || mode == "VALID") return false;
  throw Error(ErrorCode::parse_error,
              fmt::format("{}: auto_pad is '{}', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID", describe(node),
                          printable_name(mode)));
}

void read_pads(const onnx::NodeProto& node, const Attributes& attributes, Window& window) {
  const size_t axes = window.kernel.size();
  const PerAxis pads = attributes.integers("pads", 2 * axes, 0);
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(axes);
  window.pad_begin.assign(pads.begin(), middle);
  window.pad_end.assign(middle, pads.end());
  check_range(node, "pads", window.pad_begin, 0);
  check_range(node, "pads", window.pad_end, 0);
}

/// Kernel, strides and dilations; no pads yet.
Window unpadded_window_of(const onnx::NodeProto& node, const Attributes& attributes, size_t axes,
                          const std::optional<PerAxis>& kernel) {
  Window window;
  window.kernel = kernel_of(node, attributes, axes, kernel);
  window.stride = attributes.integers("strides", axes, 1);
  window.dilation = attributes.integers("dilations", axes, 1);
  window.pad_begin = window.pad_end = PerAxis(axes, 0);
  check_range(node, "kernel_shape", window.kernel, 1);
  check_range(node, "strides", window.stride, 1);
  check_range(node, "dilations", window.dilation, 1);
  return window;
}

void read_padding(const onnx::NodeProto& node, const Attributes& attributes, const std::vector<int64_t>& extents,
                  Window& window) {
  const size_t axes = extents.size() - 2;
  const std::string mode = attributes.word("auto_pad", "NOTSET");
  if (keeps_same_size(node, mode)) {
    for (size_t d = 0; d < axes; ++d) {
      pad_same(window, d, extents[2 + d], mode == "SAME_UPPER");
    }
  } else if (mode != "VALID") {
    read_pads(node, attributes, window);
  }
}

int64_t count_outputs(const onnx::NodeProto& node, const Window& window, size_t d, int64_t extent, bool ceil) {
  const int64_t reach = window.dilation[d] * (window.kernel[d] - 1) + 1;
  const int64_t room = extent + window.pad_begin[d] + window.pad_end[d] - reach;
  if (room < 0) {
    throw Error(
        ErrorCode::parse_error,
        fmt::format("{}: the window spans {} elements along {}, but the padded input has {}", describe(node), reach,
                    axis_name(static_cast<int>(d), static_cast<int>(window.kernel.size())), room + reach));
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
                 const std::optional<PerAxis>& kernel) {
  check_spatial(node, extents);
  const Attributes attributes(node);
  const size_t axes = extents.size() - 2;
  Window window = unpadded_window_of(node, attributes, axes, kernel);
  read_padding(node, attributes, extents, window);
  const bool ceil = node.op_type() != "Conv" && attributes.integer("ceil_mode", 0) != 0;
  for (size_t d = 0; d < axes; ++d) {
    window.outputs.push_back(count_outputs(node, window, d, extents[2 + d], ceil));
  }
  return window;
}

PerAxis unpooled_outputs(const onnx::NodeProto& node, const std::vector<int64_t>& extents) {
  check_spatial(node, extents);
  const Attributes attributes(node);
  Window window = unpadded_window_of(node, attributes, extents.size() - 2, std::nullopt);
  read_pads(node, attributes, window);
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const int64_t reach = (extents[2 + d] - 1) * window.stride[d] + window.kernel[d];
    window.outputs.push_back(reach - window.pad_begin[d] - window.pad_end[d]);
  }
  return window.outputs;
}

Window transposed_window_of(const onnx::NodeProto& node, const std::vector<int64_t>& extents, const PerAxis& kernel) {
  check_spatial(node, extents);
  const Attributes attributes(node);
  const size_t axes = extents.size() - 2;
  Window window = unpadded_window_of(node, attributes, axes, kernel);
  const PerAxis output_padding = attributes.integers("output_padding", axes, 0);
  check_range(node, "output_padding", output_padding, 0);
  const std::string mode = attributes.word("auto_pad", "NOTSET");
  const bool same = keeps_same_size(node, mode), shaped = attributes.has("output_shape");
  const PerAxis shape = attributes.integers("output_shape", axes, 0);
  check_range(node, "output_shape", shape, 0);
  if (!same && !shaped && mode != "VALID") read_pads(node, attributes, window);
  for (size_t d = 0; d < axes; ++d) {
    const int64_t reach = window.dilation[d] * (window.kernel[d] - 1) + 1;
    const int64_t unpadded = window.stride[d] * (extents[2 + d] - 1) + output_padding[d] + reach;
    if (same || shaped) {
      // The odd element of the padding goes to the start, but for SAME_UPPER.
      const int64_t padding = unpadded - (shaped ? shape[d] : extents[2 + d] * window.stride[d]);
      window.pad_begin[d] = mode == "SAME_UPPER" ? padding / 2 : padding - padding / 2;
      window.pad_end[d] = padding - window.pad_begin[d];
    }
    window.outputs.push_back(unpadded - window.pad_begin[d] - window.pad_end[d]);
  }
  return window;
}

}  // namespace kiln::onnx_frontend
