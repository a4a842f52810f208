// Request of an ONNX node, by its attributes and the shapes of its inputs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln_onnxruntime {

/// A tensor of a node: an extent for each dimension.
using Extents = std::vector<int64_t>;

/// The attributes of a convolution, pooling or softmax, as ONNX has them. Empty lists and words: not given.
struct Attributes {
  std::vector<int64_t> kernel_shape, pads, strides, dilations;
  std::string auto_pad;
  std::string activation;  ///< Not ONNX's: what to_kiln.py has fused into a Conv. "Relu" is known.
  int64_t group = 1;
  int64_t ceil_mode = 0;
  int64_t count_include_pad = 0;
  int64_t axis = -1;
};

/// A kind of node of the domain `kiln`.
struct NodeKind {
  const char* name;                 ///< "MaxPool"
  const char* operation;            ///< Kiln's, with the words that the kind implies: "pool_forward mode=max"
  std::vector<const char*> inputs;  ///< By Kiln's names, in ONNX's order; after `required` they are optional.
  size_t required;
  /// The words that attributes and inputs imply, each with a space in front.
  std::string (*words)(const Attributes& attributes, std::span<const Extents> inputs);
};

/// Every one.
std::span<const NodeKind> node_kinds();

/// A node's call for inputs of certain shapes.
struct Layer {
  std::string what;  ///< The text of kiln::call().
  Extents y;         ///< Extents of the output.
};

/// `inputs`: those that the node has, by `kind`'s order; those without dimensions are not given. `dtype`: Kiln's name
/// of what all of them hold. Throws kiln::Error for attributes and shapes that do not fit each other.
Layer layer_of(const NodeKind& kind, const Attributes& attributes, std::span<const Extents> inputs,
               std::string_view dtype);

}  // namespace kiln_onnxruntime
