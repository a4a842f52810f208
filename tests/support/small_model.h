// An ONNX model of a few nodes as the bytes of its file, for tests that have nothing to write one with.
#pragma once

#include <cstdint>
#include <string>

namespace kiln::testing_support {

/// y = Softmax(x) of f32, or so many of them behind one another (up to 8); x: [n, 4] with n left open.
inline std::string softmax_model(int nodes = 1) {
  // Protobuf: a field is its number and kind, then a number below 128, or the length and bytes of what is in it. A
  // length of 128 and more has a second byte.
  const auto number = [](int field, int value) {
    return std::string{static_cast<char>(field << 3), static_cast<char>(value)};
  };
  const auto bytes = [](int field, const std::string& value) {
    std::string length(1, static_cast<char>(value.size()));
    if (value.size() > 127) length = {static_cast<char>(value.size() | 128), static_cast<char>(value.size() >> 7)};
    return std::string{static_cast<char>((field << 3) | 2)} + length + value;
  };
  const std::string shape = bytes(1, bytes(2, "n")) + bytes(1, number(1, 4));
  const std::string type = bytes(2, bytes(1, number(1, 1) + bytes(2, shape)));  // 1: float
  std::string graph;
  for (int i = 1; i <= nodes; ++i) {
    const std::string x = i == 1 ? "x" : std::to_string(i - 1), y = i == nodes ? "y" : std::to_string(i);
    graph += bytes(1, bytes(1, x) + bytes(2, y) + bytes(3, nodes == 1 ? "only" : "to " + y) + bytes(4, "Softmax"));
  }
  graph += bytes(2, "small") + bytes(11, bytes(1, "x") + type) + bytes(12, bytes(1, "y") + type);
  return number(1, 8) + bytes(7, graph) + bytes(8, number(2, 13));  // IR 8, opset 13
}

}  // namespace kiln::testing_support
