#include "pool/pool_window.h"

#include <algorithm>
#include <cmath>

#include "descriptor/parts.h"
#include "descriptor/streaming_estimate.h"

namespace kiln::descriptor {
namespace {

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

// Furthest coordinate that a window reaches on axis 0 (h) or 1 (w), counted from the first padded element.
int64_t reach(const PoolForward& pool, size_t axis) {
  const int64_t outputs = axis == 0 ? pool.p() : pool.q();
  return outputs * pool.stride[axis] + pool.window[axis] * pool.dilation[axis];
}

}  // namespace

bool needs_wide_index(const PoolForward& pool) {
  return needs_wide_index({&pool.x, &pool.y}) || !window_fits_int(pool);
}

bool window_fits_int(const PoolForward& pool) {
  constexpr int64_t limit = int64_t{1} << 30;
  return reach(pool, 0) < limit && reach(pool, 1) < limit && pool.pad_begin[0] < limit && pool.pad_begin[1] < limit &&
         pool.h() + pool.pad_end[0] < limit && pool.width() + pool.pad_end[1] < limit;
}

bool is_global(const PoolForward& pool) {
  return pool.p() == 1 && pool.q() == 1 && pool.window == std::array{pool.h(), pool.width()} &&
         pool.pad_begin == std::array<int64_t, 2>{0, 0} && pool.pad_end == std::array<int64_t, 2>{0, 0} &&
         pool.dilation == std::array<int64_t, 2>{1, 1};
}

double compulsory_bytes(const PoolForward& pool) {
  const double y = static_cast<double>(pool.y.elements()) * size_of(pool.y.dtype);
  return static_cast<double>(pool.x.elements()) * size_of(pool.x.dtype) + (pool.blend.beta == Scale::zero ? y : 2 * y);
}

Prelude pool_prelude(const PoolForward& pool) {
  Prelude prelude;
  prelude.type("TX", pool.x.dtype).type("TY", pool.y.dtype).index_type("Index", needs_wide_index(pool));
  add_batch(prelude, pool.n(), pool.dynamic_batch);
  prelude.constant("C", pool.c()).constant("H", pool.h()).constant("W", pool.width());
  prelude.constant("P", pool.p()).constant("Q", pool.q());
  prelude.constant("R", pool.window[0]).constant("S", pool.window[1]);
  prelude.constant("PAD_TOP", pool.pad_begin[0]).constant("PAD_LEFT", pool.pad_begin[1]);
  prelude.constant("PAD_BOTTOM", pool.pad_end[0]).constant("PAD_RIGHT", pool.pad_end[1]);
  prelude.constant("STRIDE_H", pool.stride[0]).constant("STRIDE_W", pool.stride[1]);
  prelude.constant("DILATION_H", pool.dilation[0]).constant("DILATION_W", pool.dilation[1]);
  prelude.constant("MODE", mode_constant(pool.mode));
  add_blend(prelude, pool.blend);
  return prelude;
}

double lane_bytes_of_x(const PoolForward& pool, double bytes, int64_t tile_p, int64_t tile_q) {
  const double size = size_of(pool.x.dtype);
  const double tiles_p = std::ceil(static_cast<double>(pool.p()) / static_cast<double>(tile_p));
  const double tiles_q = std::ceil(static_cast<double>(pool.q()) / static_cast<double>(tile_q));
  const auto pitch = [&](int64_t elements) { return lane_bytes(bytes, static_cast<double>(elements) * size); };
  const double next_row =
      ((tiles_p - 1) * pitch(tile_p * pool.stride[0] * pool.x.strides[2]) + pitch(pool.x.strides[1])) / tiles_p;
  return ((tiles_q - 1) * pitch(tile_q * pool.stride[1] * pool.x.strides[3]) + next_row) / tiles_q;
}

double mean_window_elements(const PoolForward& pool) {
  return mean_taps_inside(pool.p(), pool.h(), pool.window[0], pool.pad_begin[0], pool.stride[0], pool.dilation[0]) *
         mean_taps_inside(pool.q(), pool.width(), pool.window[1], pool.pad_begin[1], pool.stride[1], pool.dilation[1]);
}

}  // namespace kiln::descriptor
