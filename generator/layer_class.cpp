#include "kiln/generator/layer_class.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace kiln {
namespace {

// The text up to `separator` or the end, which it takes off `rest`.
std::string_view take_until(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}

// Not the scale of a normalisation, which has the same name.
bool is_filter(std::string_view operation, std::string_view operand) {
  return operation.find("conv_") != std::string_view::npos && (operand == "w" || operand == "dw");
}

bool is_number(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

// Adds a word of a line: an operand `x=f16:1x64x28x28:nhwc@4`, or another, which is part of the class as it is.
void add_word(std::string_view operation, std::string_view word, LayerClass& layer) {
  std::string_view rest = word;
  const std::string_view name = take_until(rest, '=');
  const size_t begin = rest.find(':');
  if (begin == std::string_view::npos || is_filter(operation, name)) {
    layer.text += word;
    return;
  }
  const std::string_view dtype = take_until(rest, ':');
  std::string_view extents = take_until(rest, ':');
  layer.text.append(name).append("=").append(dtype).append(":");
  while (!extents.empty()) {
    const std::string_view extent = take_until(extents, 'x');
    int64_t value = 0;
    if (is_number(extent, value)) {
      layer.sizes.push_back(value);
      layer.text += '?';
    } else {
      layer.text += extent;
    }
    if (!extents.empty()) layer.text += 'x';
  }
  // Strides follow the extents, so they say nothing of a class.
  const std::string_view layout = rest.substr(0, rest.find('@'));
  const bool has_strides = layout.find_first_of("0123456789") != std::string_view::npos;
  layer.text.append(":").append(has_strides ? "strided" : layout).append(rest.substr(layout.size()));
}

}  // namespace

LayerClass layer_class_of(std::string_view key) {
  LayerClass layer;
  layer.text.reserve(key.size());
  const std::string_view operation = key.substr(0, key.find(' '));
  while (!key.empty()) {
    add_word(operation, take_until(key, ' '), layer);
    if (!key.empty()) layer.text += ' ';
  }
  return layer;
}

double distance_between(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  double sum = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const auto log = [](int64_t extent) { return std::log2(static_cast<double>(std::max<int64_t>(extent, 1))); };
    sum += std::abs(log(a[i]) - log(b[i]));
  }
  return sum;
}

}  // namespace kiln
