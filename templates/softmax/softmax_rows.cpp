#include "softmax/softmax_rows.h"

#include <algorithm>
#include <vector>

#include "descriptor/parts.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {
namespace {

// One or several dimensions, merged.
struct Dimension {
  int64_t extent, x_stride, y_stride;
  bool has_batch;
};

// The dimensions other than the axis, outermost in x first, merged where x and y both allow it.
std::vector<Dimension> merged_dimensions(const SoftmaxForward& softmax) {
  std::vector<Dimension> dimensions;
  for (size_t i = 0; i < softmax.x.extents.size(); ++i) {
    if (static_cast<int64_t>(i) == softmax.axis || softmax.x.extents[i] <= 1) continue;
    dimensions.push_back({softmax.x.extents[i], softmax.x.strides[i], softmax.y.strides[i], i == 0});
  }
  std::stable_sort(dimensions.begin(), dimensions.end(),
                   [](const Dimension& a, const Dimension& b) { return a.x_stride > b.x_stride; });
  std::vector<Dimension> merged;
  for (const Dimension& next : dimensions) {
    const bool fits = !merged.empty() && merged.back().x_stride == next.x_stride * next.extent &&
                      merged.back().y_stride == next.y_stride * next.extent;
    // A dynamic batch stays outermost, so that its first images are the first rows.
    if (fits && !(next.has_batch && softmax.dynamic_batch)) {
      merged.back() = {merged.back().extent * next.extent, next.x_stride, next.y_stride, merged.back().has_batch};
    } else {
      merged.push_back(next);
    }
  }
  return merged;
}

RowLayout with_axis(const SoftmaxForward& softmax) {
  const auto axis = static_cast<size_t>(softmax.axis);
  RowLayout layout;
  layout.row = softmax.row_length();
  if (layout.row > 1) {
    layout.x_axis_stride = softmax.x.strides[axis];
    layout.y_axis_stride = softmax.y.strides[axis];
  }
  return layout;
}

void set_outer(RowLayout& layout, const Dimension& dimension) {
  layout.outer = dimension.extent;
  layout.x_outer_stride = dimension.x_stride;
  layout.y_outer_stride = dimension.y_stride;
}

bool batch_is_free(const SoftmaxForward& softmax) {
  return !softmax.dynamic_batch || softmax.x.extents[0] <= 1;
}

}  // namespace

TensorSpec RowLayout::three_dimensions(const TensorSpec& spec, bool is_x) const {
  return {spec.dtype,
          {outer, row, inner},
          {is_x ? x_outer_stride : y_outer_stride, is_x ? x_axis_stride : y_axis_stride, 1},
          spec.alignment};
}

std::optional<RowLayout> contiguous_rows(const SoftmaxForward& softmax) {
  RowLayout layout = with_axis(softmax);
  if (layout.row == 0) return std::nullopt;
  if (layout.row > 1 && (layout.x_axis_stride != 1 || layout.y_axis_stride != 1)) return std::nullopt;
  const std::vector<Dimension> dimensions = merged_dimensions(softmax);
  if (dimensions.size() > 1) return std::nullopt;
  if (!dimensions.empty()) {
    if (!dimensions[0].has_batch && !batch_is_free(softmax)) return std::nullopt;
    set_outer(layout, dimensions[0]);
  }
  return layout;
}

std::optional<RowLayout> strided_rows(const SoftmaxForward& softmax) {
  RowLayout layout = with_axis(softmax);
  const std::vector<Dimension> dimensions = merged_dimensions(softmax);
  if (layout.row == 0 || dimensions.empty() || dimensions.size() > 2) return std::nullopt;
  const Dimension& inner = dimensions.back();
  if (inner.x_stride != 1 || inner.y_stride != 1) return std::nullopt;
  if (inner.has_batch && !batch_is_free(softmax)) return std::nullopt;
  layout.inner = inner.extent;
  if (dimensions.size() == 2) {
    if (!dimensions[0].has_batch && !batch_is_free(softmax)) return std::nullopt;
    set_outer(layout, dimensions[0]);
  }
  return layout;
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

Prelude contiguous_prelude(const SoftmaxForward& softmax) {
  const RowLayout layout = contiguous_rows(softmax).value();
  Prelude prelude = softmax_prelude(softmax);
  prelude.constant("X_ROW_STRIDE", layout.x_outer_stride).constant("Y_ROW_STRIDE", layout.y_outer_stride);
  return prelude;
}

std::optional<std::string> refuse_unless_contiguous(const SoftmaxForward& softmax) {
  if (contiguous_rows(softmax)) return std::nullopt;
  if (softmax.row_length() == 0) return "rows must not be empty";
  return "rows must be contiguous in x and y and lie at regular distances, those of an image together";
}

bool row_vector_fits(const SoftmaxForward& softmax, int64_t elements) {
  const std::optional<RowLayout> layout = contiguous_rows(softmax);
  return layout && vector_fits(layout->three_dimensions(softmax.x, true), {1}, elements) &&
         vector_fits(layout->three_dimensions(softmax.y, false), {1}, elements);
}

double compulsory_bytes(const SoftmaxForward& softmax) {
  const double y = static_cast<double>(softmax.y.elements()) * size_of(softmax.y.dtype);
  return static_cast<double>(softmax.x.elements()) * size_of(softmax.x.dtype) +
         (softmax.blend.beta == Scale::zero ? y : 2 * y);
}

}  // namespace kiln::descriptor
