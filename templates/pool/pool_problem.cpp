#include "pool/pool_problem.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"

namespace kiln::descriptor {
namespace {

bool spans_all(const WindowAxis& axis) {
  return axis.window == axis.extent && axis.outputs == 1 && axis.pad_begin == 0 && axis.pad_end == 0 &&
         axis.dilation == 1;
}

}  // namespace

int mode_constant(PoolMode mode) {
  switch (mode) {
    case PoolMode::max:
      return 0;
    case PoolMode::avg:
      return 1;
    case PoolMode::avg_padded:
      return 2;
  }
  return 0;
}

PoolProblem PoolProblem::of(const Request& request) {
  PoolProblem problem;
  static_cast<PoolForward&>(problem) = PoolForward::of(request);
  static_cast<SpatialAxes&>(problem) = axes_of(problem);
  problem.x = with_three_axes(problem.x);
  problem.y = with_three_axes(problem.y);
  problem.has_indices = !problem.indices.extents.empty();
  problem.indices = problem.has_indices ? with_three_axes(problem.indices) : problem.y;
  problem.inner = inner_of(problem.x);
  return problem;
}

std::optional<std::string> order_refusal(const PoolProblem& pool, Inner inner) {
  if (pool.has_indices) return "it gives no indices";
  if (pool.inner == inner || pool.inner == Inner::either) return std::nullopt;
  return inner == Inner::pixels ? "channels of x stand closer together than its pixels"
                                : "pixels of x stand closer together than its channels";
}

bool is_global(const PoolProblem& pool) {
  return spans_all(pool.planes) && spans_all(pool.rows) && spans_all(pool.columns);
}

std::string order_of_pool(const PoolProblem& pool, std::string of_averages) {
  return pool.mode == PoolMode::max ? "maxima, in any order" : std::move(of_averages);
}

double compulsory_bytes(const PoolProblem& pool) {
  const double y = static_cast<double>(pool.y.elements()) * size_of(pool.y.dtype);
  const double indices = pool.has_indices ? static_cast<double>(pool.y.elements()) * size_of(DType::i32) : 0;
  return static_cast<double>(pool.x.elements()) * size_of(pool.x.dtype) + indices +
         (pool.blend.beta == Scale::zero ? y : 2 * y);
}

Prelude pool_prelude(const PoolProblem& pool, FixedAxes fixed) {
  Prelude prelude;
  prelude.type("TX", pool.x.dtype).type("TY", pool.y.dtype);
  prelude.index_type("Index", needs_wide_index({&pool.x, &pool.y, &pool.indices}) || !coordinates_fit_int(pool));
  add_batch(prelude, pool.n(), pool.dynamic_batch);
  prelude.extent("C", pool.c());
  add_axes(prelude, pool, fixed);
  add_strides(prelude, "X", "NCDHW", pool.x);
  add_strides(prelude, "Y", "NCZPQ", pool.y);
  add_strides(prelude, "INDICES", "NCZPQ", pool.indices);
  prelude.flag("HAS_INDICES", pool.has_indices);
  prelude.constant("MODE", mode_constant(pool.mode));
  add_blend(prelude, pool.blend);
  return prelude;
}

void add_even_pixels(Prelude& prelude, const PoolProblem& pool) {
  const auto step = run_stride(pool.x, {dimension::column, dimension::row, dimension::plane});
  prelude.flag("PIXELS_ARE_EVEN", step.has_value()).extent("PIXEL_STEP", step.value_or(0));
}

double lane_bytes_of_x(const PoolProblem& pool, double bytes, int64_t tile_p, int64_t tile_q) {
  const double size = size_of(pool.x.dtype);
  const double tiles_p = std::ceil(static_cast<double>(pool.rows.outputs) / static_cast<double>(tile_p));
  const double tiles_q = std::ceil(static_cast<double>(pool.columns.outputs) / static_cast<double>(tile_q));
  const auto pitch = [&](int64_t elements) { return lane_bytes(bytes, static_cast<double>(elements) * size); };
  const double next_row = ((tiles_p - 1) * pitch(tile_p * pool.rows.stride * pool.x.strides[dimension::row]) +
                           pitch(pool.x.strides[dimension::channel])) /
                          tiles_p;
  return ((tiles_q - 1) * pitch(tile_q * pool.columns.stride * pool.x.strides[dimension::column]) + next_row) / tiles_q;
}

}  // namespace kiln::descriptor
