#include "im2col/columns_problem.h"

#include <algorithm>

#include "descriptor/prelude_and_launch.h"

namespace kiln::descriptor {

ColumnsProblem ColumnsProblem::of(const Request& request) {
  ColumnsProblem problem;
  problem.sums = request.operation == "col2im";
  static_cast<SpatialAxes&>(problem) = problem.sums ? axes_of(Col2im::of(request)) : axes_of(Im2col::of(request));
  problem.images = with_three_axes(request.at(problem.sums ? "y" : "x"));
  problem.unfolded = with_three_axes(request.at(problem.sums ? "x" : "y"));
  problem.blend = request.blend;
  problem.dynamic_batch = request.dynamic_batch;
  return problem;
}

Prelude columns_prelude(const ColumnsProblem& problem) {
  const TensorSpec &images = problem.images, &unfolded = problem.unfolded;
  const bool sums = problem.sums;
  Prelude prelude;
  prelude.type("TX", (sums ? unfolded : images).dtype).type("TY", (sums ? images : unfolded).dtype);
  prelude.index_type("Index", needs_wide_index({&images, &unfolded}) || !coordinates_fit_int(problem));
  add_batch(prelude, problem.n(), problem.dynamic_batch);
  prelude.extent("C", problem.c()).extent("K", problem.k());
  add_axes(prelude, problem, FixedAxes::windows);
  add_strides(prelude, sums ? "Y" : "X", "NCDHW", images);
  add_strides(prelude, sums ? "X" : "Y", "NKZPQ", unfolded);
  add_blend(prelude, problem.blend);
  return prelude;
}

StreamingWork columns_work(const ColumnsProblem& problem, double threads, double results, double loads,
                           double lane_bytes_of_x) {
  const TensorSpec& x = problem.sums ? problem.unfolded : problem.images;
  const double written = bytes_of(problem.result());
  StreamingWork work;
  work.cache_bytes = threads * loads * lane_bytes_of_x + written;
  work.dram_bytes = std::min(bytes_of(x), threads * loads * lane_bytes_of_x) + written;
  if (problem.blend.beta != Scale::zero) work.dram_bytes += written;
  work.threads = threads;
  work.instructions_per_thread = 50 + loads * 6 + results * 4;
  work.registers_per_thread = 32 + 2 * results;
  work.bytes_in_flight_per_thread = size_of(x.dtype) * std::min(loads, 8.0);
  return work;
}

}  // namespace kiln::descriptor
