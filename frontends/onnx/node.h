// A node in the course of being read: its inputs as far as they are known, and the graph that its results go into.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/graph/graph.h"
#include "onnx/attributes.h"
#include "onnx/host_tensor.h"

namespace kiln::onnx_frontend {

using graph::ValueId;

/// The integers, or numbers, of 8 bits that a value of the model was computed from, as (integers - zero) * scale.
struct Dequantised {
  ValueId integers, scale;
  std::optional<ValueId> zero;  ///< Nothing: it is 0.
  size_t axis = 0;              ///< Dimension along which scale and zero count where they are not of one element.
  bool is_uniform = false;      ///< Whether both are of one element.
};

/// Known facts about a value of the model.
struct Known {
  int32_t type = 0;  ///< As ONNX numbers element types.
  Extents extents;
  std::optional<ValueId> value;               ///< In the graph.
  std::shared_ptr<const HostTensor> host;     ///< Its elements, where they are known and few.
  const onnx::TensorProto* tensor = nullptr;  ///< Its elements in the file.
  std::optional<Dequantised> dequantised = {};
  std::optional<ValueId> as_real = {};      ///< Integers as f32, as they were before they were stored.
  std::optional<ValueId> as_unsigned = {};  ///< Elements of int8 and 128, as u8.
};

/// How elements of an ONNX type are stored, floating-point numbers as `dtype` where it is given. Throws Refusal for
/// those that Kiln does not have.
DType storage_of(int32_t type, std::optional<DType> dtype);

/// The values of a model while it is read, and how they are stored.
struct Values {
  /// `model`: the path of its file.
  explicit Values(const std::string& model) : files(model) {}

  graph::Graph graph;
  Budget budget;
  int64_t stored_bytes = 0;  ///< Bytes of constants whose elements the files hold.
  ExternalData files;
  int64_t opset = 0;
  std::optional<DType> dtype;  ///< Type of all floating-point numbers; nothing: as the model has them.
  std::map<std::string, Known> known;
  std::set<std::string> used;  ///< Names that are inputs of nodes, or outputs of the model.

  /// As kiln::onnx_frontend::storage_of().
  DType storage_of(int32_t type) const { return onnx_frontend::storage_of(type, dtype); }
  /// The value in the graph, which becomes a constant of it where it is not there yet.
  ValueId device(const std::string& name);
  /// Its elements; null where they are computed, or more than a shape's or a parameter's would be.
  const HostTensor* host(const std::string& name);
};

class Node {
 public:
  Node(Values& values, const onnx::NodeProto& proto) : values_(values), proto_(proto), attributes_(proto) {}

  const onnx::NodeProto& proto() const { return proto_; }
  const std::string& type() const { return proto_.op_type(); }
  const Attributes& attributes() const { return attributes_; }
  int64_t opset() const { return values_.opset; }
  graph::Graph& graph() const { return values_.graph; }
  Values& values() const { return values_; }
  Budget& budget() const { return values_.budget; }

  int inputs() const { return proto_.input_size(); }
  int outputs() const { return proto_.output_size(); }
  bool has(int input) const { return inputs() > input && !proto_.input(input).empty(); }
  bool has_output(int output) const { return outputs() > output && !proto_.output(output).empty(); }
  /// Whether anything uses the output.
  bool gives(int output) const { return has_output(output) && values_.used.contains(proto_.output(output)); }

  /// Whether something is known of each input that is given.
  bool knows_inputs() const;
  /// Throws Error(parse_error) unless the node has `least` to `most` inputs, the first `least` of them given, and an
  /// output.
  void require_inputs(int least, int most) const;

  const Extents& extents(int input) const { return known(input).extents; }
  size_t rank(int input = 0) const { return extents(input).size(); }
  /// As ONNX numbers element types.
  int32_t element_type(int input) const { return known(input).type; }
  DType dtype(int input) const { return values_.storage_of(element_type(input)); }
  bool is_integer(int input) const { return is_integer_type(element_type(input)); }
  /// The input in the graph.
  ValueId operand(int input) const { return values_.device(known_name(input)); }
  bool is_constant(int input) const { return graph().is_constant(operand(input)); }
  /// The integers that the input was computed from, if it is the result of a DequantizeLinear.
  const std::optional<Dequantised>& dequantised(int input) const { return known(input).dequantised; }
  /// Integers as f32, if the graph has them so too.
  const std::optional<ValueId>& as_real(int input) const { return known(input).as_real; }
  /// Elements of int8 and 128, as u8, if the graph has them so too.
  const std::optional<ValueId>& as_unsigned(int input) const { return known(input).as_unsigned; }
  /// Its elements, where they are known and few; otherwise null.
  const HostTensor* host(int input) const { return values_.host(known_name(input)); }
  /// The elements of an input of integers, of any rank; throws Refusal where they are computed, Error(parse_error) if
  /// they are no integers; as Budget::take_elements().
  std::vector<int64_t> integers(int input, std::string_view what) const;
  /// As integers(); throws Error(parse_error) if they have two dimensions or more.
  std::vector<int64_t> list(int input, std::string_view what) const;
  /// The one element of an input; throws Refusal where it is computed, Error(parse_error) if there are more.
  double number(int input, std::string_view what) const;
  /// As number(); throws Error(parse_error) unless it is an integer.
  int64_t integer(int input, std::string_view what) const;
  /// A list of integers, an attribute before opset `since` and an input from then on; `fallback` if it is left out.
  std::vector<int64_t> list(std::string_view name, int input, int64_t since, const Extents& fallback) const;

  /// An attribute that says an element type, as ONNX numbers them.
  int32_t type_attribute(std::string_view name, int32_t fallback) const;

  /// The product of extents, strides or counts. Throws Error(parse_error) where it does not fit 64 bits.
  int64_t multiply(int64_t a, int64_t b) const;

  /// `axis` from 0; throws Error(parse_error) unless it is -rank to rank - 1.
  size_t axis(int64_t axis, size_t rank) const;
  /// As axis() for each; throws if one stands twice.
  std::vector<size_t> axes(const std::vector<int64_t>& axes, size_t rank) const;

  /// A result, whose elements have the ONNX type of input 0, or another.
  void give(ValueId value, int output = 0) { give_as(element_type(0), value, output); }
  void give_as(int32_t type, ValueId value, int output = 0);
  /// The first result, which is that of a DequantizeLinear.
  void give_dequantised(int32_t type, ValueId value, const Dequantised& from);
  /// The first result: integers of 32 bits, of which the graph has each exact value in f32 too.
  void give_integers(ValueId stored, ValueId as_real);
  /// The first result: integers of 8 bits, of which the graph has 128 more than each as u8.
  void give_signed(ValueId stored, ValueId as_unsigned);
  void give_host(HostTensor tensor, int output = 0);
  /// Elements that are in the model's file.
  void give_tensor(const onnx::TensorProto& tensor);
  /// The one element of `one`, as often as `extents` say: on the host where so many are few, else as a constant of the
  /// graph, and one that repeats beyond Budget::most_elements.
  void give_repeated(const HostTensor& one, const Extents& extents, int output = 0);

  /// A constant of the graph that the model's file does not hold.
  ValueId constant(std::string name, DType dtype, const HostTensor& elements) const;
  /// As many zeros, to be filled, as Budget::take_elements() permits.
  std::vector<int64_t> table(int64_t count) const;

  /// Throws where the model does not fulfil a demand of the node: Error(parse_error) naming the node.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  const std::string& name(int input) const;
  const Known& known(int input) const;
  const std::string& known_name(int input) const;

  Values& values_;
  const onnx::NodeProto& proto_;
  Attributes attributes_;
};

/// A tensor without gaps, as the typed views of requests take it.
TensorSpec spec_of(const graph::Graph& graph, ValueId value);
TensorSpec spec_of(DType dtype, const Extents& extents);

/// The same elements with dimensions of extent 1 in front, `rank` in all.
ValueId with_rank(graph::Graph& graph, ValueId value, size_t rank);
/// A value without dimensions as one of one element; any other as it is.
ValueId at_least_1d(graph::Graph& graph, ValueId value);

}  // namespace kiln::onnx_frontend
