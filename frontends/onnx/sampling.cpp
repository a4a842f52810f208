// GridSample and AffineGrid: spatial transformers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kiln/base/printable.h"
#include "kiln/generator/operations/affine_grid.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

GridEnds ends_of(const Node& node) {
  return node.attributes().integer("align_corners", 0) != 0 ? GridEnds::centres : GridEnds::edges;
}

GridMode mode_of(const Node& node) {
  const std::string mode = node.attributes().word("mode", "linear");
  if (mode == "linear" || mode == "bilinear") return GridMode::linear;  // the latter up to opset 19
  if (mode == "nearest") return GridMode::nearest;
  if (mode == "cubic" || mode == "bicubic") return GridMode::cubic;
  node.fail(fmt::format("mode is '{}', expected linear, nearest or cubic", printable_name(mode)));
}

GridPadding padding_of(const Node& node) {
  const std::string padding = node.attributes().word("padding_mode", "zeros");
  for (const GridPadding each : {GridPadding::zeros, GridPadding::border, GridPadding::reflection}) {
    if (to_string(each) == padding) return each;
  }
  node.fail(fmt::format("padding_mode is '{}', expected zeros, border or reflection", printable_name(padding)));
}

void refuse_long_axes(Extents::const_iterator begin, Extents::const_iterator end) {
  if (std::any_of(begin, end, [](int64_t extent) { return extent > most_elements_of_grid_axis; })) {
    refuse("it has more than 2^24 elements along an axis");
  }
}

}  // namespace

void read_grid_sample(Node& node) {
  node.require_inputs(2, 2);
  const Extents &x = node.extents(0), &grid = node.extents(1);
  const size_t axes = x.size() - std::min<size_t>(x.size(), 2);
  if (axes == 0 || grid.size() != x.size() || grid.back() != static_cast<int64_t>(axes) || grid[0] != x[0]) {
    node.fail(fmt::format("samples {} at a grid of {}, expected N,C,H,W and N,P,Q,2, or N,C,D,H,W and N,Z,P,Q,3",
                          fmt::join(x, "x"), fmt::join(grid, "x")));
  }
  if (axes == 1 || axes > 3) refuse(fmt::format("its input has {} dimensions, and 4 or 5 are covered", x.size()));
  if (node.is_integer(0)) refuse("its elements are integers");
  if (node.is_integer(1)) node.fail("its grid has integers");
  if (std::count(x.begin() + 2, x.end(), 0) > 0) refuse("it samples a tensor without elements");
  refuse_long_axes(x.begin() + 2, x.end());
  graph::Graph& graph = node.graph();
  const ValueId image = node.operand(0), positions = node.operand(1);
  GridSample sample;
  sample.mode = mode_of(node);
  sample.padding = padding_of(node);
  sample.ends = ends_of(node);
  if (sample.mode == GridMode::cubic && axes == 3) refuse("its mode is cubic, along 3 axes");
  sample.x = spec_of(graph, image);
  sample.grid = spec_of(graph, positions);
  Extents y = {x[0], x[1]};
  y.insert(y.end(), grid.begin() + 1, grid.end() - 1);
  sample.y = spec_of(sample.x.dtype, y);
  node.give(graph.call(sample.request(), {{"x", image}, {"grid", positions}}, {}).front().value);
}

void read_affine_grid(Node& node) {
  node.require_inputs(2, 2);
  const Extents& theta = node.extents(0);
  const std::vector<int64_t> size = node.list(1, "sizes");
  const size_t axes = size.size() - std::min<size_t>(size.size(), 2);
  const bool is_image_or_volume = axes == 2 || axes == 3;
  const auto rows = static_cast<int64_t>(axes);
  if (!is_image_or_volume || theta != Extents{size[0], rows, rows + 1}) {
    node.fail(fmt::format("has matrices of {} for a size of {}, expected N,2,3 and N,C,H,W, or N,3,4 and N,C,D,H,W",
                          fmt::join(theta, "x"), fmt::join(size, "x")));
  }
  if (node.is_integer(0)) node.fail("its matrices have integers");
  if (*std::min_element(size.begin(), size.end()) < 0) node.fail(fmt::format("its size is {}", fmt::join(size, "x")));
  if (*std::min_element(size.begin() + 2, size.end()) < 1) refuse("its result has no elements");
  refuse_long_axes(size.begin() + 2, size.end());
  graph::Graph& graph = node.graph();
  const ValueId matrices = node.operand(0);
  AffineGrid map;
  map.theta = spec_of(graph, matrices);
  map.ends = ends_of(node);
  Extents grid = {size[0]};
  grid.insert(grid.end(), size.begin() + 2, size.end());
  grid.push_back(rows);
  map.grid = spec_of(map.theta.dtype, grid);
  node.give(graph.call(map.request(), {{"theta", matrices}}, {}).front().value);
}

}  // namespace kiln::onnx_frontend
