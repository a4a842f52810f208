// An ONNX model of one node as the bytes of its file, for tests that have nothing to write one with.
#pragma once

#include <cstdint>
#include <string>

namespace kiln::testing_support {

/// y = Softmax(x) of f32, x: [n, 4] with n left open.
inline std::string softmax_model() {
  // Protobuf: a field is its number and kind, then a number or the length and bytes of what is in it. All are below
  // 128.
  const auto number = [](int field, int value) {
    return std::string{static_cast<char>(field << 3), static_cast<char>(value)};
  };
  const auto bytes = [](int field, const std::string& value) {
    return std::string{static_cast<char>((field << 3) | 2), static_cast<char>(value.size())} + value;
  };
  const std::string shape = bytes(1, bytes(2, "n")) + bytes(1, number(1, 4));
  const std::string type = bytes(2, bytes(1, number(1, 1) + bytes(2, shape)));  // 1: float
  const std::string node = bytes(1, "x") + bytes(2, "y") + bytes(3, "only") + bytes(4, "Softmax");
  const std::string graph =
      bytes(1, node) + bytes(2, "small") + bytes(11, bytes(1, "x") + type) + bytes(12, bytes(1, "y") + type);
  return number(1, 8) + bytes(7, graph) + bytes(8, number(2, 13));  // IR 8, opset 13
}

}  // namespace kiln::testing_support
