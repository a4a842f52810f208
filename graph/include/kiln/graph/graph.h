// Graph: a whole model as values, and the calls and views that make them. Frontends build it, passes rewrite it, and
// schedule() makes of it what runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln::graph {

using Extents = std::vector<int64_t>;

/// A value of one Graph, by its number there.
using ValueId = size_t;

/// A tensor that a model is given, computes, or has in its file. It may have up to most_dimensions dimensions, or none;
/// only operands of calls are held to the ranks of their operations.
struct Value {
  std::string name;  ///< For messages; may be empty.
  DType dtype = DType::f32;
  Extents extents;
};

/// The elements of a constant: in logical order without gaps, as stored in its value's dtype.
using Bytes = std::shared_ptr<const std::vector<std::byte>>;

/// The same elements in logical order, with other extents.
struct Reshape {};
/// Dimension d of the result is dimension order[d] of the source.
struct Permute {
  std::vector<size_t> order;
};
/// Element i of the result, along each dimension, is element begin + i * step of the source; step is at least 1.
struct Slice {
  Extents begin, step;
};
/// Dimensions of extent 1 of the source repeat to the extents of the result.
struct Repeat {};

/// How a view finds its elements in its source.
using ViewKind = std::variant<Reshape, Permute, Slice, Repeat>;

struct View {
  ViewKind kind;
  ValueId source, result;
};

/// The parts one behind another along `axis`.
struct Concat {
  std::vector<ValueId> parts;
  size_t axis;
  ValueId result;
};

/// An operand of a call, by its name in requests.
struct Operand {
  std::string name;
  ValueId value;
};

using Numbers = std::vector<std::pair<std::string, float>>;
using Integers = std::vector<std::pair<std::string, uint64_t>>;

/// One call of one operation of Kiln.
struct Call {
  Request request;  ///< The request without operands: schedule() gives them the strides that they have.
  std::vector<Operand> inputs, outputs;
  /// As of Plan::values(): alpha, beta, the numbers of the operation, and the scalars of user code.
  Numbers numbers;
  Integers integers;
  std::vector<std::string> origins;  ///< The nodes of the model that it serves.
};

using Node = std::variant<Call, View, Concat>;

/// A model. Values have numbers from 0 in the order in which they were added; a node stands behind those that make its
/// inputs. Not thread-safe.
class Graph {
 public:
  struct Port {
    std::string name;
    ValueId value;
  };

  // Building. Each throws Error(invalid_argument) for extents that do not fit, Error(unsupported) beyond most_nodes,
  // and Error(internal) for a value that there is not.

  /// A value that every run brings.
  ValueId input(std::string name, DType dtype, Extents extents);
  /// A value that never changes. `bytes`: elements of `dtype` in logical order.
  ValueId constant(std::string name, DType dtype, Extents extents, Bytes bytes);
  /// Makes `value` a result of every run. A value may be several outputs, or an input itself.
  void output(std::string name, ValueId value);

  ValueId reshape(ValueId source, Extents extents);
  ValueId permute(ValueId source, std::vector<size_t> order);
  ValueId slice(ValueId source, Extents begin, Extents extents, Extents step);
  ValueId repeat(ValueId source, Extents extents);
  ValueId concat(std::vector<ValueId> parts, size_t axis);

  /// Adds a call, and returns what it writes, the result first. `request`: complete, of operands without gaps, as the
  /// typed views of operations make it. `inputs`: what it reads, by name; each operand that it writes becomes a value.
  /// `numbers` and `integers`: as Call has them; the request's classes of scale become those of alpha and beta.
  std::vector<Operand> call(const Request& request, std::vector<Operand> inputs, Numbers numbers = {},
                            Integers integers = {});
  /// The node of the model that calls are added for from now on.
  void set_origin(std::string node) { origin_ = std::move(node); }

  const Value& value(ValueId id) const { return values_.at(id); }
  void rename(ValueId id, std::string name) { values_.at(id).name = std::move(name); }
  size_t count() const { return values_.size(); }
  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  /// The elements of a constant; null for what is computed.
  const Bytes& bytes(ValueId id) const { return constants_.at(id); }
  bool is_constant(ValueId id) const { return constants_.at(id) != nullptr; }

  const std::vector<Node>& nodes() const { return nodes_; }
  /// For passes: nodes keep their order, each behind what makes its inputs.
  std::vector<Node>& nodes() { return nodes_; }
  /// A value that a pass needs besides.
  ValueId add_value(Value value);

  /// Forgets the nodes behind the first `count`, and what they made is used no more.
  void truncate(size_t count) { nodes_.resize(count); }

 private:
  ValueId add_view(ViewKind kind, ValueId source, Extents extents);
  void add_node(Node node);

  std::vector<Value> values_;
  std::vector<Bytes> constants_;  // one for each value
  std::vector<Port> inputs_, outputs_;
  std::vector<Node> nodes_;
  std::string origin_;
};

/// Calls `see` for each value that `node` reads, or makes.
void for_each_input(const Node& node, const std::function<void(ValueId)>& see);
void for_each_output(const Node& node, const std::function<void(ValueId)>& see);

/// Elements and dimensions of a value: offsets, strides and sums of sizes of such values fit 64 bits. No device has
/// memory for more elements.
inline constexpr int64_t most_elements = int64_t{1} << 40;
inline constexpr size_t most_dimensions = 64;
/// Calls and views of a graph: what passes and schedule() do with more takes too long.
inline constexpr size_t most_nodes = size_t{1} << 16;

/// Product of the extents. Throws Error(invalid_argument) for a negative one, for more than most_dimensions, and where
/// those above 0 have a product beyond most_elements.
int64_t count_elements(const Extents& extents);

}  // namespace kiln::graph
