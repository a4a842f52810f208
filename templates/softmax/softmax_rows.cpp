#include "softmax/softmax_rows.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "descriptor/parts.h"
#include "descriptor/streaming_estimate.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {
namespace {

constexpr size_t most_outer = 4;  // dimensions beside the axis

bool has_dynamic_batch(const SoftmaxForward& softmax) {
  return softmax.dynamic_batch && softmax.x.extents[0] > 1;
}

RowDimension dimension_of(const SoftmaxForward& softmax, size_t i) {
  if (softmax.x.extents[i] <= 1) return {softmax.x.extents[i], 0, 0};
  return {softmax.x.extents[i], softmax.x.strides[i], softmax.y.strides[i]};
}

RowDimension axis_of(const SoftmaxForward& softmax) {
  return dimension_of(softmax, static_cast<size_t>(softmax.axis));
}

bool continues(const RowDimension& inner, const RowDimension& outer) {
  return outer.x_stride == inner.x_stride * inner.extent && outer.y_stride == inner.y_stride * inner.extent;
}

// The dimensions other than the axis and a dynamic batch, innermost in x first, merged where x and y both allow it.
std::vector<RowDimension> merged_dimensions(const SoftmaxForward& softmax) {
  std::vector<RowDimension> dimensions;
  for (size_t i = has_dynamic_batch(softmax) ? 1 : 0; i < softmax.x.extents.size(); ++i) {
    if (static_cast<int64_t>(i) != softmax.axis && softmax.x.extents[i] > 1) {
      dimensions.push_back(dimension_of(softmax, i));
    }
  }
  std::sort(dimensions.begin(), dimensions.end(), [](const RowDimension& a, const RowDimension& b) {
    return std::pair(a.x_stride, a.y_stride) < std::pair(b.x_stride, b.y_stride);
  });
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

// How near neighbours are: in the operand where they are nearer, then in x.
std::tuple<int64_t, int64_t> nearness(const RowDimension& dimension) {
  return {std::min(distance(dimension.x_stride), distance(dimension.y_stride)), distance(dimension.x_stride)};
}

struct Innermost {
  bool of_x = true, of_y = true;  // whether no dimension of `dimensions` is further in than the axis
};

Innermost axis_among(const RowDimension& axis, const std::vector<RowDimension>& dimensions) {
  Innermost innermost;
  for (const RowDimension& other : dimensions) {
    if (distance(other.x_stride) < axis.x_stride) innermost.of_x = false;
    if (distance(other.y_stride) < axis.y_stride) innermost.of_y = false;
  }
  return innermost;
}

void add_dynamic_batch(const SoftmaxForward& softmax, RowLayout& layout) {
  if (has_dynamic_batch(softmax)) layout.outer.push_back(dimension_of(softmax, 0));
}

// x or y with the neighbours as dimension 0.
TensorSpec with_neighbours_first(const SoftmaxForward& softmax, const RowLayout& layout, bool is_x) {
  const TensorSpec& spec = is_x ? softmax.x : softmax.y;
  TensorSpec result{spec.dtype, {}, {}, spec.alignment};
  const auto append = [&](const RowDimension& dimension) {
    result.extents.push_back(dimension.extent);
    result.strides.push_back(is_x ? dimension.x_stride : dimension.y_stride);
  };
  append(layout.neighbours());
  append(layout.across ? layout.axis : layout.inner);
  for (const RowDimension& dimension : layout.outer) append(dimension);
  return result;
}

int widest_access(const TensorSpec& spec, int vector) {
  return std::min(vector, 16 / size_of(spec.dtype));
}

void add_outer(Prelude& prelude, const RowLayout& layout) {
  std::vector<int64_t> extents(most_outer, 1), x_strides(most_outer, 0), y_strides(most_outer, 0);
  for (size_t i = 0; i < layout.outer.size(); ++i) {
    extents.at(i) = layout.outer[i].extent;
    x_strides.at(i) = layout.outer[i].x_stride;
    y_strides.at(i) = layout.outer[i].y_stride;
  }
  prelude.array("OUTER_EXTENTS", extents).array("X_OUTER_STRIDES", x_strides).array("Y_OUTER_STRIDES", y_strides);
}

}  // namespace

bool RowLayout::contiguous() const {
  return neighbours().extent <= 1 || (neighbours().x_stride == 1 && neighbours().y_stride == 1);
}

RowLayout along_rows(const SoftmaxForward& softmax) {
  RowLayout layout;
  layout.axis = axis_of(softmax);
  layout.outer = merged_dimensions(softmax);
  add_dynamic_batch(softmax, layout);
  return layout;
}

RowLayout across_rows(const SoftmaxForward& softmax) {
  RowLayout layout;
  layout.across = true;
  layout.axis = axis_of(softmax);
  layout.outer = merged_dimensions(softmax);
  const auto nearest =
      std::min_element(layout.outer.begin(), layout.outer.end(),
                       [](const RowDimension& a, const RowDimension& b) { return nearness(a) < nearness(b); });
  if (nearest != layout.outer.end()) {
    layout.inner = *nearest;
    layout.outer.erase(nearest);
  }
  add_dynamic_batch(softmax, layout);
  return layout;
}

std::optional<RowDimension> contiguous_rows(const SoftmaxForward& softmax) {
  const RowLayout layout = along_rows(softmax);
  if (softmax.row_length() == 0 || !layout.contiguous()) return std::nullopt;
  RowDimension rows;
  for (const RowDimension& next : layout.outer) {
    if (rows.extent == 1) {
      rows = next;
    } else if (continues(rows, next)) {
      rows.extent *= next.extent;
    } else {
      return std::nullopt;
    }
  }
  return rows;
}

std::optional<std::string> refuse_along_rows(const SoftmaxForward& softmax) {
  if (softmax.row_length() == 0) return "rows must not be empty";
  const Innermost innermost = axis_among(axis_of(softmax), merged_dimensions(softmax));
  if (innermost.of_x || innermost.of_y) return std::nullopt;
  return "another dimension than the axis is the innermost of x and of y";
}

std::optional<std::string> refuse_across_rows(const SoftmaxForward& softmax) {
  if (softmax.row_length() == 0) return "rows must not be empty";
  const std::vector<RowDimension> dimensions = merged_dimensions(softmax);
  if (dimensions.empty()) return "needs rows side by side in an image, or a batch that is not dynamic";
  const Innermost innermost = axis_among(axis_of(softmax), dimensions);
  if (softmax.row_length() == 1 || !innermost.of_x || !innermost.of_y) return std::nullopt;
  return "the axis is the innermost dimension of x and of y";
}

Access access_of(const SoftmaxForward& softmax, const RowLayout& layout, int vector) {
  return {widest_vector(with_neighbours_first(softmax, layout, true), {0}, vector),
          widest_vector(with_neighbours_first(softmax, layout, false), {0}, vector)};
}

bool vector_pays(const SoftmaxForward& softmax, const RowLayout& layout, int vector) {
  if (vector == 1) return true;
  if (layout.neighbours().extent % vector != 0) return false;
  const Access access = access_of(softmax, layout, vector);
  return access.x_run == widest_access(softmax.x, vector) || access.y_run == widest_access(softmax.y, vector);
}

ElementBytes element_bytes(const SoftmaxForward& softmax, const RowLayout& layout, int vector) {
  const Access access = access_of(softmax, layout, vector);
  const auto bytes = [&](int run, int64_t stride, DType dtype) {
    const double size = size_of(dtype);
    return lane_bytes(run * size, vector * static_cast<double>(stride) * size) / run;
  };
  const RowDimension& neighbours = layout.neighbours();
  return {bytes(access.x_run, neighbours.x_stride, softmax.x.dtype),
          bytes(access.y_run, neighbours.y_stride, softmax.y.dtype)};
}

int64_t rows_per_image(const SoftmaxForward& softmax) {
  int64_t rows = 1;
  for (size_t i = 1; i < softmax.x.extents.size(); ++i) {
    if (static_cast<int64_t>(i) != softmax.axis) rows *= softmax.x.extents[i];
  }
  return rows;
}

Count blocks_for_rows(const SoftmaxForward& softmax, int64_t rows_per_block) {
  if (softmax.dynamic_batch) return blocks_for(rows_per_image(softmax), 0, true, rows_per_block);
  return blocks_for(softmax.rows(), 1, false, rows_per_block);
}

Prelude softmax_prelude(const SoftmaxForward& softmax) {
  Prelude prelude;
  prelude.type("TX", softmax.x.dtype).type("TY", softmax.y.dtype);
  prelude.index_type("Index", needs_wide_index({&softmax.x, &softmax.y}));
  prelude.constant("ROWS", softmax.rows()).constant("ROWS_PER_IMAGE", rows_per_image(softmax));
  prelude.flag("DYNAMIC_N", softmax.dynamic_batch);
  prelude.constant("ROW", softmax.row_length()).flag("LOG", softmax.mode == SoftmaxMode::log);
  add_blend(prelude, softmax.blend);
  return prelude;
}

Prelude rows_prelude(const SoftmaxForward& softmax, const RowLayout& layout, int vector) {
  const Access access = access_of(softmax, layout, vector);
  Prelude prelude = softmax_prelude(softmax);
  add_outer(prelude, layout);
  prelude.constant("X_STEP", layout.neighbours().x_stride).constant("Y_STEP", layout.neighbours().y_stride);
  prelude.constant("VECTOR", vector).constant("X_RUN", access.x_run).constant("Y_RUN", access.y_run);
  return prelude;
}

double compulsory_bytes(const SoftmaxForward& softmax) {
  const double y = static_cast<double>(softmax.y.elements()) * size_of(softmax.y.dtype);
  return static_cast<double>(softmax.x.elements()) * size_of(softmax.x.dtype) +
         (softmax.blend.beta == Scale::zero ? y : 2 * y);
}

}  // namespace kiln::descriptor
