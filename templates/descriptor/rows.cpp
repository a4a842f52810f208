#include "descriptor/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <tuple>
#include <utility>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {
namespace {

// Dimensions that a kernel counts through, of which some may have the extent 1: all where these are constants, which
// cost nothing; in an open kernel one of few numbers, so that few kernels serve all.
int64_t counted_dimensions(const Emitter& emit, size_t dimensions, size_t least, size_t most) {
  if (!emit.open()) return static_cast<int64_t>(most);
  return static_cast<int64_t>(dimensions <= least ? least : dimensions <= 2 ? 2 : most);
}

// The distance between neighbours is left open where it is not the usual one.
void add_step(Prelude& prelude, const std::string& name, int64_t step) {
  if (step <= 1) {
    prelude.constant(name + "_STEP", step);
  } else {
    prelude.extent(name + "_STEP", step);
  }
}

bool has_dynamic_batch(const Rows& rows) {
  return rows.dynamic_batch && rows.extents()[0] > 1;
}

RowDimension dimension_of(const Rows& rows, size_t i) {
  RowDimension dimension{rows.extents()[i], {}};
  for (const Operand& operand : rows.operands) {
    dimension.strides.push_back(operand.spec.extents[i] <= 1 ? 0 : operand.spec.strides[i]);
  }
  return dimension;
}

RowDimension one_element(const Rows& rows) {
  return {1, std::vector<int64_t>(rows.operands.size(), 0)};
}

bool continues(const RowDimension& inner, const RowDimension& outer) {
  return std::equal(inner.strides.begin(), inner.strides.end(), outer.strides.begin(),
                    [&](int64_t in, int64_t out) { return out == in * inner.extent; });
}

// The axes, or the dimensions other than these and a dynamic batch, innermost in the first operand first, merged where
// all operands allow it.
std::vector<RowDimension> merged_dimensions(const Rows& rows, bool axes) {
  std::vector<RowDimension> dimensions;
  for (size_t i = has_dynamic_batch(rows) ? 1 : 0; i < rows.extents().size(); ++i) {
    if (rows.is_axis(i) == axes && rows.extents()[i] > 1) dimensions.push_back(dimension_of(rows, i));
  }
  std::sort(dimensions.begin(), dimensions.end(),
            [](const RowDimension& a, const RowDimension& b) { return a.strides < b.strides; });
  std::vector<RowDimension> merged;
  for (const RowDimension& next : dimensions) {
    if (!merged.empty() && continues(merged.back(), next)) {
      merged.back().extent *= next.extent;
    } else {
      merged.push_back(next);
    }
  }
  return merged;
}

// Elements that are repeated (stride 0) are near to nothing.
int64_t distance(int64_t stride) {
  return stride == 0 ? std::numeric_limits<int64_t>::max() : stride;
}

RowLayout layout_of(const Rows& rows) {
  RowLayout layout;
  layout.row = merged_dimensions(rows, true);
  if (layout.row.empty()) layout.row.push_back(one_element(rows));
  layout.inner = one_element(rows);
  layout.outer = merged_dimensions(rows, false);
  return layout;
}

// How near neighbours are: in the operand where they are nearest, then in the first.
std::tuple<int64_t, int64_t> nearness(const RowDimension& dimension) {
  int64_t nearest = std::numeric_limits<int64_t>::max();
  for (const int64_t stride : dimension.strides) nearest = std::min(nearest, distance(stride));
  return {nearest, distance(dimension.strides.front())};
}

// For each operand that repeats nowhere, whether none of the other dimensions is further in than the axes.
std::vector<bool> row_is_innermost(const Rows& rows, const RowLayout& layout) {
  const RowDimension& row = layout.row.front();
  std::vector<bool> innermost;
  for (size_t i = 0; i < row.strides.size(); ++i) {
    if (!rows.is_full(i)) continue;
    innermost.push_back(std::none_of(layout.outer.begin(), layout.outer.end(), [&](const RowDimension& other) {
      return distance(other.strides[i]) < row.strides[i];
    }));
  }
  return innermost;
}

void add_dynamic_batch(const Rows& rows, RowLayout& layout) {
  if (has_dynamic_batch(rows)) layout.outer.push_back(dimension_of(rows, 0));
}

// Operand `i` with the neighbours as dimension 0.
TensorSpec with_neighbours_first(const Rows& rows, const RowLayout& layout, size_t i) {
  const TensorSpec& spec = rows.operands[i].spec;
  TensorSpec result{spec.dtype, {}, {}, spec.alignment};
  const auto append = [&](const RowDimension& dimension) {
    result.extents.push_back(dimension.extent);
    result.strides.push_back(dimension.strides[i]);
  };
  append(layout.neighbours());
  for (size_t d = layout.across ? 0 : 1; d < layout.row.size(); ++d) append(layout.row[d]);
  for (const RowDimension& dimension : layout.outer) append(dimension);
  return result;
}

// Elements of operand `i` that one access moves when a thread takes `vector` neighbours.
int run_of(const Rows& rows, const RowLayout& layout, size_t i, int vector) {
  return widest_vector(with_neighbours_first(rows, layout, i), {0}, vector);
}

}  // namespace

bool Rows::is_axis(size_t dimension) const {
  return std::find(axes.begin(), axes.end(), static_cast<int64_t>(dimension)) != axes.end();
}

int64_t Rows::length() const {
  int64_t elements = 1;
  for (const int64_t axis : axes) elements *= extents()[static_cast<size_t>(axis)];
  return elements;
}

int64_t Rows::count() const {
  return per_image() * (is_axis(0) ? 1 : extents()[0]);
}

int64_t Rows::per_image() const {
  int64_t rows = 1;
  for (size_t i = 1; i < extents().size(); ++i) {
    if (!is_axis(i)) rows *= extents()[i];
  }
  return rows;
}

double Rows::input_bytes() const {
  double bytes = 0;
  for (size_t i = 0; i < inputs(); ++i) bytes += size_of(operands[i].spec.dtype);
  return bytes;
}

double Rows::compulsory_bytes() const {
  return static_cast<double>(elements()) * (input_bytes() + size_of(result().dtype));
}

bool RowLayout::contiguous() const {
  const std::vector<int64_t>& strides = neighbours().strides;
  return neighbours().extent <= 1 ||
         std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 1; });
}

std::vector<int64_t> extents_of(const std::vector<RowDimension>& dimensions, size_t most) {
  std::vector<int64_t> extents(most, 1);
  for (size_t d = 0; d < dimensions.size(); ++d) extents.at(d) = dimensions[d].extent;
  return extents;
}

std::vector<int64_t> strides_of(const std::vector<RowDimension>& dimensions, size_t operand, size_t most) {
  std::vector<int64_t> strides(most, 0);
  for (size_t d = 0; d < dimensions.size(); ++d) strides.at(d) = dimensions[d].strides[operand];
  return strides;
}

RowLayout along_rows(const Rows& rows) {
  RowLayout layout = layout_of(rows);
  add_dynamic_batch(rows, layout);
  return layout;
}

RowLayout across_rows(const Rows& rows) {
  RowLayout layout = layout_of(rows);
  layout.across = true;
  const auto nearest =
      std::min_element(layout.outer.begin(), layout.outer.end(),
                       [](const RowDimension& a, const RowDimension& b) { return nearness(a) < nearness(b); });
  if (nearest != layout.outer.end()) {
    layout.inner = *nearest;
    layout.outer.erase(nearest);
  }
  add_dynamic_batch(rows, layout);
  return layout;
}

std::optional<RowDimension> contiguous_rows(const Rows& rows) {
  const RowLayout layout = along_rows(rows);
  if (rows.length() == 0 || layout.row.size() > 1 || !layout.contiguous()) return std::nullopt;
  RowDimension all = one_element(rows);
  for (const RowDimension& next : layout.outer) {
    if (all.extent == 1) {
      all = next;
    } else if (continues(all, next)) {
      all.extent *= next.extent;
    } else {
      return std::nullopt;
    }
  }
  return all;
}

std::optional<std::string> refuse_along_rows(const Rows& rows) {
  if (rows.length() == 0) return "rows must not be empty";
  const std::vector<bool> innermost = row_is_innermost(rows, layout_of(rows));
  if (std::find(innermost.begin(), innermost.end(), true) != innermost.end()) return std::nullopt;
  return "another dimension than the axis is the innermost of every operand";
}

std::optional<std::string> refuse_across_rows(const Rows& rows) {
  if (rows.length() == 0) return "rows must not be empty";
  const RowLayout layout = layout_of(rows);
  if (layout.outer.empty()) return "needs rows side by side in an image, or a batch that is not dynamic";
  const std::vector<bool> innermost = row_is_innermost(rows, layout);
  if (rows.length() == 1 || std::find(innermost.begin(), innermost.end(), false) != innermost.end()) {
    return std::nullopt;
  }
  return "the axis is the innermost dimension of every operand";
}

bool vector_divides(const RowLayout& layout, int vector) {
  return vector == 1 || layout.neighbours().extent % vector == 0;
}

std::string order_along_rows(std::string_view algorithm, int threads, int vector) {
  return fmt::format("{}: {} threads a row, {} neighbours at a time", algorithm, threads, vector);
}

std::string order_across_rows(std::string_view algorithm, int threads) {
  return fmt::format("{}: {} threads a row, across", algorithm, threads);
}

bool vector_pays(const Rows& rows, const RowLayout& layout, int vector) {
  if (vector == 1) return true;
  if (!vector_divides(layout, vector)) return false;
  for (size_t i = 0; i < rows.operands.size(); ++i) {
    if (!rows.is_full(i)) continue;
    const int widest = std::min(vector, 16 / size_of(rows.operands[i].spec.dtype));
    if (run_of(rows, layout, i, vector) == widest) return true;
  }
  return false;
}

ElementBytes element_bytes(const Rows& rows, const RowLayout& layout, int vector, double least) {
  ElementBytes bytes;
  for (size_t i = 0; i < rows.operands.size(); ++i) {
    const double size = size_of(rows.operands[i].spec.dtype);
    const int run = run_of(rows, layout, i, vector);
    const double pitch = vector * static_cast<double>(layout.neighbours().strides[i]) * size;
    (i < rows.inputs() ? bytes.read : bytes.written) += std::max(least, lane_bytes(run * size, pitch) / run);
  }
  return bytes;
}

Count blocks_for_rows(const Rows& rows, int64_t rows_per_block) {
  if (rows.dynamic_batch) return blocks_for(rows.per_image(), 0, true, rows_per_block);
  return blocks_for(rows.count(), 1, false, rows_per_block);
}

std::string constant_name(const Operand& operand) {
  std::string name = operand.name;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

Prelude rows_prelude(const Rows& rows) {
  Prelude prelude;
  bool wide = rows.wide;
  for (const Operand& operand : rows.operands) {
    prelude.type("T" + constant_name(operand), operand.spec.dtype);
    wide = wide || needs_wide_index({&operand.spec});
  }
  prelude.index_type("Index", wide);
  prelude.extent("ROWS", rows.count()).extent("ROWS_PER_IMAGE", rows.per_image());
  prelude.flag("DYNAMIC_N", rows.dynamic_batch).extent("ROW", rows.length());
  return prelude;
}

Prelude rows_prelude(const Rows& rows, const RowLayout& layout, int vector, const Emitter& emit) {
  Prelude prelude = rows_prelude(rows);
  prelude.constant("OUTER_DIMENSIONS", counted_dimensions(emit, layout.outer.size(), 2, most_outer));
  prelude.extents("OUTER_EXTENTS", extents_of(layout.outer, most_outer)).constant("VECTOR", vector);
  for (size_t i = 0; i < rows.operands.size(); ++i) {
    const std::string name = constant_name(rows.operands[i]);
    prelude.extents(name + "_OUTER_STRIDES", strides_of(layout.outer, i, most_outer));
    add_step(prelude, name, layout.neighbours().strides[i]);
    prelude.constant(name + "_RUN", run_of(rows, layout, i, vector));
    if (layout.across && layout.row.size() == 1) {
      prelude.extent(name + "_AXIS_STRIDE", layout.row.front().strides[i]);
    }
  }
  if (layout.across) prelude.extent("INNER", layout.inner.extent);
  return prelude;
}

void add_simple_rows(Prelude& prelude, const Rows& rows) {
  std::vector<int64_t> extents = rows.extents(), axes;
  for (size_t d = 0; d < extents.size(); ++d) {
    axes.push_back(rows.is_axis(d) ? 1 : 0);
    extents[d] = std::max<int64_t>(extents[d], 1);  // an empty tensor starts no block, or has empty rows
  }
  prelude.constant("RANK", static_cast<int64_t>(extents.size())).array("AXES", axes).extents("EXTENTS", extents);
  for (const Operand& operand : rows.operands) {
    std::vector<int64_t> strides = operand.spec.strides;
    for (size_t d = 0; d < strides.size(); ++d) strides[d] = operand.spec.extents[d] <= 1 ? 0 : strides[d];
    prelude.extents(constant_name(operand) + "_STRIDES", strides);
  }
}

void add_row_dimensions(Prelude& prelude, const Rows& rows, const RowLayout& layout, const Emitter& emit) {
  prelude.constant("ROW_DIMENSIONS", counted_dimensions(emit, layout.row.size(), 1, most_axes));
  prelude.extents("ROW_EXTENTS", extents_of(layout.row, most_axes));
  for (size_t i = 0; i < rows.operands.size(); ++i) {
    prelude.extents(constant_name(rows.operands[i]) + "_ROW_STRIDES", strides_of(layout.row, i, most_axes));
  }
}

}  // namespace kiln::descriptor
