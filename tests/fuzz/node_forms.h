// Nodes that ONNX allows, in the shortest words: what hostile models are changed from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kiln::fuzz {

/// An input of a node.
struct Operand {
  enum class Kind {
    absent,    ///< The empty name.
    reals,     ///< Floating-point numbers of one type: an input of the model, a constant, another node's.
    flags,     ///< Booleans.
    bytes,     ///< uint8.
    integers,  ///< int64.
  };
  Kind kind = Kind::absent;
  std::vector<int64_t> extents{};
  /// Elements of a list that has to be known while the model is read; as many as the extents say, or none.
  std::vector<double> elements{};
  bool is_list = false;
};

struct AttributeForm {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>> value;
};

struct NodeForm {
  std::vector<Operand> operands;
  std::vector<AttributeForm> attributes;
};

/// The forms of an operation; one of `inputs` operands of 2x3 if there are none of its own.
std::vector<NodeForm> forms_of(std::string_view operation, int inputs);

}  // namespace kiln::fuzz
