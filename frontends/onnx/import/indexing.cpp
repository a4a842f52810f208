// Elements by their positions, where those are known: parts of a tensor, one behind another.
#include <fmt/format.h>

#include <vector>

#include "onnx/import/pointwise.h"
#include "onnx/import/readers.h"

namespace kiln::onnx_frontend {
namespace {

/// Positions that ascend evenly.
struct Run {
  int64_t first = 0, step = 1, count = 0;
};

/// The list as such runs, each as long as can be.
std::vector<Run> runs_of(const std::vector<int64_t>& positions) {
  std::vector<Run> runs;
  for (const int64_t position : positions) {
    Run* const last = runs.empty() ? nullptr : &runs.back();
    if (last != nullptr && last->count == 1 && position > last->first) {
      last->step = position - last->first;
      last->count = 2;
    } else if (last != nullptr && last->count > 1 && position == last->first + last->step * last->count) {
      ++last->count;
    } else {
      runs.push_back({position, 1, 1});
    }
  }
  return runs;
}

}  // namespace

ValueId taken(const Node& node, ValueId x, size_t axis, const std::vector<int64_t>& positions) {
  constexpr size_t most_parts = 64;  // each is a copy
  graph::Graph& graph = node.graph();
  const std::vector<Run> runs = runs_of(positions);
  if (runs.empty()) refuse("its result has no elements");
  if (runs.size() > most_parts) {
    refuse(fmt::format("it takes {} elements in {} runs, and up to {} are covered", positions.size(), runs.size(),
                       most_parts));
  }
  std::vector<ValueId> parts;
  for (const Run& run : runs) {
    Extents extents = graph.value(x).extents, begin(extents.size(), 0), step(extents.size(), 1);
    extents[axis] = run.count;
    begin[axis] = run.first;
    step[axis] = run.step;
    parts.push_back(graph.slice(x, begin, extents, step));
  }
  return parts.size() == 1 ? parts.front() : graph.concat(std::move(parts), axis);
}

void read_gather(Node& node) {
  node.require_inputs(2, 2);
  graph::Graph& graph = node.graph();
  const Extents& x = node.extents(0);
  const size_t axis = node.axis(node.attributes().integer("axis", 0), x.size());
  Extents result(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
  result.insert(result.end(), node.extents(1).begin(), node.extents(1).end());
  result.insert(result.end(), x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end());
  std::vector<int64_t> positions = node.integers(1, "indices");
  for (int64_t& position : positions) {
    if (position < -x[axis] || position >= x[axis]) node.fail(fmt::format("takes element {} of {}", position, x[axis]));
    position += position < 0 ? x[axis] : 0;
  }
  node.give(graph.reshape(taken(node, node.operand(0), axis, positions), result));
}

}  // namespace kiln::onnx_frontend
