#include "pool/pool_backward_problem.h"

#include "descriptor/prelude_and_launch.h"
#include "descriptor/strided.h"
#include "pool/pool_problem.h"

namespace kiln::descriptor {

PoolBackwardProblem PoolBackwardProblem::of(const Request& request) {
  PoolBackwardProblem problem;
  static_cast<PoolBackward&>(problem) = PoolBackward::of(request);
  static_cast<SpatialAxes&>(problem) = axes_of(problem);
  problem.has_indices = !problem.indices.extents.empty();
  if (!problem.reads_x()) problem.x = problem.dx;
  if (!problem.has_indices) problem.indices = problem.dy;
  for (TensorSpec* spec : {&problem.dy, &problem.x, &problem.indices, &problem.dx}) *spec = with_three_axes(*spec);
  const Inner inner = inner_of(problem.dx);
  problem.channels_inner = inner == Inner::channels || (inner == Inner::either && problem.c() > 1);
  return problem;
}

bool channels_fit(const PoolBackwardProblem& pool, int vector) {
  if (vector == 1) return true;
  const auto fits = [&](const TensorSpec& spec) { return vector_fits(spec, {dimension::channel}, vector); };
  return pool.channels_inner && fits(pool.dy) && fits(pool.x) && fits(pool.indices) && fits(pool.dx);
}

bool is_open_vector(const PoolBackwardProblem& pool, int vector) {
  return vector == 1 || vector == 4 || vector * size_of(pool.dx.dtype) == 16;
}

bool needs_wide_index(const PoolBackwardProblem& pool) {
  return needs_wide_index({&pool.dy, &pool.x, &pool.indices, &pool.dx}) || !coordinates_fit_int(pool);
}

Prelude pool_backward_prelude(const PoolBackwardProblem& pool) {
  Prelude prelude;
  prelude.type("TDY", pool.dy.dtype).type("TX", pool.x.dtype).type("TDX", pool.dx.dtype);
  prelude.index_type("Index", needs_wide_index(pool));
  add_batch(prelude, pool.n(), pool.dynamic_batch);
  prelude.extent("C", pool.c());
  add_axes(prelude, pool, FixedAxes::steps);
  add_strides(prelude, "DY", "NCZPQ", pool.dy);
  add_strides(prelude, "X", "NCDHW", pool.x);
  add_strides(prelude, "INDICES", "NCZPQ", pool.indices);
  add_strides(prelude, "DX", "NCDHW", pool.dx);
  prelude.flag("HAS_INDICES", pool.has_indices);
  prelude.constant("MODE", mode_constant(pool.mode));
  add_blend(prelude, pool.blend);
  return prelude;
}

double compulsory_bytes(const PoolBackwardProblem& pool) {
  return bytes_of(pool.dy) + (pool.reads_x() ? bytes_of(pool.x) : 0) +
         (pool.has_indices ? static_cast<double>(pool.dy.elements()) * size_of(DType::i32) : 0) +
         (pool.blend.beta == Scale::zero ? 1 : 2) * bytes_of(pool.dx);
}

}  // namespace kiln::descriptor
