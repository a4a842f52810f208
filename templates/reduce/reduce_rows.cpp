#include "reduce/reduce_rows.h"

#include "descriptor/prelude_and_launch.h"
#include "descriptor/strided.h"
#include "kiln/generator/operations/reduce_backward.h"

namespace kiln::descriptor {
namespace {

// i32 numbers of the elements of a row in logical order, as a tensor of strides.
TensorSpec positions_of(const std::vector<int64_t>& extents, const std::vector<int64_t>& axes) {
  const std::vector<int64_t> ones(extents.size(), 1);
  TensorSpec positions{DType::i32, ones, ones, size_of(DType::i32)};
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(axes[i]);
    positions.extents[axis] = extents[axis];
    positions.strides[axis] = stride;
    stride *= extents[axis];
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
    rows.operands.push_back({"position", positions_of(reduce.x.extents, reduce.axes)});
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

ReduceGradientRows ReduceGradientRows::of(const Request& request) {
  const ReduceBackward gradient = ReduceBackward::of(request);
  ReduceGradientRows rows;
  // A stand-in for what is not read counts nothing, and keeps no dimensions apart.
  const TensorSpec& stand_in = gradient.dy;
  TensorSpec indices = gradient.indices.value_or(stand_in);
  indices.dtype = DType::i32;
  const TensorSpec position = gradient.indices ? positions_of(gradient.dx.extents, gradient.axes) : indices;
  rows.operands = {{"dx", gradient.dx},
                   {"dy", gradient.dy},
                   {"x", gradient.x.value_or(stand_in)},
                   {"y", gradient.y.value_or(stand_in)},
                   {"indices", indices},
                   {"position", position}};
  rows.axes = gradient.axes;
  rows.dynamic_batch = gradient.dynamic_batch;
  rows.mode = gradient.mode;
  rows.blend = gradient.blend;
  return rows;
}

double ReduceGradientRows::moved_bytes() const {
  double bytes = bytes_of(operands[0].spec) * (blend.beta == Scale::zero ? 1 : 2) + bytes_of(operands[1].spec);
  if (gradient_reads_x(mode)) bytes += bytes_of(operands[2].spec);
  if (gradient_reads_y(mode)) bytes += bytes_of(operands[3].spec);
  if (has_indices(mode)) bytes += bytes_of(operands[4].spec);
  return bytes;
}

void add_reduce_gradient(Prelude& prelude, const ReduceGradientRows& rows) {
  prelude.constant("MODE", static_cast<int64_t>(rows.mode));
  prelude.flag("READS_X", gradient_reads_x(rows.mode)).flag("READS_Y", gradient_reads_y(rows.mode));
  prelude.flag("READS_INDICES", has_indices(rows.mode));
  add_blend(prelude, rows.blend);
}

std::vector<Argument> reduce_gradient_arguments() {
  return {OperandArgument{"dy"},
          OperandArgument{"x"},
          OperandArgument{"y"},
          OperandArgument{"indices"},
          OperandArgument{"dx"},
          Scalar::alpha,
          Scalar::beta,
          UserArgument{},
          Scalar::n};
}

}  // namespace kiln::descriptor
