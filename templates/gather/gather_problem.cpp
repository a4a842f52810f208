#include "gather/gather_problem.h"

#include <algorithm>

#include "kiln/generator/operations/gather.h"

namespace kiln::descriptor {

GatherProblem GatherProblem::of(const Request& request) {
  const Gather view = Gather::of(request);
  const auto axis = static_cast<size_t>(view.axis);
  return {PointwiseProblem::of(request), view.x.extents[axis], view.x.strides[axis]};
}

Prelude gather_prelude(const GatherProblem& problem, const PointwiseGrid& grid, bool open) {
  Prelude prelude = pointwise_prelude(problem.elements, grid, open);
  prelude.extent("AXIS_EXTENT", problem.axis_extent).extent("AXIS_STRIDE", problem.axis_stride);
  return prelude;
}

StreamingWork gather_work(const GatherProblem& problem, const PointwiseGrid& grid, int vector, int items, int threads) {
  const PointwiseProblem& all = problem.elements;
  const auto elements = static_cast<double>(all.per_image * all.batch);
  const double x_bytes = size_of(all.operands[0].spec.dtype), y_bytes = size_of(all.result().dtype);
  const bool one_index = grid.strides[1][0] == 0;  // for all neighbours
  StreamingWork work;
  // Elements of x that are read: no more than y has; where neighbours name positions of their own, a sector for each.
  const double whole_x = static_cast<double>(all.operands[0].spec.elements()) * x_bytes;
  const double pitch = static_cast<double>(one_index ? grid.strides[0][0] : problem.axis_stride) * x_bytes;
  const double of_x = elements * lane_bytes(x_bytes, pitch);
  work.dram_bytes = all.compulsory_bytes() - whole_x + std::min(whole_x, of_x);
  const double of_indices =
      one_index ? 4 / static_cast<double>(vector) : lane_bytes(4, 4 * static_cast<double>(grid.strides[1][0]));
  const double of_y = lane_bytes(y_bytes, static_cast<double>(grid.strides[2][0]) * y_bytes);
  work.cache_bytes = of_x + elements * (of_indices + of_y);
  work.threads = elements / (vector * items);
  const double loads = one_index && grid.strides[0][0] == 1 ? std::max(1.0, vector * x_bytes / 16) : vector;
  work.instructions_per_thread =
      30 + items * (24 + 8 * static_cast<double>(grid.extents.size()) + 6 * loads + 4 * vector);
  work.blocks = work.threads / threads;
  work.threads_per_block = threads;
  work.registers_per_thread = 28 + items * (vector * (x_bytes + (one_index ? 0 : 4)) / 4 + 6) + vector;
  work.bytes_in_flight_per_thread = items * std::max(4.0, vector * x_bytes);
  return work;
}

}  // namespace kiln::descriptor
