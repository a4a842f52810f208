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

/// `Row`: what is to be known of a row. It is worked out once for all of the row's elements.
template <class Row>
class RowEvaluator : public Oracle::Evaluator {
 public:
  RowEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output), axis_(static_cast<size_t>(request().ints("axis").front())) {}

  std::vector<Expected> all() const override {
    std::vector<Expected> results(static_cast<size_t>(output().elements()));
    TensorSpec first_of_rows = this->output();
    first_of_rows.extents[axis_] = std::min<int64_t>(first_of_rows.extents[axis_], 1);
    for_each_coordinate(first_of_rows, [&](std::span<const int64_t> first) {
      const Row row = row_at(first);
      for_each_of_row(first, [&](const Coordinate& at) { results[logical_index(at)] = finish(element(row, at), at); });
    });
    return results;
  }

 protected:
  /// The row that `coordinate` lies in.
  virtual Row row_at(std::span<const int64_t> coordinate) const = 0;
  virtual Expected element(const Row& row, std::span<const int64_t> coordinate) const = 0;

  Expected operation_at(std::span<const int64_t> coordinate) const final {
    return element(row_at(coordinate), coordinate);
  }

  int64_t row_length() const { return this->output().extents[axis_]; }

  /// Calls `visit` with the coordinate of every element of the row that `coordinate` lies in.
  template <class Visit>
  void for_each_of_row(std::span<const int64_t> coordinate, const Visit& visit) const {
    Coordinate at(coordinate.begin(), coordinate.end());
    for (at[axis_] = 0; at[axis_] < row_length(); ++at[axis_]) visit(at);
  }

 private:
  size_t logical_index(const Coordinate& coordinate) const {
    int64_t index = 0;
    for (size_t d = 0; d < coordinate.size(); ++d) index = index * this->output().extents[d] + coordinate[d];
    return static_cast<size_t>(index);
  }

  size_t axis_;
};

}  // namespace kiln::reference
