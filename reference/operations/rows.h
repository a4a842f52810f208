// References of operations whose elements depend on their row, the elements along one axis.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "evaluator.h"
#include "kiln/reference/tensor_memory.h"

namespace kiln::reference {

/// Whether each of `rank` dimensions is one of `axes`.
inline std::vector<bool> which_are(const std::vector<int64_t>& axes, size_t rank) {
  std::vector<bool> is_axis(rank, false);
  for (const int64_t axis : axes) is_axis[static_cast<size_t>(axis)] = true;
  return is_axis;
}

/// Calls visit(coordinate) for every element of the row of `whole` that `coordinate` lies in, in logical order.
template <class Visit>
void for_each_of_row(TensorSpec whole, const std::vector<bool>& is_axis, std::span<const int64_t> coordinate,
                     const Visit& visit) {
  for (size_t d = 0; d < is_axis.size(); ++d) whole.extents[d] = is_axis[d] ? whole.extents[d] : 1;
  for_each_coordinate(whole, [&](std::span<const int64_t> along) {
    Coordinate at(coordinate.begin(), coordinate.end());
    for (size_t d = 0; d < at.size(); ++d) at[d] = is_axis[d] ? along[d] : at[d];
    visit(at);
  });
}

/// `Row`: what is to be known of a row. It is worked out once for all of the row's elements, for outputs that have the
/// extents of the first operand, or 1 along axes.
template <class Row>
class RowEvaluator : public Oracle::Evaluator {
 public:
  /// `axes`: the attribute that names them.
  RowEvaluator(Request call, const Bindings& bindings, std::string_view output, std::string_view axes)
      : Evaluator(std::move(call), bindings, output), shape_(request().operands.front().spec) {
    go_along(request().ints(axes));
  }

  std::vector<Expected> all() const override {
    if (!repeats_along_axes()) return Evaluator::all();
    const TensorSpec& output = this->output();
    std::vector<Expected> results(static_cast<size_t>(output.elements()));
    TensorSpec first_of_rows = output;
    for (size_t d = 0; d < is_axis_.size(); ++d) {
      if (is_axis_[d]) first_of_rows.extents[d] = std::min<int64_t>(output.extents[d], 1);
    }
    for_each_coordinate(first_of_rows, [&](std::span<const int64_t> first) {
      const Row row = row_at(first);
      reference::for_each_of_row(output, is_axis_, first, [&](const Coordinate& at) {
        results[logical_index(at)] = finished(element(row, at), at);
      });
    });
    return results;
  }

 protected:
  /// Other axes than the request's.
  void go_along(const std::vector<int64_t>& axes) { is_axis_ = which_are(axes, shape_.extents.size()); }

  /// The row that `coordinate` lies in.
  virtual Row row_at(std::span<const int64_t> coordinate) const = 0;
  virtual Expected element(const Row& row, std::span<const int64_t> coordinate) const = 0;

  Expected operation_at(std::span<const int64_t> coordinate) const final {
    return element(row_at(coordinate), coordinate);
  }

  int64_t row_length() const {
    int64_t elements = 1;
    for (size_t d = 0; d < is_axis_.size(); ++d) elements *= is_axis_[d] ? shape_.extents[d] : 1;
    return elements;
  }

  /// Calls `visit` with the coordinate of every element of the row that `coordinate` lies in.
  template <class Visit>
  void for_each_of_row(std::span<const int64_t> coordinate, const Visit& visit) const {
    reference::for_each_of_row(shape_, is_axis_, coordinate, visit);
  }

 private:
  // Whether the output has the extents of the first operand but along the axes.
  bool repeats_along_axes() const {
    const std::vector<int64_t>& extents = output().extents;
    bool repeats = extents.size() == is_axis_.size();
    for (size_t d = 0; repeats && d < extents.size(); ++d) repeats = is_axis_[d] || extents[d] == shape_.extents[d];
    return repeats;
  }

  size_t logical_index(const Coordinate& coordinate) const {
    int64_t index = 0;
    for (size_t d = 0; d < coordinate.size(); ++d) index = index * output().extents[d] + coordinate[d];
    return static_cast<size_t>(index);
  }

  TensorSpec shape_;
  std::vector<bool> is_axis_;
};

}  // namespace kiln::reference
