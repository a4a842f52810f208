#include "pool/unpool_problem.h"

#include <algorithm>

#include "descriptor/prelude_and_launch.h"

namespace kiln::descriptor {

UnpoolProblem UnpoolProblem::of(const Request& request) {
  UnpoolProblem problem;
  static_cast<UnpoolBackward&>(problem) = UnpoolBackward::of(request);
  static_cast<SpatialAxes&>(problem) = axes_of(problem);
  for (TensorSpec* spec : {&problem.dy, &problem.indices, &problem.dx}) *spec = with_three_axes(*spec);
  const Inner inner = inner_of(problem.dx);
  problem.channels_inner = inner == Inner::channels || (inner == Inner::either && problem.c() > 1);
  return problem;
}

Prelude unpool_prelude(const UnpoolProblem& unpool) {
  Prelude prelude;
  prelude.type("TDY", unpool.dy.dtype).type("TDX", unpool.dx.dtype);
  prelude.index_type("Index",
                     needs_wide_index({&unpool.dy, &unpool.indices, &unpool.dx}) || !coordinates_fit_int(unpool));
  add_batch(prelude, unpool.n(), unpool.dynamic_batch);
  prelude.extent("C", unpool.c());
  add_axes(prelude, unpool, FixedAxes::dilations);
  add_strides(prelude, "DY", "NCDHW", unpool.dy);
  add_strides(prelude, "INDICES", "NCZPQ", unpool.indices);
  add_strides(prelude, "DX", "NCZPQ", unpool.dx);
  add_blend(prelude, unpool.blend);
  return prelude;
}

StreamingWork unpool_work(const UnpoolProblem& unpool, int vector, int threads, bool along_channels) {
  const auto outputs = static_cast<double>(unpool.dx.elements());
  const auto size = [](const TensorSpec& spec) { return static_cast<double>(size_of(spec.dtype)); };
  // Bytes that a lane asks for of elements whose neighbours' stand `step` positions further along the columns.
  const auto lane = [&](const TensorSpec& spec, int64_t step) {
    const int64_t stride = along_channels ? spec.strides[dimension::channel] : spec.strides[dimension::column] * step;
    return lane_bytes(size(spec), static_cast<double>(stride) * size(spec));
  };
  constexpr double sector = 32;
  StreamingWork work;
  const double named = std::min(static_cast<double>(unpool.dy.elements()) * size(unpool.dy), outputs * sector);
  work.dram_bytes =
      named + outputs * (size(unpool.indices) + (unpool.blend.beta == Scale::zero ? 1 : 2) * size(unpool.dx));
  work.cache_bytes = outputs * (lane(unpool.dy, unpool.columns.stride) + lane(unpool.indices, 1) + lane(unpool.dx, 1));
  work.threads = outputs / vector;
  work.instructions_per_thread = 30 + 30.0 * vector;
  work.blocks = work.threads / threads;
  work.threads_per_block = threads;
  work.bytes_in_flight_per_thread = vector * (size(unpool.indices) + size(unpool.dy));
  return work;
}

}  // namespace kiln::descriptor
