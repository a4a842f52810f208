// Einsum: pairs of its inputs as matrix products, whose rows, columns and batches are views; what only one input has is
// summed before.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "onnx/products.h"
#include "onnx/readers.h"
#include "onnx/reductions.h"

namespace kiln::onnx_frontend {
namespace {

/// Labels of dimensions, one character each. Labels of an ellipsis are '0' for the last, '1' before it, and so on.
using Labels = std::string;

/// A tensor in the course of it.
struct Labelled {
  ValueId value;
  Labels labels;
};

bool has(const Labels& labels, char label) {
  return labels.find(label) != Labels::npos;
}

struct Equation {
  std::vector<Labels> inputs;
  Labels result;
};

/// A term with an ellipsis of `dimensions` dimensions written out.
Labels written_out(const Node& node, Labels term, size_t dimensions) {
  const size_t dots = term.find("...");
  if (dots != Labels::npos) {
    Labels labels;
    for (size_t d = dimensions; d-- > 0;) labels.push_back(static_cast<char>('0' + d));
    term.replace(dots, 3, labels);
  }
  const bool is_right = std::all_of(term.begin(), term.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
  if (!is_right) node.fail(fmt::format("its equation has the term '{}', expected letters and one '...'", term));
  return term;
}

/// Labels of the result where the equation does not say: the ellipsis, and the letters that stand once, in order.
Labels implied(const std::vector<Labels>& inputs, size_t ellipsis) {
  std::map<char, int> counts;
  for (const Labels& term : inputs) {
    for (const char label : term) ++counts[label];
  }
  Labels result;
  for (size_t d = ellipsis; d-- > 0;) result.push_back(static_cast<char>('0' + d));
  for (const auto& [label, count] : counts) {
    if (count == 1 && std::isalpha(static_cast<unsigned char>(label)) != 0) result.push_back(label);
  }
  return result;
}

Equation equation_of(const Node& node) {
  std::string text = node.attributes().word("equation", "");
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  std::vector<std::string> terms(1);
  for (const char c : text.substr(0, arrow)) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back().push_back(c);
    }
  }
  if (terms.size() != static_cast<size_t>(node.inputs())) {
    node.fail(fmt::format("its equation has {} terms for {} inputs", terms.size(), node.inputs()));
  }
  constexpr size_t dots = 3, most_in_ellipsis = 10;
  size_t ellipsis = 0;
  Equation equation;
  for (size_t i = 0; i < terms.size(); ++i) {
    const size_t rank = node.rank(static_cast<int>(i));
    const bool is_open = terms[i].find("...") != std::string::npos;
    const size_t letters = terms[i].size() - (is_open ? dots : 0);
    if (letters > rank || (!is_open && letters != rank) || rank - letters > most_in_ellipsis) {
      node.fail(fmt::format("its equation has {} letters for input {} of {} dimensions", letters, i, rank));
    }
    equation.inputs.push_back(written_out(node, terms[i], rank - letters));
    ellipsis = std::max(ellipsis, rank - letters);
  }
  equation.result = arrow == std::string::npos ? implied(equation.inputs, ellipsis)
                                               : written_out(node, text.substr(arrow + 2), ellipsis);
  return equation;
}

/// The diagonal where a label stands twice in one term: every (n + 1)st element of the two dimensions as one.
Labelled diagonal(const Node& node, Labelled tensor) {
  graph::Graph& graph = node.graph();
  for (size_t first = 0; first < tensor.labels.size(); ++first) {
    const size_t second = tensor.labels.find(tensor.labels[first], first + 1);
    if (second == Labels::npos) continue;
    std::vector<size_t> order;
    for (size_t d = 0; d < tensor.labels.size(); ++d) {
      if (d != first && d != second) order.push_back(d);
    }
    order.push_back(first);
    order.push_back(second);
    const ValueId behind = graph.permute(tensor.value, order);
    Extents extents = graph.value(behind).extents;
    const int64_t n = extents.back();
    if (extents[extents.size() - 2] != n) node.fail(fmt::format("label '{}' has two extents", tensor.labels[first]));
    extents.pop_back();
    extents.back() = n * n;
    const ValueId flat = graph.reshape(behind, extents);
    Extents step(extents.size(), 1);
    extents.back() = n;
    step.back() = n > 1 ? n + 1 : 1;
    Labels labels;
    for (const size_t d : order) labels.push_back(tensor.labels[d]);
    labels.pop_back();
    return diagonal(node, {graph.slice(flat, Extents(extents.size(), 0), extents, step), labels});
  }
  return tensor;
}

/// Sums what nothing else needs.
Labelled summed(const Node& node, Labelled tensor, const std::set<char>& needed) {
  std::vector<size_t> axes;
  Labels labels;
  Extents extents;
  for (size_t d = 0; d < tensor.labels.size(); ++d) {
    if (needed.contains(tensor.labels[d])) {
      labels.push_back(tensor.labels[d]);
      extents.push_back(node.graph().value(tensor.value).extents[d]);
    } else {
      axes.push_back(d);
    }
  }
  if (axes.empty()) return tensor;
  const ValueId sum = reduction(node, tensor.value, axes, ReduceMode::add).front();
  return {node.graph().reshape(sum, extents), labels};
}

/// The dimensions of `labels` in that order.
Labelled ordered(graph::Graph& graph, const Labelled& tensor, const Labels& labels) {
  std::vector<size_t> order;
  for (const char label : labels) order.push_back(tensor.labels.find(label));
  return {graph.permute(tensor.value, order), labels};
}

int64_t extent_of(const graph::Graph& graph, const Labelled& tensor, char label) {
  return graph.value(tensor.value).extents[tensor.labels.find(label)];
}

/// With dimensions of extent 1 repeated to what the other one has there.
Labelled repeated_as(const Node& node, const Labelled& tensor, const Labelled& other) {
  graph::Graph& graph = node.graph();
  Extents extents = graph.value(tensor.value).extents;
  for (size_t d = 0; d < extents.size(); ++d) {
    const char label = tensor.labels[d];
    if (!has(other.labels, label)) continue;
    const int64_t extent = extent_of(graph, other, label);
    if (extents[d] != extent && extents[d] != 1 && extent != 1)
      node.fail(fmt::format("label '{}' has two extents", label));
    extents[d] = std::max(extents[d], extent);
  }
  return {graph.repeat(tensor.value, extents), tensor.labels};
}

/// The product of two, summed over labels that are in both and not needed any more.
Labelled multiplied(const Node& node, Labelled a, Labelled b, const std::set<char>& needed) {
  graph::Graph& graph = node.graph();
  std::tie(a, b) = std::pair(repeated_as(node, a, b), repeated_as(node, b, a));
  Labels batch, rows, inner, columns;
  for (const char label : a.labels) {
    Labels& group = !has(b.labels, label) ? rows : needed.contains(label) ? batch : inner;
    group.push_back(label);
  }
  for (const char label : b.labels) {
    if (!has(a.labels, label)) columns.push_back(label);
  }
  const auto count = [&](const Labelled& tensor, const Labels& labels) {
    int64_t elements = 1;
    for (const char label : labels) elements *= extent_of(graph, tensor, label);
    return elements;
  };
  Extents extents;
  for (const char label : batch + rows) extents.push_back(extent_of(graph, a, label));
  for (const char label : columns) extents.push_back(extent_of(graph, b, label));
  const int64_t m = count(a, rows), n = count(b, columns), k = count(a, inner), batches = count(a, batch);
  ValueId left = ordered(graph, a, batch + rows + inner).value,
          right = ordered(graph, b, batch + inner + columns).value;
  const bool many = batches > 1;
  left = graph.reshape(left, many ? Extents{batches, m, k} : Extents{m, k});
  right = graph.reshape(right, many ? Extents{batches, k, n} : Extents{k, n});
  return {graph.reshape(product(node, left, right), extents), batch + rows + columns};
}

}  // namespace

void read_einsum(Node& node) {
  node.require_inputs(1, std::numeric_limits<int>::max());
  if (node.is_integer(0)) refuse("its elements are integers");
  const Equation equation = equation_of(node);
  // Labels that a step must keep: those of the result, and of inputs that are still to come.
  const auto needed_behind = [&](size_t input) {
    std::set<char> needed(equation.result.begin(), equation.result.end());
    for (size_t i = input + 1; i < equation.inputs.size(); ++i) {
      needed.insert(equation.inputs[i].begin(), equation.inputs[i].end());
    }
    return needed;
  };
  const auto input = [&](size_t i) { return diagonal(node, {node.operand(static_cast<int>(i)), equation.inputs[i]}); };
  Labelled tensor = summed(node, input(0), needed_behind(0));
  for (size_t i = 1; i < equation.inputs.size(); ++i) {
    const std::set<char> needed = needed_behind(i);
    std::set<char> of_both = needed;
    of_both.insert(tensor.labels.begin(), tensor.labels.end());
    tensor = multiplied(node, tensor, summed(node, input(i), of_both), needed);
    tensor = summed(node, tensor, needed);
  }
  for (const char label : equation.result) {
    if (!has(tensor.labels, label)) node.fail(fmt::format("its result has the label '{}', and no input has it", label));
  }
  node.give(ordered(node.graph(), tensor, equation.result).value);
}

}  // namespace kiln::onnx_frontend
