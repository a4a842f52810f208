// A node in the course of being read, and what readers of all nodes need: how its values are stored.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/frontends/onnx.h"
#include "onnx/graph.h"

namespace kiln::onnx_frontend {

using Extents = std::vector<int64_t>;

/// What a node asks for: requests, or a reason why there are none, or neither: it costs nothing.
struct Layer {
  std::vector<Request> requests;
  std::string refusal;
};

Layer asked(Request request);
Layer refused(std::string reason);

struct Source {
  const Graph& graph;
  const onnx::NodeProto& node;
  const OnnxOptions& options;

  bool has_input(int input) const { return node.input_size() > input && !node.input(input).empty(); }
  /// Whether anything uses the output.
  bool gives(int output) const { return node.output_size() > output && graph.is_used(node.output(output)); }
  Extents extents(int input) const { return graph.shape(node, node.input(input)); }
  /// How a tensor without gaps is stored; one without dimensions has one element.
  TensorSpec spec(Extents extents, DType dtype) const;
  TensorSpec spec(Extents extents) const { return spec(std::move(extents), options.dtype); }
  /// How an input is stored. Its elements must have a storage type.
  TensorSpec operand(int input) const;
  /// A list of integers, an attribute before opset `since` and an input from then on: `fallback` if it is left out,
  /// nothing if it does not stand in the file.
  std::optional<Extents> list(std::string_view name, int input, int64_t since, const Extents& fallback) const;
};

/// Which elements a reader takes.
enum class Elements {
  floating,
  exact,    ///< And those of 8 bits, booleans among them: all of them are numbers of f32.
  movable,  ///< And those of 32 bits and FLOAT8E4M3FN and FLOAT8E5M2, which may be copied.
};

/// How elements of an ONNX type are stored: floating-point numbers as the options say, booleans as u8. Nothing for
/// types that Kiln does not have.
std::optional<DType> storage_of(int32_t element_type, const OnnxOptions& options);
/// Why elements of that type are not taken; empty if they are.
std::string refusal_of_elements(int32_t element_type, Elements elements);

/// Throws Error(parse_error) unless the node has `least` to `most` inputs, the first `least` of them given, and an
/// output.
void require_inputs(const Source& source, int least, int most);
[[noreturn]] void fail(const Source& source, const std::string& what);

/// `axis` from 0; throws Error(parse_error) unless it is -rank to rank - 1.
int64_t axis_from_start(const Source& source, int64_t axis, size_t rank);
/// As axis_from_start() for each; throws if one stands twice.
Extents axes_from_start(const Source& source, Extents axes, size_t rank);

/// The same elements with dimensions of extent 1 in front, `rank` in all.
TensorSpec with_rank(TensorSpec spec, size_t rank);
/// The same elements with a dimension of extent 1 more at each of `axes`, which ascend and count in the result.
TensorSpec with_ones(TensorSpec spec, std::span<const int64_t> axes);
/// An input of a dynamic batch that has one element for all of it: repeated, as extents have to be equal there.
TensorSpec with_batch(const Source& source, TensorSpec spec, int64_t batch);

/// Whether a result of `rank` dimensions has others before the batch, which is dynamic and dimension 0 of this input.
bool precedes_batch(const Source& source, int input, size_t rank);

/// Copies x to y of equal extents; costs nothing where both are the same memory.
Layer copied(const Source& source, const TensorSpec& x, const TensorSpec& y);

}  // namespace kiln::onnx_frontend
