#include "layers.h"

#include <kiln/base/error.h>
#include <kiln/generator/request.h>

#include <algorithm>

namespace kiln_onnxruntime {
namespace {

std::string joined(std::span<const int64_t> numbers, char separator) {
  std::string text;
  for (const int64_t number : numbers) {
    if (!text.empty()) text += separator;
    text += std::to_string(number);
  }
  return text;
}

// ` stride=2,2`; nothing for a list that is not given, of which Kiln has the same default as ONNX.
std::string word(const char* name, std::span<const int64_t> numbers) {
  return numbers.empty() ? "" : std::string(" ") + name + "=" + joined(numbers, ',');
}

int64_t element(const std::vector<int64_t>& numbers, size_t axis) {
  return axis < numbers.size() ? numbers[axis] : 1;
}

// ONNX's order is Kiln's: what is in front of each axis, then what is behind.
std::vector<int64_t> padding(const Attributes& attributes, const Extents& x, std::span<const int64_t> window) {
  const std::string& rule = attributes.auto_pad;
  if (rule.empty() || rule == "NOTSET") return attributes.pads;
  if (rule == "VALID") return {};
  if (rule != "SAME_UPPER" && rule != "SAME_LOWER") {
    throw kiln::Error(kiln::ErrorCode::invalid_argument, "auto_pad is '" + rule + "'",
                      "ONNX has NOTSET, VALID, SAME_UPPER and SAME_LOWER");
  }
  std::vector<int64_t> pads(2 * window.size());
  for (size_t axis = 0; axis < window.size() && axis + 2 < x.size(); ++axis) {
    const int64_t stride = std::max<int64_t>(element(attributes.strides, axis), 1);
    const int64_t reach = element(attributes.dilations, axis) * (window[axis] - 1) + 1;
    const int64_t outputs = (x[axis + 2] + stride - 1) / stride;
    const int64_t all = std::max<int64_t>((outputs - 1) * stride + reach - x[axis + 2], 0);
    const int64_t less = all / 2;
    pads[axis] = rule == "SAME_UPPER" ? less : all - less;
    pads[axis + window.size()] = all - pads[axis];
  }
  return pads;
}

// ONNX has a number for each axis. Kiln takes a single one for all of them.
void check_count(const char* name, const std::vector<int64_t>& numbers, size_t expected) {
  if (numbers.empty() || numbers.size() == expected) return;
  throw kiln::Error(kiln::ErrorCode::invalid_argument, std::string(name) + " has " + std::to_string(numbers.size()) +
                                                           " numbers, expected " + std::to_string(expected));
}

std::string windows(const Attributes& attributes, const Extents& x, std::span<const int64_t> window) {
  const size_t axes = x.size() - std::min<size_t>(x.size(), 2);
  check_count("kernel_shape", attributes.kernel_shape, axes);
  check_count("strides", attributes.strides, axes);
  check_count("dilations", attributes.dilations, axes);
  check_count("pads", attributes.pads, 2 * axes);
  return word("pad", padding(attributes, x, window)) + word("stride", attributes.strides) +
         word("dilation", attributes.dilations);
}

std::string conv_words(const Attributes& attributes, std::span<const Extents> inputs) {
  const auto window = std::span(inputs[1]).subspan(std::min<size_t>(inputs[1].size(), 2));
  if (!attributes.kernel_shape.empty() && !std::ranges::equal(window, attributes.kernel_shape)) {
    throw kiln::Error(kiln::ErrorCode::invalid_argument, "kernel_shape is " + joined(attributes.kernel_shape, ',') +
                                                             ", and the windows of w are " + joined(window, ','));
  }
  std::string epilogue = inputs.size() > 2 && !inputs[2].empty() ? "bias" : "";
  if (attributes.activation == "Relu") {
    epilogue += epilogue.empty() ? "relu" : "+relu";
  } else if (!attributes.activation.empty()) {
    throw kiln::Error(kiln::ErrorCode::invalid_argument, "activation is '" + attributes.activation + "'",
                      "it may be Relu, or is left out");
  }
  return windows(attributes, inputs[0], window) + " groups=" + std::to_string(attributes.group) +
         (epilogue.empty() ? "" : " epilogue=" + epilogue);
}

std::string pool_words(const Attributes& attributes, std::span<const Extents> inputs) {
  return word("window", attributes.kernel_shape) + windows(attributes, inputs[0], attributes.kernel_shape);
}

std::string average_words(const Attributes& attributes, std::span<const Extents> inputs) {
  return pool_words(attributes, inputs) + (attributes.count_include_pad != 0 ? " mode=avg_padded" : " mode=avg");
}

std::string axis_words(const Attributes& attributes, std::span<const Extents>) {
  return " axis=" + std::to_string(attributes.axis);
}

std::string no_words(const Attributes&, std::span<const Extents>) {
  return "";
}

}  // namespace

std::span<const NodeKind> node_kinds() {
  static const std::vector<NodeKind> kinds = {
      {"Conv", "conv_forward", {"x", "w", "bias"}, 2, conv_words},
      {"MaxPool", "pool_forward mode=max", {"x"}, 1, pool_words},
      {"AveragePool", "pool_forward", {"x"}, 1, average_words},
      {"GlobalMaxPool", "pool_forward mode=max window=global", {"x"}, 1, no_words},
      {"GlobalAveragePool", "pool_forward mode=avg window=global", {"x"}, 1, no_words},
      {"Softmax", "softmax_forward", {"x"}, 1, axis_words},
      {"LogSoftmax", "softmax_forward mode=log", {"x"}, 1, axis_words},
  };
  return kinds;
}

Layer layer_of(const NodeKind& kind, const Attributes& attributes, std::span<const Extents> inputs,
               std::string_view dtype) {
  Layer layer;
  layer.what = kind.operation + kind.words(attributes, inputs);
  std::string line = layer.what;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].empty() && i >= kind.required) continue;
    line += std::string(" ") + kind.inputs[i] + "=" + std::string(dtype) + ":" + joined(inputs[i], 'x');
  }
  if (attributes.ceil_mode != 0) line += " ceil=1";  // which y's extents imply
  layer.y = kiln::Request::parse(line).at("y").extents;
  return layer;
}

}  // namespace kiln_onnxruntime
