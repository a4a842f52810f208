#include "reduce/reduce_rows.h"

#include "descriptor/prelude_and_launch.h"

namespace kiln::descriptor {
namespace {

// i32 numbers of the elements of a row in logical order, as a tensor of strides.
TensorSpec positions_of(const Reduce& reduce) {
  TensorSpec positions{DType::i32, reduce.y.extents, reduce.y.strides, size_of(DType::i32)};
  positions.extents.assign(positions.extents.size(), 1);
  int64_t stride = 1;
  for (size_t i = reduce.axes.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(reduce.axes[i]);
    positions.extents[axis] = reduce.x.extents[axis];
    positions.strides[axis] = stride;
    stride *= reduce.x.extents[axis];
  }
  return positions;
}

}  // namespace

ReduceRows ReduceRows::of(const Request& request) {
  const Reduce reduce = Reduce::of(request);
  ReduceRows rows;
  rows.with_indices = !reduce.indices.extents.empty();
  TensorSpec indices = rows.with_indices ? reduce.indices : reduce.y;
  indices.dtype = DType::i32;
  rows.operands = {{"x", reduce.x}, {"y", reduce.y}, {"indices", indices}};
  if (rows.with_indices) {
    rows.operands.push_back({"position", positions_of(reduce)});
  } else {
    rows.operands.push_back({"position", reduce.y});  // counts nothing, and keeps no dimensions apart
  }
  rows.axes = reduce.axes;
  rows.dynamic_batch = reduce.dynamic_batch;
  rows.mode = reduce.mode;
  rows.blend = reduce.blend;
  return rows;
}

double ReduceRows::moved_bytes() const {
  const TensorSpec &x = operands[0].spec, &y = operands[1].spec;
  const int of_row = size_of(y.dtype) * (blend.beta == Scale::zero ? 1 : 2) + (with_indices ? 4 : 0);
  return static_cast<double>(elements()) * size_of(x.dtype) + static_cast<double>(count()) * of_row;
}

void add_reduce(Prelude& prelude, const ReduceRows& rows) {
  prelude.constant("MODE", static_cast<int64_t>(rows.mode)).flag("WITH_INDICES", rows.with_indices);
  add_blend(prelude, rows.blend);
}

}  // namespace kiln::descriptor
