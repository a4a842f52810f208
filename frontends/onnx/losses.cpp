// The losses of classifiers.
#include <fmt/format.h>

#include "kiln/base/printable.h"
#include "kiln/generator/operations/softmax_forward.h"
#include "onnx/pointwise.h"
#include "onnx/readers.h"
#include "onnx/reductions.h"

namespace kiln::onnx_frontend {
namespace {

/// The logarithm of the softmax of x along dimension 1.
ValueId log_softmax(const Node& node, ValueId x) {
  graph::Graph& graph = node.graph();
  const Extents whole = graph.value(x).extents;
  const ValueId value =
      graph.reshape(x, {whole[0], whole[1], graph::count_elements(Extents(whole.begin() + 2, whole.end()))});
  SoftmaxForward softmax;
  softmax.x = softmax.y = spec_of(graph, value);
  softmax.axis = 1;
  softmax.mode = SoftmaxMode::log;
  return graph.reshape(graph.call(softmax.request(), {{"x", value}}).front().value, whole);
}

/// All elements as one sum.
ValueId total(const Node& node, ValueId value) {
  const int64_t count = graph::count_elements(node.graph().value(value).extents);
  return reduction(node, node.graph().reshape(value, {count}), {0}, ReduceMode::add).front();
}

}  // namespace

/// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: x of N, C and any more dimensions, the class of each place,
/// and weights of classes.
void read_class_loss(Node& node) {
  node.require_inputs(2, 3);
  graph::Graph& graph = node.graph();
  if (node.rank() < 2) node.fail(fmt::format("its input has {} dimensions, expected 2 or more", node.rank()));
  const Extents x = node.extents(0);
  Extents places = x;
  places[1] = 1;
  const std::string sum = node.attributes().word("reduction", "mean");
  if (sum != "none" && sum != "sum" && sum != "mean")
    node.fail(fmt::format("reduction is '{}', expected none, sum or mean", printable_name(sum)));
  ValueId logarithms = node.operand(0);
  if (node.type() == "SoftmaxCrossEntropyLoss") {
    logarithms = log_softmax(node, logarithms);
    node.give(logarithms, 1);
  }
  const ValueId classes = graph.reshape(node.operand(1), places);
  std::vector<NamedValue> tensors = {{"position", positions(node, x[1], 1, x.size())}};
  std::string weight = "1.0f";
  if (node.has(2)) {
    Extents extents(x.size(), 1);
    extents[1] = x[1];
    tensors.push_back({"weight", graph.reshape(node.operand(2), extents)});
    weight = "weight";
  }
  graph::Numbers scalars;
  std::string is_own = "acc == position";
  if (node.attributes().has("ignore_index")) {
    scalars.emplace_back("ignored", static_cast<float>(node.attributes().integer("ignore_index", 0)));
    is_own += " && acc != ignored";
  }
  const DType dtype = node.dtype(0);
  std::vector<NamedValue> with_logarithms = tensors;
  with_logarithms.push_back({"logarithm", logarithms});
  const ValueId terms = expression(node, fmt::format("{} ? -logarithm * {} : 0.0f", is_own, weight), classes,
                                   with_logarithms, dtype, scalars);
  const ValueId losses = reduction(node, terms, {1}, ReduceMode::add).front();
  if (sum == "none") {
    places.erase(places.begin() + 1);
    return node.give(graph.reshape(losses, places));
  }
  ValueId result = total(node, losses);
  if (sum == "mean") {
    const ValueId weights =
        expression(node, fmt::format("{} ? {} : 0.0f", is_own, weight), classes, tensors, dtype, scalars);
    result = tensor_op(node, TensorOpMode::div, {result, total(node, weights)}, dtype);
  }
  node.give(graph.reshape(result, {}));
}

}  // namespace kiln::onnx_frontend
